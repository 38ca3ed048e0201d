// Limits and pauses are spans of steady time: a wall clock that is set, forwards or back, changes none of them.

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

// A steady clock that a test moves, and a wall clock that somebody sets now and then.
class SetClock {
 public:
  explicit SetClock(testing::ManualClock& steady) : steady_(&steady) {}

  /// Turns the wall clock. Any thread.
  void turn(std::chrono::hours span) { turned_ += std::chrono::milliseconds(span).count(); }

  TimePoint now() const noexcept { return steady_->now() + std::chrono::milliseconds(turned_.load()); }
  SteadyPoint steady_now() const noexcept { return steady_->steady_now(); }
  awaitable<void> sleep_until(SteadyPoint deadline) { return steady_->sleep_until(deadline); }

 private:
  testing::ManualClock* steady_;
  std::atomic<std::int64_t> turned_ = 0;
};

constexpr std::chrono::hours ten_years{87'600};

// Time jumps to the next deadline whenever the executor has nothing to do, also while a trial's thread is about to say
// something. So spans are longer than they should be by some deadlines, and shorter than what a clock is turned by.
constexpr std::chrono::hours at_most{8'760};

class Bench {
 public:
  Bench() : wall(steady), runtime(RuntimeOptions{.clock = wall}) { steady.attach(runtime.io()); }

  testing::ManualClock steady;
  SetClock wall;
  Runtime runtime;
};

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

}  // namespace

TEST_CASE("experiment: a wall clock that is set changes no duration of an experiment", "[experiment][limits]") {
  const auto turn = GENERATE(1, -1) * ten_years;
  Bench bench;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  Experiment experiment{
      ExperimentOptions{.concurrency = 1, .max_duration = 1h, .handle_signals = false},
      platforms::InProcess{[&](TrialHandle& trial) {
        bench.wall.turn(turn);
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return over; });
        trial.report_final_result(1.0);
      }},
      tuning::Random{line(), seed(1)}};
  const SteadyPoint begin = bench.steady.steady_now();
  experiment.observe({.on_progress = [&](const Progress& now) {
    if (now.elapsed < 1h) return;
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }});

  const Summary summary = bench.steady.run(experiment.async_run(bench.runtime.context()));

  CHECK(summary.finished == 1);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.duration >= 1h);
  CHECK(summary.duration <= bench.steady.steady_now() - begin);
  CHECK(summary.duration < at_most);
}

TEST_CASE("experiment: a wall clock that is set changes no duration of a trial", "[experiment][limits]") {
  const auto turn = GENERATE(1, -1) * ten_years;
  Bench bench;
  Experiment experiment{
      ExperimentOptions{.concurrency = 1, .max_trials = 2, .max_trial_duration = 1h, .handle_signals = false},
      platforms::InProcess{[&](TrialHandle& trial) {
        bench.wall.turn(turn);
        if (trial.sequence() == 1) return trial.report_final_result(1.0);
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any stopped;
        stopped.wait(lock, trial.stop_token(), [] { return false; });
      }},
      tuning::Random{line(), seed(1)}};
  const SteadyPoint begin = bench.steady.steady_now();
  SteadyPoint first_end{};
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail& trial) {
    if (trial.trial.number == 1) first_end = bench.steady.steady_now();
  }});

  const Summary summary = bench.steady.run(experiment.async_run(bench.runtime.context()));

  CHECK(summary.count(TrialJobStatus::early_stopped) == 1);
  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  CHECK(first_end - begin >= 1h);
  CHECK(first_end - begin < at_most);
}

TEST_CASE("experiment: a wall clock that is set changes no pause before a retry", "[experiment][limits]") {
  const auto turn = GENERATE(1, -1) * ten_years;
  Bench bench;
  std::vector<std::uint32_t> attempts;
  Experiment experiment{
      ExperimentOptions{
          .max_trials = 1,
          .max_retries = 2,
          .retry_on = RetryOn::failures,
          .retry_backoff = 1min,
          .handle_signals = false},
      platforms::InProcess{[&](TrialHandle& trial) {
        attempts.push_back(trial.run().attempt);
        bench.wall.turn(turn);
        if (attempts.size() < 3) throw std::runtime_error("not yet");
        trial.report_final_result(1.0);
      }},
      tuning::Random{line(), seed(1)}};
  const SteadyPoint begin = bench.steady.steady_now();
  experiment.observe({.on_progress = [&](const Progress& now) {
    if (now.retrying == 1) bench.wall.turn(turn);
  }});

  const Summary summary = bench.steady.run(experiment.async_run(bench.runtime.context()));

  CHECK(attempts == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(summary.trials.front().status == TrialJobStatus::succeeded);
  CHECK(bench.steady.steady_now() - begin >= 2min);  // one and two minutes, a quarter less at most
  CHECK(bench.steady.steady_now() - begin < at_most);
}
