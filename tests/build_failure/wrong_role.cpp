// expect: the scheduler policy does not model nni::Scheduler [(]promise 1[)]: it has no operation .PlacementResult place
// A tuner that declares the role of a scheduler.

#include "build_failure/parts/policies.hpp"

struct Confused : parts::Tuner {
  using role = nni::role::scheduler;
};

parts::Composed<parts::Service, Confused> scheduler;
