// expect: the tuner policy does not model nni::Tuner: it cannot be moved and move-assigned
// A policy with a member that stays where it is.

#include <mutex>

#include "build_failure/parts/policies.hpp"

struct Locked : parts::Tuner {
  std::mutex mutex;
};

parts::Composed<parts::Service, Locked> scheduler;
