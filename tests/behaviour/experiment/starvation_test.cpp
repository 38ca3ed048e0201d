// One source floods: everything else goes on, within a bounded number of the flood's elements.

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/event.hpp>
#include <nni/concepts/clock.hpp>
#include <nni/nni.hpp>

#include "behaviour/experiment/desk.hpp"

using namespace nni;
using namespace nni_test;
using namespace std::chrono_literals;

namespace {

/// A flood that stops by itself, so that a test whose loop never lets anything else run fails instead of hanging.
constexpr std::uint64_t most_elements = 300'000;

/// Elements of the flood in one turn of the executor at most, and what all loops together may add to that.
constexpr std::uint64_t most_per_turn = 512;

enum class Source { messages, events, orders };

/// A platform with one run at a time and an advisor's orders; one of the three sources floods while `flows`.
struct Flood {
  explicit Flood(Source what) : source(what) {}

  /// One more element of the flood; false when it is over.
  bool next() {
    if (!flows || elements >= most_elements) return false;
    ++elements;
    ++since_turn;
    most_in_a_turn = std::max(most_in_a_turn, since_turn);
    if (each) each(elements);
    return true;
  }

  Source source;
  bool flows = false;
  std::uint64_t elements = 0;
  std::uint64_t since_turn = 0;
  std::uint64_t most_in_a_turn = 0;
  std::function<void(std::uint64_t)> each;  ///< called with the number of each element
  std::optional<RunId> run;
  std::optional<JobEnd> end;  ///< of the run, not delivered yet
  bool started = false;
  std::optional<std::uint64_t> cancelled_at;  ///< element in which the run was told to stop
  std::optional<StopReason> why;
  async::event changed;
};

class FloodingService {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "flood";

  explicit FloodingService(std::shared_ptr<Flood> flood) : flood_(std::move(flood)) {}

