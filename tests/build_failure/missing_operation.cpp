// expect: the training service policy does not model nni::TrainingService [(]promise 7[)]: it has no operation .awaitable<void> clean_up
// A service without one of its operations.

#include "build_failure/parts/policies.hpp"

struct Untidy : parts::Service {
  void clean_up() = delete;
};

parts::Composed<Untidy> scheduler;
