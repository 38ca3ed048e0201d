// expect: the training service policy does not model nni::TrainingService [(]promise 6[)]: its operation is declared otherwise than .awaitable<JobEvent> next_event
// A service that blocks where it should be awaited.

#include "build_failure/parts/policies.hpp"

struct Blocking : parts::Service {
  nni::JobEvent next_event();
};

parts::Composed<Blocking> scheduler;