  Capabilities capabilities() const noexcept { return Capabilities{.needs_command = false}; }
  awaitable<void> start(Context& context) {
    context_ = &context;
    co_return;
  }
  awaitable<ResourceSnapshot> resources() { co_return ResourceSnapshot(); }
  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    flood_->run = form.run;
    flood_->changed.notify();
    co_return JobId("job");
  }
  awaitable<void> cancel_trial_job(RunId, StopReason why) {
    flood_->cancelled_at = flood_->elements;
    flood_->why = why;
    JobEnd end(EndKind::killed);
    end.why = why;
    flood_->end = std::move(end);
    flood_->changed.notify();
    co_return;
  }
  awaitable<JobEvent> next_event() {
    while (true) {
      if (flood_->end && flood_->run)
        co_return JobEvent(JobEnded(*std::exchange(flood_->run, std::nullopt),
                                    *std::exchange(flood_->end, std::nullopt), context_->clock().now()));
      if (flood_->run && !std::exchange(flood_->started, true)) {
        flood_->flows = true;
        flood_->changed.notify();
        co_return JobEvent(JobStarted(*flood_->run, JobId("job"), context_->clock().now()));
      }
      if (flood_->source == Source::events && flood_->next()) co_return JobEvent(EnvironmentChanged());
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> clean_up() { co_return; }

  awaitable<TrialMessage> next_message() {
    while (true) {
      if (flood_->source == Source::messages && flood_->run && flood_->next()) {
        Metric metric(*flood_->run, MetricKind::intermediate, static_cast<std::uint32_t>(flood_->elements - 1), "1.0",
                      context_->clock().now());
        co_return TrialMessage(std::move(metric), Receipt());
      }
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> acknowledge(Receipt) { co_return; }
  awaitable<void> send(RunId, Parameters) { co_return; }
  awaitable<void> settle(RunId) { co_return; }

 private:
  std::shared_ptr<Flood> flood_;
  Context* context_ = nullptr;
};
static_assert(CarriesMessages<FloodingService>);

/// Orders one trial, and perhaps stops of trials that nobody knows, without an end.
class FloodingAdvisor {
 public:
  using role = nni::role::advisor;

  explicit FloodingAdvisor(std::shared_ptr<Flood> flood) : flood_(std::move(flood)) {}

  awaitable<void> start(Context&, const SearchSpace&, const Objectives&) { co_return; }
  awaitable<void> request(std::size_t) {
    asked_ = true;
    flood_->changed.notify();
    co_return;
  }
  awaitable<void> report(const Metric&) { co_return; }
  awaitable<void> trial_ended(const TrialOutcome&) { co_return; }
  awaitable<Order> next_order() {
    while (true) {
      if (std::exchange(asked_, false)) co_return Order(NewTrial(ParameterId{0}, Parameters()));
      if (flood_->source == Source::orders && flood_->next()) co_return Order(KillTrial(TrialId{999}));
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> stop() { co_return; }

 private:
  std::shared_ptr<Flood> flood_;
  bool asked_ = false;
};
static_assert(Advisor<FloodingAdvisor>);

/// Goes to the end of the executor's queue again and again, as a timer or a socket that is always ready would.
awaitable<void> count_turns(Context& context, std::shared_ptr<Flood> flood) {
  while (flood->elements < most_elements) {
    auto turn = boost::asio::post(context.executor(), boost::asio::use_awaitable);
    co_await std::move(turn);
    flood->since_turn = 0;
  }
}

ExperimentOptions one_trial() { return {.max_trials = 1, .handle_signals = false}; }

const Source sources[] = {Source::messages, Source::events, Source::orders};

}  // namespace

TEST_CASE("a flood of one source leaves a turn to everything else on the executor", "[experiment][starvation]") {
  for (const Source source : sources) {
    DYNAMIC_SECTION("source " << static_cast<int>(source)) {
      const auto flood = std::make_shared<Flood>(source);
      Runtime runtime;
      Experiment experiment{one_trial(), FloodingService(flood), FloodingAdvisor(flood)};
      flood->each = [&](std::uint64_t element) {
        if (element == 20'000) experiment.request_stop();
      };
      boost::asio::co_spawn(runtime.io(), count_turns(runtime.context(), flood), boost::asio::detached);

      const Summary summary = runtime.run(experiment.async_run(runtime.context()));

      CHECK(summary.status == ExperimentStatus::stopped);
      CHECK(flood->most_in_a_turn <= most_per_turn);
      REQUIRE(flood->cancelled_at);
      CHECK(*flood->cancelled_at <= 20'000 + 10 * most_per_turn);
    }
  }
}

namespace {

/// A clock whose time a test moves on the executor, in the midst of everything else.
class PushedClock {
 public:
  [[nodiscard]] TimePoint now() const noexcept { return long_ago; }
  [[nodiscard]] SteadyPoint steady_now() const noexcept { return now_; }
  awaitable<void> sleep_until(SteadyPoint deadline) {
    while (now_ < deadline) {
      auto change = moved_.wait();
      co_await std::move(change);
    }
  }
  void push(Duration by) {
    now_ += by;
    moved_.notify();
  }

 private:
  SteadyPoint now_{};
  async::event moved_;
};
static_assert(Clock<PushedClock>);

}  // namespace

TEST_CASE("a limit on the time of a trial stops it while one source floods", "[experiment][starvation][limits]") {
  for (const Source source : sources) {
    DYNAMIC_SECTION("source " << static_cast<int>(source)) {
      const auto flood = std::make_shared<Flood>(source);
      PushedClock clock;
      Runtime runtime(RuntimeOptions{.clock = clock});
      ExperimentOptions options = one_trial();
      options.max_trial_duration = 5s;
      Experiment experiment{std::move(options), FloodingService(flood), FloodingAdvisor(flood)};
      flood->each = [&](std::uint64_t element) {
        if (element == 20'000) boost::asio::post(runtime.io(), [&] { clock.push(5s); });
      };

      const Summary summary = runtime.run(experiment.async_run(runtime.context()));

      CHECK(summary.finished == 1);
      REQUIRE(flood->cancelled_at);
      CHECK(flood->why == StopReason::time_limit);
      CHECK(*flood->cancelled_at <= 20'000 + 10 * most_per_turn);
    }
  }
}

TEST_CASE("Ctrl-C stops an experiment while one source floods", "[experiment][starvation][stop]") {
  for (const Source source : sources) {
    DYNAMIC_SECTION("source " << static_cast<int>(source)) {
      const auto flood = std::make_shared<Flood>(source);
      ExperimentOptions options = one_trial();
      options.handle_signals = true;
      Experiment experiment{std::move(options), FloodingService(flood), FloodingAdvisor(flood)};
      flood->each = [](std::uint64_t element) {
        if (element == 20'000) std::raise(SIGINT);
      };

      const Summary summary = experiment.run();

      CHECK(summary.status == ExperimentStatus::stopped);
      REQUIRE(flood->cancelled_at);
      CHECK(*flood->cancelled_at <= 20'000 + 10 * most_per_turn);
    }
  }
}

namespace {

/// Keeps records back until so many were appended, then says of all at once that they are safe.
class LateStore : public Shared {
 public:
  LateStore(std::shared_ptr<datastore::Memory> kept, std::shared_ptr<Flood> flood, std::uint64_t late)
      : Shared(std::move(kept)), flood_(std::move(flood)), late_(late) {}

  awaitable<void> written(StorePosition) { return wait(); }
  awaitable<void> synced(StorePosition) { return wait(); }

 private:
  awaitable<void> wait() {
    while (flood_->flows && flood_->elements < late_) {
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }

  std::shared_ptr<Flood> flood_;
  std::uint64_t late_;
};

/// Counts the acknowledgements between two turns of the executor.
struct Acknowledged {
  std::uint64_t all = 0;
  std::uint64_t since_turn = 0;
  std::uint64_t most_in_a_turn = 0;
};

/// Values of one kind, so many at once, then the end of the run.
class BurstService {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "burst";

  BurstService(std::shared_ptr<Flood> flood, std::shared_ptr<Acknowledged> acknowledged, MetricKind kind,
               std::uint64_t values)
      : flood_(std::move(flood)), acknowledged_(std::move(acknowledged)), kind_(kind), values_(values) {}

  Capabilities capabilities() const noexcept { return Capabilities{.needs_command = false}; }
  awaitable<void> start(Context& context) {
    context_ = &context;
    co_return;
  }
  awaitable<ResourceSnapshot> resources() { co_return ResourceSnapshot(); }
  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    flood_->run = form.run;
    flood_->changed.notify();
    co_return JobId("job");
  }
  awaitable<void> cancel_trial_job(RunId, StopReason) { co_return; }
  awaitable<JobEvent> next_event() {
    while (true) {
      if (flood_->run && !std::exchange(flood_->started, true)) {
        flood_->flows = true;
        flood_->changed.notify();
        co_return JobEvent(JobStarted(*flood_->run, JobId("job"), context_->clock().now()));
      }
      if (acknowledged_->all == values_ && !std::exchange(ended_, true))
        co_return JobEvent(JobEnded(*flood_->run, JobEnd(EndKind::exited, 0), context_->clock().now()));
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> clean_up() { co_return; }
  awaitable<TrialMessage> next_message() {
    while (true) {
      if (flood_->flows && flood_->elements < values_) {
        const auto sequence = static_cast<std::uint32_t>(flood_->elements++);
        if (flood_->elements == values_) flood_->changed.notify();
        Metric metric(*flood_->run, kind_, sequence, std::to_string(sequence), context_->clock().now());
        co_return TrialMessage(std::move(metric), Receipt());
      }
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> acknowledge(Receipt) {
    ++acknowledged_->since_turn;
    acknowledged_->most_in_a_turn = std::max(acknowledged_->most_in_a_turn, acknowledged_->since_turn);
    if (++acknowledged_->all == values_) flood_->changed.notify();
    co_return;
  }
  awaitable<void> send(RunId, Parameters) { co_return; }
  awaitable<void> settle(RunId) { co_return; }

 private:
  std::shared_ptr<Flood> flood_;
  std::shared_ptr<Acknowledged> acknowledged_;
  MetricKind kind_;
  std::uint64_t values_;
  Context* context_ = nullptr;
  bool ended_ = false;
};
static_assert(CarriesMessages<BurstService>);

awaitable<void> count_turns_of(Context& context, std::shared_ptr<Acknowledged> acknowledged, std::uint64_t values) {
  while (acknowledged->all < values) {
    auto turn = boost::asio::post(context.executor(), boost::asio::use_awaitable);
    co_await std::move(turn);
    acknowledged->since_turn = 0;
  }
}

}  // namespace

TEST_CASE("effects that become due all at once leave a turn to everything else", "[experiment][starvation]") {
  // Intermediate values wait until they are written, final ones until they are synced.
  for (const MetricKind kind : {MetricKind::intermediate, MetricKind::final}) {
    DYNAMIC_SECTION("kind " << static_cast<int>(kind)) {
      constexpr std::uint64_t values = 4'000;
      const auto flood = std::make_shared<Flood>(Source::messages);
      const auto acknowledged = std::make_shared<Acknowledged>();
      Runtime runtime;
      Experiment experiment{
          one_trial(), BurstService(flood, acknowledged, kind, values),
          LateStore(std::make_shared<datastore::Memory>(), flood, values), tuning::Random{line(), seed(1)}};
      boost::asio::co_spawn(
          runtime.io(), count_turns_of(runtime.context(), acknowledged, values), boost::asio::detached);

      const Summary summary = runtime.run(experiment.async_run(runtime.context()));

      CHECK(summary.finished == 1);
      CHECK(acknowledged->all == values);
      CHECK(acknowledged->most_in_a_turn <= most_per_turn);
    }
  }
}

namespace {

/// Never says of a record that it is written, as long as the trial reports.
class SilentStore : public Shared {
 public:
  SilentStore(std::shared_ptr<datastore::Memory> kept, std::shared_ptr<Flood> flood)
      : Shared(std::move(kept)), flood_(std::move(flood)) {}

  awaitable<void> written(StorePosition) {
    while (flood_->flows) {
      auto change = flood_->changed.wait();
      co_await std::move(change);
    }
  }

 private:
  std::shared_ptr<Flood> flood_;
};

awaitable<void> end_flood(Context& context, std::shared_ptr<Flood> flood) {
  std::uint64_t before = 1;
  // Until nothing more is taken.
  while (before != flood->elements || flood->elements == 0) {
    before = flood->elements;
    for (int turn = 0; turn < 100; ++turn) co_await boost::asio::post(context.executor(), boost::asio::use_awaitable);
  }
  flood->flows = false;
  flood->end = JobEnd(EndKind::exited, 0);
  flood->changed.notify();
}

}  // namespace

TEST_CASE("messages wait in their channel while 10,000 effects wait for a slow store", "[experiment][starvation]") {
  const auto flood = std::make_shared<Flood>(Source::messages);
  Runtime runtime;
  Experiment experiment{one_trial(), FloodingService(flood), SilentStore(std::make_shared<datastore::Memory>(), flood),
                        FloodingAdvisor(flood)};
  boost::asio::co_spawn(runtime.io(), end_flood(runtime.context(), flood), boost::asio::detached);

  const Summary summary = runtime.run(experiment.async_run(runtime.context()));

  CHECK(summary.finished == 1);
  CHECK(flood->elements >= 9'000);
  CHECK(flood->elements <= 11'000);
}

TEST_CASE("a program that changes an experiment without a break leaves time for trials and for a stop",
          "[experiment][starvation][control]") {
  std::atomic<int> ended = 0;
  Experiment experiment{
      ExperimentOptions{.concurrency = 2, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }, {.threads = 2}},
      tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail&) {
    if (++ended == 200) control.stop();
  }});
  std::jthread flood([control](const std::stop_token& over) {
    for (std::size_t count = 0; !over.stop_requested(); ++count) {
      control.set_concurrency(2 + count % 2);
      control.cancel(TrialId{1'000'000 + count});
      control.set_max_duration(1h + std::chrono::seconds(count % 7));
    }
  });

  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::stopped);
  CHECK(ended >= 200);
}
