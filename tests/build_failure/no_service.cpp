// expect: the first policy of an Experiment does not model nni::TrainingService: it has the role of another policy
// The first policy has to be a training service.

#include <nni/nni.hpp>

int main() {
  nni::Experiment<nni::tuning::Random>* experiment = nullptr;
  experiment->run();
}
