// What an experiment owes to its training service, and what it makes of one that breaks a promise: nothing hangs, and
// nothing that was recorded is lost.

#include "support/co_test.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/event.hpp>
#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

ExperimentOptions options(std::uint64_t trials, std::size_t concurrency) {
  return {.concurrency = concurrency, .max_trials = trials, .handle_signals = false};
}

/// What a test decides for a platform, and sees of it.
struct Desk {
  struct Cancelled {
    RunId run;
    SteadyPoint at;
  };

  std::size_t max_in_flight = 1;
  bool ends = true;                                ///< runs end as soon as they have begun
  bool holds = false;                              ///< submissions wait
  bool gives_up = false;                           ///< submissions are cancelled by the platform itself
  std::string queued;                              ///< why runs wait before they begin; empty: they do not
  bool stops_events = false;                       ///< the same of its events
  std::function<JobReport(const Intent&)> report;  ///< empty: adoption fails

  std::size_t inside = 0;  ///< submissions under way
  std::size_t most = 0;
  std::size_t stopping = 0;  ///< cancellations under way
  std::size_t most_stopping = 0;
  std::set<RunId> known;
  std::set<RunId> unsettled;  ///< ended or not, their messages have not all come
  std::vector<Cancelled> cancelled;
  std::deque<JobEvent> events;
  async::event changed;
};

/// A platform that takes a moment for everything.
class Platform {
 public:
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "desk";

  explicit Platform(std::shared_ptr<Desk> desk) : desk_(std::move(desk)) {}

  Capabilities capabilities() const noexcept {
    Capabilities result;
    result.max_in_flight = desk_->max_in_flight;
    result.needs_command = false;
    return result;
  }
  awaitable<void> start(Context& context) {
    context_ = &context;
    co_return;
  }
  awaitable<ResourceSnapshot> resources() { co_return ResourceSnapshot(); }

  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    const RunId run = form.run;
    desk_->most = std::max(desk_->most, ++desk_->inside);
    for (int turn = 0; turn < 3; ++turn) co_await boost::asio::post(context_->executor(), boost::asio::use_awaitable);
    while (desk_->holds) {
      auto change = desk_->changed.wait();
      co_await std::move(change);
    }
    --desk_->inside;
    if (desk_->gives_up) throw boost::system::system_error(boost::asio::error::operation_aborted, "the line is dead");
    desk_->known.insert(run);
    if (!desk_->queued.empty()) desk_->events.emplace_back(JobQueued(run, desk_->queued));
    desk_->events.emplace_back(JobStarted(run, JobId("job"), context_->clock().now()));
    if (desk_->ends) end(run, JobEnd(EndKind::exited, 0));
    desk_->changed.notify();
    co_return JobId("job");
  }

  awaitable<void> cancel_trial_job(RunId run, StopReason why) {
    if (!desk_->known.contains(run)) throw Error(Errc::no_such_job, "desk: there is no run " + to_string(run));
    desk_->most_stopping = std::max(desk_->most_stopping, ++desk_->stopping);
    for (int turn = 0; turn < 3; ++turn) co_await boost::asio::post(context_->executor(), boost::asio::use_awaitable);
    --desk_->stopping;
    desk_->cancelled.push_back(Desk::Cancelled{run, context_->clock().steady_now()});
    JobEnd how(EndKind::killed);
    how.why = why;
    end(run, std::move(how));
    desk_->changed.notify();
    co_return;
  }

  awaitable<JobEvent> next_event() {
    if (desk_->stops_events) throw boost::system::system_error(boost::asio::error::operation_aborted, "socket");
    while (desk_->events.empty()) {
      auto change = desk_->changed.wait();
      co_await std::move(change);
    }
    JobEvent event = std::move(desk_->events.front());
    desk_->events.pop_front();
    co_return event;
  }

  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs) {
    if (!desk_->report) throw Error(Errc::connection_lost, "desk: the cluster does not answer");
    std::vector<JobReport> reports;
    for (const Intent& intent : runs) {
      reports.push_back(desk_->report(intent));
      desk_->known.insert(intent.run);
    }
    co_return reports;
  }
  awaitable<void> clean_up() { co_return; }

  awaitable<TrialMessage> next_message() {
    while (true) {
      auto change = desk_->changed.wait();
      co_await std::move(change);
    }
  }
  awaitable<void> acknowledge(Receipt) { co_return; }
  awaitable<void> send(RunId, Parameters) { co_return; }
  awaitable<void> settle(RunId run) {
    while (desk_->unsettled.contains(run)) {
      auto change = desk_->changed.wait();
      co_await std::move(change);
    }
  }

 private:
  void end(RunId run, JobEnd how) {
    desk_->known.erase(run);
    desk_->events.emplace_back(JobEnded(run, std::move(how), context_->clock().now()));
  }

  std::shared_ptr<Desk> desk_;
  Context* context_ = nullptr;
};
static_assert(ResumableService<Platform> && CarriesMessages<Platform>);

