// expect: the scheduler policy has a member .hands_out_gpus. that is not the hook nni::hands_out_gpus [(]a flag[)]: declare it as a public .static constexpr bool hands_out_gpus
// A flag that every object would have for itself.

#include "build_failure/parts/policies.hpp"

struct Scheduler : nni::scheduling::Unlimited {
  bool hands_out_gpus = false;
};

parts::Composed<parts::Service, Scheduler> scheduler;
