// A running experiment is steered through its handle.

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>

#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>
#include <nni/tuning/grid.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

/// Trials wait here until a test lets them go.
class Gate {
 public:
  void pass(TrialHandle& trial) {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, trial.stop_token(), [this] { return permits_ > 0; });
    if (permits_ > 0) --permits_;
    --inside_;
    changed_.notify_all();
  }
  void let_go(int trials) {
    const std::lock_guard lock(mutex_);
    permits_ += trials;
    changed_.notify_all();
  }
  void wait_for(int inside) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return inside_ == inside; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int permits_ = 0;
  int inside_ = 0;
};

/// Records in memory that are not synced before the trials have ended, and perhaps never.
class SlowSync {
 public:
  using role = nni::role::data_store;

  /// @param asked  told when somebody waits for the first time
  /// @param fails  the last record is not kept
  SlowSync(std::promise<void> asked, bool fails) : asked_(std::move(asked)), fails_(fails) {}

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id) { return kept_.open(context, std::move(id)); }
  StorePosition append(std::span<const StoreEvent> events) { return kept_.append(events); }
  awaitable<void> written(StorePosition at) { return kept_.written(at); }
  awaitable<void> synced(StorePosition) {
    if (!std::exchange(waited_, true)) {
      asked_.set_value();
      async::event never;
      auto wait = never.wait();
      co_await std::move(wait);
    }
    if (fails_) throw Error(Errc::storage_failed, "this store keeps nothing");
  }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) { return kept_.load(trial); }
  awaitable<TrialPage> page(TrialQuery query) { return kept_.page(query); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) { return kept_.metrics(trial); }
  awaitable<void> close() { return kept_.close(); }

 private:
  datastore::Memory kept_;
  std::promise<void> asked_;
  bool fails_;
  bool waited_ = false;
};
static_assert(DataStore<SlowSync>);

/// A tuner that another search space breaks.
class Brittle {
 public:
  using role = nni::role::tuner;
  static SearchSpace search_space() { return line(); }
  void start(const SearchSpace&, const Objectives&) {}
  void update_search_space(const SearchSpace&) { throw std::runtime_error("the table of results is full"); }
  std::optional<Parameters> generate(ParameterId) { return Parameters(); }
  void observe(const TrialOutcome&) {}
};
static_assert(Tuner<Brittle>);

auto gated(Gate& gate) {
  return platforms::InProcess{
      [&gate](TrialHandle& trial) {
        gate.pass(trial);
        trial.report_final_result(1.0);
      },
      {.threads = 8}};
}

}  // namespace