/// Records in memory that outlive the experiment.
class Shared {
 public:
  using role = nni::role::data_store;

  explicit Shared(std::shared_ptr<datastore::Memory> kept) : kept_(std::move(kept)) {}

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id) { return kept_->open(context, std::move(id)); }
  StorePosition append(std::span<const StoreEvent> events) { return kept_->append(events); }
  awaitable<void> written(StorePosition at) { return kept_->written(at); }
  awaitable<void> synced(StorePosition at) { return kept_->synced(at); }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) { return kept_->load(trial); }
  awaitable<TrialPage> page(TrialQuery query) { return kept_->page(std::move(query)); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) { return kept_->metrics(trial); }
  awaitable<void> close() { return kept_->close(); }

 private:
  std::shared_ptr<datastore::Memory> kept_;
};
static_assert(DataStore<Shared>);

/// An advisor that suggests nothing and writes down what it is told after a resume.
class Learner {
 public:
  using role = nni::role::advisor;
  using Lesson = std::pair<TrialOutcome, std::vector<double>>;

  explicit Learner(std::shared_ptr<std::vector<Lesson>> lessons) : lessons_(std::move(lessons)) {}

  awaitable<void> start(Context&, const SearchSpace&, const Objectives&) {
    never_ = std::make_unique<async::event>();
    co_return;
  }
  awaitable<void> request(std::size_t) { co_return; }
  awaitable<void> report(const Metric&) { co_return; }
  awaitable<void> trial_ended(const TrialOutcome&) { co_return; }
  awaitable<Order> next_order() {
    auto never = never_->wait();
    co_await std::move(never);
    co_return Order{};
  }
  awaitable<void> stop() { co_return; }
  void replay(const TrialOutcome& outcome, const std::vector<double>& history) {
    lessons_->emplace_back(outcome, history);
  }

 private:
  std::shared_ptr<std::vector<Lesson>> lessons_;
  std::unique_ptr<async::event> never_;
};
static_assert(Advisor<Learner>);

constexpr TimePoint long_ago = from_epoch_ms(1'600'000'000'000);

/// What a manager had recorded before it was killed: so many trials that run.
awaitable<void> record_first_manager(Context& context, std::shared_ptr<datastore::Memory> store, std::uint64_t trials) {
  auto opening = store->open(context, ExperimentId("abc"));
  co_await std::move(opening);
  std::vector<StoreEvent> events;
  ProfileChanged profile;
  profile.id = ExperimentId("abc");
  profile.name = "kept";
  profile.seed = 77;
  profile.status = ExperimentStatus::running;
  profile.exec_duration = 5min;
  profile.start_time = long_ago;
  events.emplace_back(profile);
  for (std::uint64_t number = 1; number <= trials; ++number) {
    const RunId run{TrialId{number}, 0};
    const Parameters parameters = ParametersWriter{}.add("x", 0.5).finish();
    events.emplace_back(TrialOrdered(run.trial, ParameterId{number - 1}, parameters, long_ago));
    events.emplace_back(RunIntended(run, Placement(), long_ago));
    events.emplace_back(RunStarted(JobStarted(run, JobId("job"), long_ago)));
  }
  store->append(events);
  auto closing = store->close();
  co_await std::move(closing);
}

/// The first of them has ended meanwhile, with two values and a result.
awaitable<void> record_result(Context& context, std::shared_ptr<datastore::Memory> store) {
  auto opening = store->open(context, ExperimentId("abc"));
  co_await std::move(opening);
  const RunId run{TrialId{1}, 0};
  std::vector<StoreEvent> events;
  events.emplace_back(MetricReceived(Metric(run, MetricKind::intermediate, 0, "0.5", long_ago)));
  events.emplace_back(MetricReceived(Metric(run, MetricKind::intermediate, 1, "0.25", long_ago)));
  events.emplace_back(MetricReceived(Metric(run, MetricKind::final, 0, "0.125", long_ago)));
  RunEnded ended;
  ended.run = run;
  ended.status = TrialJobStatus::succeeded;
  ended.at = long_ago;
  events.emplace_back(ended);
  store->append(events);
  auto closing = store->close();
  co_await std::move(closing);
}

