// expect: the callable of the training service nni::platforms::InProcess [(]nni::TrainingService, promise 3[)] cannot be called as .void[(]nni::TrialHandle&[)]
// A trial that takes its parameters instead of its handle.

#include <nni/nni.hpp>

int main() {
  nni::Experiment experiment{
      nni::ExperimentOptions{}, nni::platforms::InProcess{[](const nni::Parameters&) { return 1.0; }}};
}
