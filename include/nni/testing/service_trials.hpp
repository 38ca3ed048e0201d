#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <nni/core/ids.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni::testing {

/// How the suite makes trials for a service: each function fills in what its platform needs to run.
///
/// They are called on the executor of the service, which is a thread of its own for each case.
struct ServiceTrials {
  std::function<TrialJobForm(RunId)> succeeds{};            ///< ends by itself, exit code 0
  std::function<TrialJobForm(RunId)> fails{};               ///< ends by itself, otherwise
  std::function<TrialJobForm(RunId)> runs_until_stopped{};  ///< ends only when it is cancelled
  /// Reports one value when it is ready to be stopped, if the service carries messages; runs until it is cancelled; exits
  /// by itself then, with exit code 0. Absent where a trial does not notice that it is cancelled.
  std::function<TrialJobForm(RunId)> exits_when_stopped{};
  std::function<TrialJobForm(RunId)> cannot_start{};  ///< absent where nothing can fail to start
  /// Succeeds only if its variable NNI_CONFORMANCE is `it's here`, which the suite adds to the form. Absent where trials
  /// are callables.
  std::function<TrialJobForm(RunId)> needs_variable{};
  std::function<TrialJobForm(RunId)> reports{};  ///< reports 0.25, 0.5 and finally 0.75; absent without messages
  std::function<TrialJobForm(RunId)>
      kills_itself{};  ///< ends by SIGKILL of its own; absent where no trial is a process
  /// Takes the platform away so that no run can be started (true), and brings it back (false); what runs goes on. Absent
  /// where that cannot be done; what an experiment makes of it can then be seen with nni/testing/flapping.hpp.
  std::function<void(bool)> outage{};
  int failure_code = 0;                  ///< exit code of those that fail; 0: they have none
  std::function<std::size_t()> alive{};  ///< how many trials run now; absent where nobody can tell
  /// For one case, and for a clean-up: what never comes is noticed by it. It is the shutdown limit of the context as well.
  Duration limit = std::chrono::seconds(30);
};

}  // namespace nni::testing
