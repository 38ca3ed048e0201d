#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include <nni/core/ids.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni::testing {

/// The trials of the suite for services: each function returns a form that the platform can run.
///
/// They are called on the executor of the service, which has a separate thread for each case.
struct ServiceTrials {
  std::function<TrialJobForm(RunId)> succeeds{};            ///< ends on its own, exit code 0
  std::function<TrialJobForm(RunId)> fails{};               ///< ends on its own with a failure
  std::function<TrialJobForm(RunId)> runs_until_stopped{};  ///< ends only when it is canceled
  /// Reports one value when it is ready to be stopped, if the service carries messages; runs until it is canceled, and then
  /// exits on its own with exit code 0. Absent if trials cannot detect a cancellation.
  std::function<TrialJobForm(RunId)> exits_when_stopped{};
  std::function<TrialJobForm(RunId)> cannot_start{};  ///< absent if every run can start
  /// Succeeds only if its variable NNI_CONFORMANCE is `it's here`, which the suite adds to the form. Absent if trials
  /// are callables.
  std::function<TrialJobForm(RunId)> needs_variable{};
  std::function<TrialJobForm(RunId)> reports{};       ///< reports 0.25, 0.5 and finally 0.75; absent without messages
  std::function<TrialJobForm(RunId)> kills_itself{};  ///< sends SIGKILL to itself; absent if trials are not processes
  /// Makes the platform unavailable so that no run can start (true), or available again (false); live runs continue. Absent
  /// if that is impossible; nni/testing/flapping.hpp can simulate it then.
  std::function<void(bool)> outage{};
  int failure_code = 0;                  ///< exit code of `fails`; 0: none
  std::function<std::size_t()> alive{};  ///< returns the number of live trials; absent if unknown
  /// Timeout of one case and of a clean-up, which detects missing events. Also the shutdown limit of the context.
  Duration limit = std::chrono::seconds(30);
};

}  // namespace nni::testing