TEST_CASE("control: a bigger concurrency places trials at once, a smaller one lets running ones end", "[control]") {
  Gate gate;
  std::atomic<int> live_at_most = 0;
  Experiment experiment{ExperimentOptions{.concurrency = 1, .max_trials = 12, .handle_signals = false}, gated(gate),
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::jthread user([&] {
    gate.wait_for(1);
    CHECK(control.set_concurrency(5));
    gate.wait_for(5);
    CHECK(control.set_concurrency(2));
    CHECK(control.wait_until_recorded());
    gate.let_go(3);
    gate.wait_for(2);
    live_at_most = 2;
    gate.let_go(100);
  });

  const Summary summary = experiment.run();

  CHECK(summary.finished == 12);
  CHECK(live_at_most == 2);
}

TEST_CASE("control: budgets of trials and time can be changed both ways", "[control]") {
  Gate gate;
  Experiment experiment{ExperimentOptions{.concurrency = 1, .max_trials = 2, .handle_signals = false}, gated(gate),
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  SECTION("more trials") {
    std::jthread user([&] {
      gate.wait_for(1);
      control.set_max_trials(5);
      gate.let_go(100);
    });
    CHECK(experiment.run().finished == 5);
  }
  SECTION("fewer trials: what was ordered runs to its end") {
    std::jthread user([&] {
      gate.wait_for(1);
      control.set_max_trials(1);
      CHECK(control.wait_until_recorded());
      gate.let_go(100);
    });
    CHECK(experiment.run().finished == 1);
  }
  SECTION("less time, and more again before the end") {
    std::jthread user([&] {
      gate.wait_for(1);
      control.set_max_duration(1ns);
      control.wait_until_recorded();
      control.set_max_duration(1h);
      control.wait_until_recorded();
      gate.let_go(100);
    });
    CHECK(experiment.run().finished == 2);
  }
  SECTION("less time") {
    std::jthread user([&] {
      gate.wait_for(1);
      control.set_max_duration(1ns);
      control.wait_until_recorded();
      gate.let_go(100);
    });
    CHECK(experiment.run().finished == 1);
  }
}

TEST_CASE("control: while it is paused nothing starts, and the handle says so", "[control][pause]") {
  Gate gate;
  Experiment experiment{ExperimentOptions{.concurrency = 2, .max_trials = 6, .handle_signals = false}, gated(gate),
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::jthread user([&] {
    gate.wait_for(2);
    control.pause();
    CHECK(control.wait_until_recorded());
    gate.let_go(2);
    gate.wait_for(0);
    while (control.status().finished < 2) std::this_thread::yield();
    const Progress paused = control.status();
    CHECK(paused.paused);
    CHECK(paused.waiting_reason == "paused by the user");
    CHECK(paused.running == 0);
    CHECK(paused.ordered == 2);
    CHECK(control.phase() == Control::Phase::running);
    control.resume();
    gate.let_go(100);
  });

  const Summary summary = experiment.run();

  CHECK(summary.finished == 6);
  CHECK(control.status().finished == 6);
  CHECK_FALSE(control.status().paused);
}

TEST_CASE("control: time in a pause does not count as active", "[control][pause]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  std::optional<Control> control;
  bool done = false;
  Experiment experiment{
      ExperimentOptions{.max_trials = 1, .max_duration = 1min, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{line(), seed(1)}};
  control = experiment.control();
  control->pause();
  boost::asio::co_spawn(
      runtime.io(), experiment.async_run(runtime.context()), [&](std::exception_ptr failure, Summary summary) {
        done = !failure;
        CHECK(summary.finished == 1);
        CHECK(summary.duration < 1min);
      });

  clock.advance(5min);
  CHECK_FALSE(done);
  CHECK(control->status().elapsed < 1min);
  control->resume();
  while (!done) {
    runtime.io().restart();
    runtime.io().run_one();
  }
}

TEST_CASE("control: one trial is cancelled, whether it runs or waits", "[control][cancel]") {
  Gate gate;
  std::atomic<int> ran = 0;
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .max_trials = 3, .handle_signals = false},
      platforms::InProcess{
          [&](TrialHandle& trial) {
            ++ran;
            gate.pass(trial);
            if (!trial.stop_requested()) trial.report_final_result(1.0);
          },
          {.threads = 4}},
      tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::jthread user([&] {
    gate.wait_for(2);
    control.set_concurrency(1);
    control.cancel(TrialId{1});
    gate.wait_for(1);
    control.cancel(TrialId{999});
    gate.let_go(100);
  });

  const Summary summary = experiment.run();

  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
  CHECK(summary.trials[0].status == TrialJobStatus::user_canceled);
  CHECK(summary.count(TrialJobStatus::succeeded) == 2);
}

TEST_CASE("control: wrong values are refused at once, with the messages of the options", "[control][errors]") {
  Experiment experiment{
      ExperimentOptions{.max_trials = 1, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();

  CHECK_THROWS_WITH(control.set_concurrency(0), Catch::Contains("concurrency") && Catch::Contains("1 and 100000"));
  CHECK_THROWS_WITH(control.set_max_trials(0), Catch::Contains("max_trials") && Catch::Contains("would run nothing"));
  CHECK_THROWS_WITH(control.set_max_duration(0s), Catch::Contains("max_duration") && Catch::Contains("not a positive"));
  CHECK_THROWS_WITH(control.update_search_space(SearchSpace{}), Catch::Contains("space"));
}

TEST_CASE("control: before the run changes wait for it, after its end each call says so", "[control]") {
  std::optional<Control> control;
  {
    Experiment experiment{
        ExperimentOptions{.max_trials = 2, .handle_signals = false},
        platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
        tuning::Random{line(), seed(1)}};
    control = experiment.control();
    CHECK(control->phase() == Control::Phase::before);
    CHECK(control->status().max_trials == 2);
    CHECK(control->set_max_trials(4));

    CHECK(experiment.run().finished == 4);

    CHECK(control->phase() == Control::Phase::ended);
    CHECK_FALSE(control->set_max_trials(8));
  }
  CHECK_FALSE(control->pause());
  CHECK_FALSE(control->stop());
  CHECK_FALSE(control->cancel(TrialId{1}));
  CHECK_FALSE(control->wait_until_recorded());
  CHECK(control->status().status == ExperimentStatus::done);
  CHECK(control->status().finished == 4);
}

TEST_CASE("control: an experiment that never ran lets go of who waits for it", "[control]") {
  std::optional<Control> control;
  std::jthread user;
  std::atomic<bool> answer = true;
  {
    Experiment experiment{
        ExperimentOptions{.max_trials = 2, .handle_signals = false},
        platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
        tuning::Random{line(), seed(1)}};
    control = experiment.control();
    user = std::jthread([&] { answer = control->wait_until_recorded(); });
  }
  user.join();
  CHECK_FALSE(answer);
}

TEST_CASE("control: who waits for records when the experiment ends hears whether the last one was kept", "[control]") {
  const bool fails = GENERATE(false, true);
  CAPTURE(fails);
  std::promise<void> asking;
  const std::shared_future<void> asked = asking.get_future().share();
  Experiment experiment{
      ExperimentOptions{.max_trials = 1, .handle_signals = false},
      // Ends the experiment as soon as somebody waits.
      platforms::InProcess{[asked](TrialHandle&) { asked.wait(); }}, SlowSync{std::move(asking), fails},
      tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::optional<bool> answer;
  auto phase = Control::Phase::before;
  std::jthread user([&] {
    answer = control.wait_until_recorded();
    phase = control.phase();
  });

  if (fails)
    CHECK_THROWS_WITH(experiment.run(), Catch::Contains("keeps nothing"));
  else
    experiment.run();
  user.join();

  CHECK(answer == !fails);
  CHECK(phase == Control::Phase::ended);
}

TEST_CASE("control: handles are used from many threads at a time", "[control][threads]") {
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .max_trials = 400, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }, {.threads = 2}},
      tuning::Random{line(), seed(1)}};
  std::atomic<bool> sane = true;
  std::vector<std::jthread> users;
  for (int user = 0; user < 3; ++user)
    users.emplace_back([&sane, control = experiment.control(), user] {
      for (std::size_t round = 0; round < 100; ++round) {
        control.set_concurrency(1 + round % 4);
        if (user == 0) control.pause();
        control.resume();
        control.cancel(TrialId{1 + round});
        if (control.status().finished > 400) sane = false;
        if (round % 16 == 0) control.wait_until_recorded();
      }
    });

  CHECK(experiment.run().finished == 400);
  CHECK(sane);
}

TEST_CASE("control: suggestions come from another space at once, and earlier results are counted", "[control][space]") {
  Experiment experiment{
      ExperimentOptions{.concurrency = 1, .max_trials = 8, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(trial.parameter<double>("x")); }},
      tuning::Grid{SearchSpace{choice("x", {1, 2, 3, 4, 5, 6})}}};
  const Control control = experiment.control();
  experiment.observe(Observer{.on_trial_ended = [&](const TrialJobDetail& trial) {
    if (trial.trial.number == 3) control.update_search_space(SearchSpace{choice("x", {2, 3, 7, 8, 9})});
  }});

  const Summary summary = experiment.run();

  std::vector<std::string> values;
  for (const TrialJobDetail& trial : summary.trials) values.push_back(*trial.final_value);
  // The fourth may have been ordered before the change; nothing is tried twice.
  CHECK(std::set<std::string>(values.begin(), values.end()).size() == values.size());
  CHECK(values.back() == "9.0");
  CHECK(summary.unfitting == (values[3] == "4.0" ? 2 : 1));
}

TEST_CASE("control: a waiting retry is shown, can be cancelled, and comes back when its pause is over",
          "[control][retry]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
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
        if (attempts.size() < 3) throw std::runtime_error("not yet");
        trial.report_final_result(1.0);
      }},
      tuning::Random{line(), seed(1)}};
  std::size_t seen = 0;
  const Control control = experiment.control();
  SECTION("it comes back") {
    experiment.observe(Observer{.on_progress = [&](const Progress& progress) { seen += progress.retrying; }});
    const SteadyPoint begin = clock.steady_now();

    const Summary summary = clock.run(experiment.async_run(runtime.context()));

    CHECK(attempts == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(summary.trials.front().status == TrialJobStatus::succeeded);
    CHECK(summary.trials.front().attempts == 3);
    CHECK(clock.steady_now() - begin >= 2min);  // one and two minutes, a quarter less at most
    CHECK(seen > 0);
  }
  SECTION("it is cancelled") {
    experiment.observe(Observer{.on_progress = [&](const Progress& progress) {
      if (progress.retrying == 1) control.cancel(TrialId{1});
    }});

    const Summary summary = clock.run(experiment.async_run(runtime.context()));

    CHECK(attempts == std::vector<std::uint32_t>{0});
    CHECK(summary.trials.front().status == TrialJobStatus::user_canceled);
  }
}

