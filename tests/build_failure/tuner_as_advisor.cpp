// expect: the advisor policy does not model nni::Advisor [(]promise 1[)]: it has no operation .awaitable<void> start
// A tuner that declares the role of an advisor.

#include "build_failure/parts/policies.hpp"

struct Hasty : parts::Tuner {
  using role = nni::role::advisor;
};

parts::Composed<parts::Service, Hasty> scheduler;
