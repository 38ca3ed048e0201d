// expect: the tuner policy has a member .search_space. that is not the hook nni::BringsSearchSpace: declare it as a public .const SearchSpace& search_space[(][)] const
// A space that a constant tuner cannot show.

#include "build_failure/parts/policies.hpp"

struct Shy : parts::Tuner {
  const nni::SearchSpace& search_space();
};

parts::Composed<parts::Service, Shy> scheduler;
