// Ways in which an experiment, or one of its trials, is stopped.

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <nni/assessing/median_stop.hpp>
#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

void wait_for_stop(TrialHandle& trial) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait(lock, trial.stop_token(), [] { return false; });
}

}  // namespace

TEST_CASE("experiment: a stop request from another thread stops live trials and keeps the rest", "[experiment][stop]") {
  std::atomic<int> began = 0;
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .max_trials = 100, .handle_signals = false},
      platforms::InProcess{
          [&](TrialHandle& trial) {
            ++began;
            began.notify_all();
            wait_for_stop(trial);
          },
          {.threads = 2}},
      tuning::Random{line(), seed(1)}};
  std::jthread stopper([&] {
    for (int seen = began; seen < 2; seen = began) began.wait(seen);
    experiment.request_stop();
  });
  std::set<ExperimentStatus> shown;
  experiment.observe({.on_progress = [&](const Progress& now) { shown.insert(now.status); }});

  const Summary summary = experiment.run();

  CHECK(shown == std::set<ExperimentStatus>{ExperimentStatus::running, ExperimentStatus::stopping});
  CHECK(summary.status == ExperimentStatus::stopped);
  CHECK(summary.ordered == 2);
  CHECK(summary.finished == 0);  // a resume runs them again
}

TEST_CASE("experiment: a stop request before the run starts nothing", "[experiment][stop]") {
  Experiment experiment{
      ExperimentOptions{.max_trials = 3, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{line(), seed(1)}};
  experiment.request_stop();

  CHECK(experiment.run().finished == 0);
}

TEST_CASE("experiment: a trial that runs too long is stopped early and the next one runs", "[experiment][limits]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  Experiment experiment{
      ExperimentOptions{.max_trials = 2, .max_trial_duration = 1h, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) {
        if (trial.sequence() == 0)
          wait_for_stop(trial);
        else
          trial.report_final_result(1.0);
      }},
      tuning::Random{line(), seed(1)}};

  const Summary summary = clock.run(experiment.async_run(runtime.context()));

  CHECK(summary.count(TrialJobStatus::early_stopped) == 1);
  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  CHECK(summary.trials.front().is_early_stopped);
}

TEST_CASE("experiment: after its duration no trial starts, and running ones end by themselves",
          "[experiment][limits]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  Experiment experiment{
      ExperimentOptions{.concurrency = 1, .max_duration = 1h, .handle_signals = false},
      platforms::InProcess{[&](TrialHandle& trial) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over; });
        trial.report_final_result(1.0);
      }},
      tuning::Random{line(), seed(1)}};
  // Time jumps freely while the trial waits; it is let go when the limit has passed.
  experiment.observe({.on_progress = [&](const Progress& now) {
    if (now.elapsed < 1h) return;
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }});

  const Summary summary = clock.run(experiment.async_run(runtime.context()));

  CHECK(summary.finished == 1);
  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  CHECK(summary.status == ExperimentStatus::done);
}

TEST_CASE("experiment: an assessor stops hopeless trials, and they are told apart", "[experiment][assessor]") {
  Experiment experiment{
      ExperimentOptions{.direction = maximize, .max_trials = 6, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) {
        const bool hopeless = trial.sequence() >= 4;
        trial.report_intermediate_result(hopeless ? 0.1 : 0.8);
        trial.report_intermediate_result(hopeless ? 0.1 : 0.9);
        if (hopeless) wait_for_stop(trial);
        trial.report_final_result(0.95);
      }},
      tuning::Random{line(), seed(1)}, assessing::MedianStop{{.start_step = 1}}};

  const Summary summary = experiment.run();

  CHECK(summary.count(TrialJobStatus::succeeded) == 4);
  CHECK(summary.count(TrialJobStatus::early_stopped) == 2);
  CHECK(summary.trials[5].final_value == "0.95");  // kept, and no result of a whole trial
}

TEST_CASE("experiment: a callable that ignores its stop token ends the run with a clear log line",
          "[experiment][stop]") {
  // Static, because the thread that is left behind uses them when the test has returned.
  static std::mutex mutex;
  static std::condition_variable released;
  static bool let_go = false;
  static std::atomic<bool> began = false;
  std::string logged;
  {
    Experiment experiment{
        ExperimentOptions{
            .max_trials = 1,
            .handle_signals = false,
            .shutdown_limit = 50ms,
            .log = [&](LogLevel, std::string_view, std::string_view text) { logged += text; }},
        platforms::InProcess{[](TrialHandle&) {
          began = true;
          began.notify_all();
          std::unique_lock lock(mutex);
          released.wait(lock, [] { return let_go; });
        }},
        tuning::Random{line(), seed(1)}};
    std::jthread stopper([&] {
      began.wait(false);
      experiment.request_stop();
    });
    const Summary summary = experiment.run();
    CHECK(summary.status == ExperimentStatus::stopped);
  }
  CHECK(logged.find("ignored their stop token") != std::string::npos);
  const std::lock_guard lock(mutex);
  let_go = true;
  released.notify_all();
}