awaitable<void> let_go(Context& context, std::shared_ptr<Desk> desk) {
  // Enough turns for everything that is on its way.
  for (int turn = 0; turn < 50; ++turn) co_await boost::asio::post(context.executor(), boost::asio::use_awaitable);
  desk->holds = false;
  desk->changed.notify();
}

}  // namespace

CO_TEST_CASE("experiment: a platform gets no more submissions at a time than it takes", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 3;
  Experiment experiment{
      options(20, 10), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 20);
  CHECK(desk->most == 3);
}

CO_TEST_CASE("experiment: a cancellation that comes while its run is submitted follows the submission",
             "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 4;
  desk->holds = true;
  desk->ends = false;
  Experiment experiment{
      options(1, 1), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  bool asked = false;
  experiment.observe(Observer{.on_progress = [&](const Progress&) {
    if (desk->inside == 0 || std::exchange(asked, true)) return;
    control.cancel(TrialId{1});
    boost::asio::co_spawn(ctx.executor(), let_go(ctx, desk), boost::asio::detached);
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(asked);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
  CHECK(desk->cancelled.size() == 1);
}

CO_TEST_CASE(
    "experiment: at a stop live trials are stopped beside each other, no more at a time than the platform takes",
    "[experiment][service][stop]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 4;
  desk->ends = false;
  Experiment experiment{
      options(6, 6), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 6) control.stop();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.status == ExperimentStatus::stopped);
  CHECK(desk->cancelled.size() == 6);
  CHECK(desk->most_stopping == 4);
}

CO_TEST_CASE("experiment: a run whose messages take their time keeps back no other's end", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->unsettled.insert(RunId{TrialId{1}, 0});
  Experiment experiment{
      options(6, 3), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  std::vector<std::uint64_t> ended;
  experiment.observe(Observer{.on_trial_ended = [&](const TrialJobDetail& trial) {
    ended.push_back(trial.trial.number);
    if (ended.size() != 5) return;
    desk->unsettled.clear();
    desk->changed.notify();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 6);
  REQUIRE(ended.size() == 6);
  CHECK(ended.back() == 1);
}

CO_TEST_CASE("experiment: while its last trials run there are no more, with NNI's name for that",
             "[experiment][service][status]") {
  const bool by_tuner = GENERATE(false, true);
  const auto desk = std::make_shared<Desk>();
  desk->unsettled.insert(RunId{TrialId{3}, 0});
  ExperimentOptions settings = options(3, 4);
  if (by_tuner) settings.max_trials.reset();
  const SearchSpace space = by_tuner ? SearchSpace{choice("kind", {"a", "b", "c"})} : line();
  Experiment experiment{
      settings, Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{space, seed(1)}};
  const ExperimentStatus expected = by_tuner ? ExperimentStatus::tuner_no_more_trial : ExperimentStatus::no_more_trial;
  std::set<ExperimentStatus> shown;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    shown.insert(now.status);
    if (now.status != expected || now.finished != 2) return;
    desk->unsettled.clear();
    desk->changed.notify();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(shown == std::set<ExperimentStatus>{ExperimentStatus::running, expected});
}

CO_TEST_CASE("experiment: why a platform kept a run waiting is forgotten when the run has begun",
             "[experiment][service][status]") {
  const auto desk = std::make_shared<Desk>();
  desk->ends = false;
  desk->queued = "three jobs are before it";
  Experiment experiment{
      options(1, 1), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::optional<std::string> reason;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 0 || reason) return;
    reason = now.waiting_reason;
    control.stop();
  }});

  auto running = experiment.async_run(ctx);
  co_await std::move(running);

  CHECK(reason == "");
}

CO_TEST_CASE("experiment: one whose runs cannot start ends with the reason, and may be mended and resumed",
             "[experiment][service][start]") {
  const auto desk = std::make_shared<Desk>();
  desk->gives_up = true;
  const auto kept = std::make_shared<datastore::Memory>();
  ExperimentOptions settings = options(1, 3);
  settings.id = "abc";
  settings.max_trials.reset();
  settings.max_failed_starts = 5;
  std::string reason;
  try {
    Experiment experiment{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};
    auto running = experiment.async_run(ctx);
    co_await std::move(running);
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::spawn_failed));
    reason = error.what();
  }

  CHECK_THAT(reason, Catch::Contains("5 runs in a row") && Catch::Contains("the line is dead"));
  auto opening = kept->open(ctx, ExperimentId("abc"));
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  auto closing = kept->close();
  co_await std::move(closing);
  CHECK(snapshot.profile.status == ExperimentStatus::error);
  CHECK_THAT(snapshot.profile.message, Catch::Contains("the line is dead"));
  CHECK(snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] >= 5);
  CHECK(snapshot.trials <= 8);

  desk->gives_up = false;
  settings.resume = Resume::always;
  settings.max_trials = 10;
  Experiment again{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};
  auto running = again.async_run(ctx);
  const Summary summary = co_await std::move(running);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 10);
}

