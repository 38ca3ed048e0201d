// expect: the training service policy does not model nni::TrainingService [(]promise 1[)]: its operation is declared otherwise than .Capabilities capabilities[(][)] const noexcept
// An operation that must be noexcept is not.

#include "build_failure/parts/policies.hpp"

struct Throwing : parts::Service {
  nni::Capabilities capabilities() const;
};

parts::Composed<Throwing> scheduler;
