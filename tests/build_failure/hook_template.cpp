// expect: the advisor policy has a member .replay. that is not the hook nni::ReplaysTrials: declare it as a public .void replay[(]const TrialOutcome&, std::vector<double>[)]
// A template that takes anything, but not so much of it.

#include "build_failure/parts/policies.hpp"

struct Short : nni::tuning::AsAdvisor<parts::Tuner, nni::assessing::None> {
  template <class Outcome>
  void replay(const Outcome&);
};

parts::Composed<parts::Service, Short> scheduler;
