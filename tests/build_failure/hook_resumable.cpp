// expect: the training service policy has a member .adopt. that is not the hook nni::ResumableService: declare it as a public .awaitable<std::vector<JobReport>> adopt
// A service that would lose its runs at every resume, because it wants their names alone.

#include "build_failure/parts/policies.hpp"

struct Adopts : parts::Service {
  nni::awaitable<std::vector<nni::JobReport>> adopt(std::vector<nni::RunId>);
};

parts::Composed<Adopts> scheduler;
