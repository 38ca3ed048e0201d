// expect: the advisor policy has a member .hears_all_finals., which nothing calls: the hook is .static constexpr bool hears_every_final
// A slip in the name of a flag.

#include "build_failure/parts/policies.hpp"

struct Listens : nni::tuning::AsAdvisor<parts::Tuner, nni::assessing::None> {
  static constexpr bool hears_all_finals = true;
};

parts::Composed<parts::Service, Listens> scheduler;
