#pragma once

// A platform whose every move a test decides, and the records of experiments that ran on it.

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
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

namespace nni_test {

using namespace nni;
using namespace std::chrono_literals;

inline SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

inline ExperimentOptions options(std::uint64_t trials, std::size_t concurrency) {
  return {.concurrency = concurrency, .max_trials = trials, .handle_signals = false};
}

/// The exception that an experiment ends with, as text; empty for one that ends well.
template <class Any>
awaitable<std::string> reason_of_end(Any& experiment, Context& ctx) {
  std::string reason;
  try {
    auto running = experiment.async_run(ctx);
    co_await std::move(running);
  } catch (const std::exception& error) {
    reason = error.what();
  }
  co_return reason;
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
  std::deque<TrialMessage> messages;
  std::size_t acknowledged = 0;
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
    if (!desk_->report && !runs.empty()) throw Error(Errc::connection_lost, "desk: the cluster does not answer");
    std::vector<JobReport> reports;
    for (const Intent& intent : runs) {
      reports.push_back(desk_->report(intent));
      desk_->known.insert(intent.run);
    }
    co_return reports;
  }
  awaitable<void> clean_up() { co_return; }

  awaitable<TrialMessage> next_message() {
    while (desk_->messages.empty()) {
      auto change = desk_->changed.wait();
      co_await std::move(change);
    }
    TrialMessage message = std::move(desk_->messages.front());
    desk_->messages.pop_front();
    co_return message;
  }
  awaitable<void> acknowledge(Receipt) {
    ++desk_->acknowledged;
    desk_->changed.notify();
    co_return;
  }
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

inline constexpr TimePoint long_ago = from_epoch_ms(1'600'000'000'000);

/// What a manager had recorded before it was killed: so many trials that run.
inline awaitable<void> record_first_manager(
    Context& context, std::shared_ptr<datastore::Memory> store, std::uint64_t trials) {
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
inline awaitable<void> record_result(Context& context, std::shared_ptr<datastore::Memory> store) {
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

inline awaitable<void> let_go(Context& context, std::shared_ptr<Desk> desk) {
  // Enough turns for everything that is on its way.
  for (int turn = 0; turn < 50; ++turn) co_await boost::asio::post(context.executor(), boost::asio::use_awaitable);
  desk->holds = false;
  desk->changed.notify();
}

}  // namespace nni_test
