// expect: the first argument of an Experiment is nni::ExperimentOptions, the second its training service [(]nni::TrainingService[)]
// The settings behind the policies.

#include <nni/nni.hpp>

int main() {
  nni::Experiment experiment{nni::platforms::InProcess{[](nni::TrialHandle&) {}}, nni::ExperimentOptions{}};
}
