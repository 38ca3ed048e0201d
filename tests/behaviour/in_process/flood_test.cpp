// Trials that report without a break.

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>

#include <nni/nni.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

/// A flood that nobody stops ends by itself after so many values, so that a test fails instead of hanging.
constexpr std::uint64_t most_values = 2'000'000;

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

/// Reports until it is told to stop. @returns true when it was
bool flood(TrialHandle& trial, std::atomic<std::uint64_t>& values) {
  while (!trial.stop_requested()) {
    trial.report_intermediate_result(1.0);
    if (++values >= most_values) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("in process: trials that report without a break are stopped at their limit on time",
          "[in_process][starvation]") {
  std::atomic<std::uint64_t> values = 0;
  std::atomic<int> stopped = 0;
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .max_trials = 2, .max_trial_duration = 100ms, .handle_signals = false},
      platforms::InProcess{
          [&](TrialHandle& trial) {
            if (flood(trial, values)) ++stopped;
          },
          {.threads = 2}},
      tuning::Random{line(), seed(1)}};

  const Summary summary = experiment.run();

  CHECK(stopped == 2);
  CHECK(summary.finished == 2);
}

TEST_CASE("in process: a trial ends, and the next begins, while another one reports without a break",
          "[in_process][starvation]") {
  std::atomic<std::uint64_t> values = 0;
  std::atomic<bool> stopped = false;
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .max_trials = 20, .handle_signals = false},
      platforms::InProcess{
          [&](TrialHandle& trial) {
            if (trial.sequence() == 0)
              stopped = flood(trial, values);
            else
              trial.report_final_result(1.0);
          },
          {.threads = 2}},
      tuning::Random{line(), seed(1)}};
  int ended = 0;
  const Control control = experiment.control();
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail& trial) {
    if (trial.trial.sequence() != 0 && ++ended == 19) control.cancel(TrialId{1});
  }});

  const Summary summary = experiment.run();

  CHECK(stopped);
  CHECK(summary.count(TrialJobStatus::succeeded) == 19);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
}
