// What an experiment asks its advisor for, and tells it.

#include "support/catch.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nni/nni.hpp>

#include "behaviour/experiment/desk.hpp"

using namespace nni;
using namespace nni_test;

namespace {

/// Orders what it is asked for, and keeps the final values that it is given.
template <bool every_final, bool commands>
class Counting {
 public:
  using role = nni::role::advisor;
  static constexpr bool hears_every_final = every_final;
  static constexpr bool brings_commands = commands;

  explicit Counting(std::shared_ptr<std::vector<std::string>> finals) : finals_(std::move(finals)) {}

  awaitable<void> start(Context&, const SearchSpace&, const Objectives&) {
    ordered_ = std::make_unique<async::event>();
    co_return;
  }
  awaitable<void> request(std::size_t count) {
    wanted_ += count;
    ordered_->notify();
    co_return;
  }
  awaitable<void> report(const Metric& metric) {
    if (metric.kind == MetricKind::final) finals_->push_back(metric.value);
    co_return;
  }
  awaitable<void> trial_ended(const TrialOutcome&) { co_return; }
  awaitable<Order> next_order() {
    while (wanted_ == 0) {
      auto order = ordered_->wait();
      co_await std::move(order);
    }
    --wanted_;
    co_return Order(NewTrial(ParameterId{next_++}, Parameters()));
  }
  awaitable<void> stop() { co_return; }

 private:
  std::shared_ptr<std::vector<std::string>> finals_;
  std::unique_ptr<async::event> ordered_;
  std::size_t wanted_ = 0;
  std::uint64_t next_ = 0;
};

template <bool every_final>
std::vector<std::string> finals_of_two() {
  const auto finals = std::make_shared<std::vector<std::string>>();
  Experiment experiment{
      options(1, 1), platforms::InProcess{[](TrialHandle& trial) {
        trial.report_final_result("1");
        trial.report_final_result("2");
      }},
      Counting<every_final, false>(finals)};
  static_cast<void>(experiment.run());
  return *finals;
}

/// A service whose trials are commands.
class Commands : public Platform {
 public:
  using Platform::Platform;
  Capabilities capabilities() const noexcept { return Capabilities{.needs_command = true}; }
};

template <bool commands>
void compose() {
  const Experiment experiment{
      options(1, 1), Commands(std::make_shared<Desk>()),
      Counting<false, commands>(std::make_shared<std::vector<std::string>>())};
}

}  // namespace

TEST_CASE("advisor: the first final value of a run, or every one where its flag is true", "[experiment][advisor]") {
  CHECK(finals_of_two<false>() == std::vector<std::string>{"1"});
  CHECK(finals_of_two<true>() == std::vector<std::string>{"1", "2"});
}

TEST_CASE("advisor: an experiment needs trial_command unless the advisor's flag says that it brings commands",
          "[experiment][advisor]") {
  CHECK_THROWS_AS(compose<false>(), ConfigError);
  CHECK_NOTHROW(compose<true>());
}

namespace {

/// Writes down what it is shown.
class Witness {
 public:
  using role = nni::role::assessor;

  explicit Witness(std::shared_ptr<std::vector<std::string>> seen) : seen_(std::move(seen)) {}

  void start(const Objectives&) {}
  Verdict assess(const RunId& run, std::span<const double> history) {
    seen_->push_back("trial " + std::to_string(run.trial.number) + ": " + std::to_string(history.size()) + " values");
    return Verdict::good;
  }
  void trial_ended(const RunId& run, bool succeeded) {
    seen_->push_back(
        "trial " + std::to_string(run.trial.number) + (succeeded ? " succeeded" : " ended without success"));
  }

 private:
  std::shared_ptr<std::vector<std::string>> seen_;
};

/// The second of two trials has reported, and has not ended.
awaitable<void> record_live_history(Context& context, std::shared_ptr<datastore::Memory> store) {
  auto opening = store->open(context, ExperimentId("abc"));
  co_await std::move(opening);
  const RunId run{TrialId{2}, 0};
  std::vector<StoreEvent> events;
  for (std::uint32_t sequence = 0; sequence < 3; ++sequence)
    events.emplace_back(MetricReceived(Metric(run, MetricKind::intermediate, sequence, "0.5", long_ago)));
  store->append(events);
  auto closing = store->close();
  co_await std::move(closing);
}

}  // namespace

