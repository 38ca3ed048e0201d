// expect: the assessor policy has a member .stops_no_trial. that is not the hook nni::stops_no_trial [(]a flag[)]: declare it as a public .static constexpr bool stops_no_trial
// A flag that would have to be called.

#include "build_failure/parts/policies.hpp"

struct Lenient : nni::assessing::None {
  static constexpr bool stops_no_trial() { return true; }
};

parts::Composed<parts::Service, Lenient> scheduler;
