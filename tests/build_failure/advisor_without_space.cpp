// expect: the tuner of the advisor policy brings no search space, and an Experiment would run on an empty one: give the tuner, or the advisor, a public .const SearchSpace& search_space
// An advisor around a tuner that searches nothing.

#include "build_failure/parts/policies.hpp"

struct Aimless {
  using role = nni::role::tuner;
  void start(const nni::SearchSpace&, const nni::Objectives&);
  void update_search_space(const nni::SearchSpace&);
  std::optional<nni::Parameters> generate(nni::ParameterId);
  void observe(const nni::TrialOutcome&);
};

parts::Composed<parts::Service, nni::tuning::AsAdvisor<Aimless, nni::assessing::None>> scheduler;