TEST_CASE("assessor: after a resume it is shown the histories of ended trials, then of those that still run",
          "[experiment][resume][assessor]") {
  const auto store = std::make_shared<datastore::Memory>();
  const auto seen = std::make_shared<std::vector<std::string>>();
  const auto desk = std::make_shared<Desk>();
  desk->report = [&desk](const Intent& intent) {
    // It ends as soon as it has been taken over.
    desk->events.emplace_back(JobEnded(intent.run, JobEnd(EndKind::exited, 0), long_ago));
    JobReport report(intent.run, JobReport::State::running);
    report.started = long_ago;
    return report;
  };
  Runtime runtime;
  runtime.run(record_first_manager(runtime.context(), store, 2));
  runtime.run(record_result(runtime.context(), store));
  runtime.run(record_live_history(runtime.context(), store));
  ExperimentOptions again = options(2, 2);
  again.id = "abc";
  again.resume = Resume::always;
  Experiment experiment{
      std::move(again), Platform(desk), Shared(store), tuning::Random{line(), seed(1)}, Witness(seen)};

  static_cast<void>(runtime.run(experiment.async_run(runtime.context())));

  CHECK(*seen ==
        std::vector<std::string>{"trial 1: 2 values", "trial 1 succeeded", "trial 2: 3 values", "trial 2 succeeded"});
}

TEST_CASE("control: an observer that waits for records is refused instead of waiting for itself",
          "[experiment][control]") {
  Experiment experiment{options(3, 1), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail&) { control.wait_until_recorded(); }});

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("on the thread that runs the experiment"));
}

namespace {

/// Fails where it is told to.
class Unlucky {
 public:
  using role = nni::role::tuner;

  explicit Unlucky(bool suggests) : suggests_(suggests) {}

  static SearchSpace search_space() { return line(); }
  void start(const SearchSpace&, const Objectives&) {}
  void update_search_space(const SearchSpace&) {}
  std::optional<Parameters> generate(ParameterId) {
    if (!suggests_) throw std::runtime_error("the dice are gone");
    return Parameters();
  }
  void observe(const TrialOutcome&) { throw 42; }

 private:
  bool suggests_;
};

std::string reason_with(bool suggests, Observer observer) {
  Experiment experiment{options(3, 1), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        Unlucky(suggests)};
  experiment.observe(std::move(observer));
  try {
    static_cast<void>(experiment.run());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "it ran";
}

}  // namespace

TEST_CASE("experiment: an exception of a policy or an observer says whose it is", "[experiment][advisor]") {
  CHECK(reason_with(false, {}) == "the tuner's generate threw an exception: the dice are gone");
  CHECK(reason_with(true, {}) == "the tuner's observe threw an object that is not a std::exception");
  CHECK(reason_with(true, {.on_start = [](const ExperimentStart&) { throw std::runtime_error("no screen"); }}) ==
        "the observer's on_start threw an exception: no screen");
}

TEST_CASE("experiment: an observer that fails at the end hides no failure of the run", "[experiment]") {
  CHECK(reason_with(false, {.on_end = [](const Summary&) { throw std::runtime_error("no printer"); }}) ==
        "the tuner's generate threw an exception: the dice are gone");
}

TEST_CASE("experiment: a resume in the other direction is said at the start", "[experiment][resume]") {
  const auto store = std::make_shared<datastore::Memory>();
  std::string first;
  std::string again;
  std::string turned;
  const auto run = [&store](Direction direction, std::uint64_t trials, std::string& remark) {
    ExperimentOptions settings = options(trials, 1);
    settings.id = "abc";
    settings.resume = Resume::if_exists;
    settings.direction = direction;
    Experiment experiment{
        std::move(settings), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
        Shared(store), tuning::Random{line(), seed(1)}};
    experiment.observe({.on_start = [&remark](const ExperimentStart& start) { remark = start.remark; }});
    static_cast<void>(experiment.run());
  };

  run(minimize, 1, first);
  run(minimize, 2, again);
  run(maximize, 3, turned);

  CHECK(first.empty());
  CHECK(again.empty());
  CHECK_THAT(turned, Catch::Contains("the other direction before") && Catch::Contains("to maximize"));
}
