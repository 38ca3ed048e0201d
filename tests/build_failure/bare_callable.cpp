// expect: the first policy of an Experiment does not model nni::TrainingService: it declares no role
// A callable without the service that runs it.

#include <nni/nni.hpp>

int main() {
  nni::Experiment experiment{nni::ExperimentOptions{}, [](nni::TrialHandle&) {}};
}
