// expect: two schedulers given: an Experiment has one policy that models nni::Scheduler
// Two policies of one role are a mistake that is named.

#include <nni/nni.hpp>

int main() {
  nni::Experiment experiment{
      nni::ExperimentOptions{}, nni::platforms::InProcess{[](nni::TrialHandle&) {}}, nni::scheduling::Unlimited{},
      nni::scheduling::Unlimited{}};
}