TEST_CASE("control: what a tuner or a hook throws on a request ends the experiment, and everything is closed",
          "[control][errors]") {
  std::string logged;
  const ExperimentOptions options{
      .max_trials = 3, .handle_signals = false, .log = [&logged](LogLevel, std::string_view, std::string_view text) {
        logged += text;
      }};
  std::optional<Control> control;
  platforms::InProcess service{[&control](TrialHandle& trial) {
    if (trial.sequence() == 0) control->update_search_space(line());
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any stopped;
    stopped.wait(lock, trial.stop_token(), [] { return false; });
  }};
  std::optional<Summary> told;
  Experiment experiment{options, std::move(service), Brittle{}};
  control = experiment.control();
  experiment.observe(Observer{.on_end = [&told](const Summary& summary) { told = summary; }});

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("the table of results is full"));

  REQUIRE(told);
  CHECK(told->status == ExperimentStatus::error);
  CHECK_THAT(told->message, Catch::Contains("the table of results is full"));
  CHECK(control->phase() == Control::Phase::ended);
}

TEST_CASE("control: a handle that is made while it runs, or after its end, shows how it stands", "[control]") {
  Gate gate;
  Experiment experiment{ExperimentOptions{.concurrency = 1, .max_trials = 2, .handle_signals = false}, gated(gate),
                        tuning::Random{line(), seed(1)}};
  SECTION("while it runs") {
    std::jthread user([&] {
      gate.wait_for(1);
      const Control control = experiment.control();
      CHECK(control.wait_until_recorded());
      CHECK(control.status().status == ExperimentStatus::running);
      CHECK(control.status().ordered == 1);
      gate.let_go(100);
    });
    experiment.run();
  }
  SECTION("after its end") {
    gate.let_go(100);
    experiment.run();
    CHECK(experiment.control().status().status == ExperimentStatus::done);
    CHECK(experiment.control().status().finished == 2);
  }
}
