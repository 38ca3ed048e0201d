// expect: the tuner policy has a member .serch_space., which nothing calls: the hook is .const SearchSpace& search_space[(][)] const
// A tuner with a slip in the name of the operation that brings its space.

#include "build_failure/parts/policies.hpp"

struct Misspelled {
  using role = nni::role::tuner;
  const nni::SearchSpace& serch_space() const;
  void start(const nni::SearchSpace&, const nni::Objectives&);
  void update_search_space(const nni::SearchSpace&);
  std::optional<nni::Parameters> generate(nni::ParameterId);
  void observe(const nni::TrialOutcome&);
};
static_assert(nni::Tuner<Misspelled>);

parts::Composed<parts::Service, Misspelled> scheduler;