CO_TEST_CASE("experiment: a submission that its platform cancels itself fails the trial", "[experiment][service]") {
  for (std::size_t in_flight = 1; in_flight <= 4; in_flight += 3) {
    const auto desk = std::make_shared<Desk>();
    desk->max_in_flight = in_flight;
    desk->gives_up = true;
    Experiment experiment{
        options(2, 2), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};

    auto running = experiment.async_run(ctx);
    const Summary summary = co_await std::move(running);

    CHECK(summary.count(TrialJobStatus::failed) == 2);
    CHECK_THAT(summary.failures.front().message, Catch::Contains("the line is dead"));
  }
}

CO_TEST_CASE("experiment: a platform whose events end by themselves ends it with a reason", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->stops_events = true;
  Experiment experiment{
      options(2, 2), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  std::string reason;

  try {
    auto running = experiment.async_run(ctx);
    co_await std::move(running);
  } catch (const std::exception& error) {
    reason = error.what();
  }

  CHECK_THAT(reason, Catch::Contains("events of the training service"));
}

CO_TEST_CASE("experiment: one whose runs cannot be adopted keeps everything that was recorded of it",
             "[experiment][service][resume]") {
  const auto kept = std::make_shared<datastore::Memory>();
  auto recording = record_first_manager(ctx, kept, 1);
  co_await std::move(recording);
  ExperimentOptions settings = options(4, 1);
  settings.id = "abc";
  settings.resume = Resume::always;
  Experiment experiment{settings, Platform{std::make_shared<Desk>()}, Shared{kept}, tuning::Random{line(), seed(1)}};
  std::string reason;

  try {
    auto running = experiment.async_run(ctx);
    co_await std::move(running);
  } catch (const std::exception& error) {
    reason = error.what();
  }

  CHECK_THAT(reason, Catch::Contains("the cluster does not answer"));
  auto opening = kept->open(ctx, ExperimentId("abc"));
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  CHECK(snapshot.profile.status == ExperimentStatus::error);
  CHECK(snapshot.profile.id == ExperimentId("abc"));
  CHECK(snapshot.profile.name == "kept");
  CHECK(snapshot.profile.seed == 77);
  CHECK(snapshot.profile.start_time == long_ago);
  CHECK(snapshot.profile.exec_duration >= 5min);
  CHECK(snapshot.profile.exec_duration < 6min);
  REQUIRE(snapshot.unfinished.size() == 1);
  CHECK(snapshot.unfinished.front().open_run.has_value());
}

TEST_CASE("experiment: of adopted runs the one that has run longest reaches its limit first",
          "[experiment][service][resume][limits]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  const auto kept = std::make_shared<datastore::Memory>();
  runtime.run(record_first_manager(runtime.context(), kept, 2));
  const auto desk = std::make_shared<Desk>();
  desk->report = [&clock](const Intent& intent) {
    JobReport report(intent.run, JobReport::State::running);
    report.started = clock.now() - (intent.run.trial.number == 1 ? 10min : 50min);
    return report;
  };
  ExperimentOptions settings = options(2, 2);
  settings.id = "abc";
  settings.resume = Resume::always;
  settings.max_trial_duration = 1h;
  Experiment experiment{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};

  const Summary summary = clock.run(experiment.async_run(runtime.context()));

  CHECK(summary.count(TrialJobStatus::early_stopped) == 2);
  REQUIRE(desk->cancelled.size() == 2);
  CHECK(desk->cancelled[0].run.trial == TrialId{2});
  CHECK(desk->cancelled[1].at - desk->cancelled[0].at == 40min);
}

CO_TEST_CASE("experiment: an advisor of the caller's is told the history of each trial after a resume",
             "[experiment][service][resume]") {
  const auto kept = std::make_shared<datastore::Memory>();
  auto recording = record_first_manager(ctx, kept, 1);
  co_await std::move(recording);
  auto ending = record_result(ctx, kept);
  co_await std::move(ending);
  ExperimentOptions settings = options(1, 1);
  settings.id = "abc";
  settings.resume = Resume::always;
  const auto lessons = std::make_shared<std::vector<Learner::Lesson>>();
  Experiment experiment{settings, Platform{std::make_shared<Desk>()}, Shared{kept}, Learner{lessons}};

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 1);
  REQUIRE(lessons->size() == 1);
  CHECK(lessons->front().first.value == 0.125);
  CHECK(lessons->front().second == std::vector<double>{0.5, 0.25});
}
