// expect: the tuner policy has a member .adopt. that is not the hook nni::AdoptsUnfinished: declare it as a public .void adopt[(]ParameterId, const Parameters&[)]
// A hook that nobody would await.

#include "build_failure/parts/policies.hpp"

struct Waits : parts::Tuner {
  nni::awaitable<void> adopt(nni::ParameterId, const nni::Parameters&);
};

parts::Composed<parts::Service, Waits> scheduler;
