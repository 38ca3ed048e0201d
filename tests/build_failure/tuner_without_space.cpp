// expect: the tuner policy brings no search space, and an Experiment would run on an empty one: give it a public .const SearchSpace& search_space[(][)] const
// A tuner that keeps every promise of its concept and searches nothing.

#include "build_failure/parts/policies.hpp"

struct Aimless {
  using role = nni::role::tuner;
  void start(const nni::SearchSpace&, const nni::Objectives&);
  void update_search_space(const nni::SearchSpace&);
  std::optional<nni::Parameters> generate(nni::ParameterId);
  void observe(const nni::TrialOutcome&);
};
static_assert(nni::Tuner<Aimless>);

parts::Composed<parts::Service, Aimless> scheduler;
