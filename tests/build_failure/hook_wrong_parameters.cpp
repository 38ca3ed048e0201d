// expect: the training service policy has a member .recorded. that is not the hook nni::ReleasesRecordedRuns: declare it as a public .void recorded[(]RunId[)]
// A hook that is called with a run is declared for a trial.

#include "build_failure/parts/policies.hpp"

struct Forgets : parts::Service {
  void recorded(nni::TrialId);
};

parts::Composed<Forgets> scheduler;
