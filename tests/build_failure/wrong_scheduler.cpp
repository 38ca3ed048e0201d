// expect: the scheduler policy does not model nni::Scheduler [(]promise 1[)]: its operation is declared otherwise than .PlacementResult place
// A scheduler whose answer has the wrong type is named, with the concept that it does not model.

#include <nni/nni.hpp>

struct Guesses {
  using role = nni::role::scheduler;
  bool place(const nni::ResourceRequest&, const nni::ResourceSnapshot&) { return true; }
  void hold(const nni::Placement&) {}
  void release(const nni::Placement&) noexcept {}
};

int main() {
  nni::Experiment experiment{nni::ExperimentOptions{}, nni::platforms::InProcess{[](nni::TrialHandle&) {}}, Guesses{}};
}
