#pragma once

/// @file
/// A platform in memory that keeps the promises of a training service, and one wrong variant of it for each that the suite
/// looks at.

#include <chrono>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/core/error.hpp>

namespace nni_test {

using namespace nni;

enum class Fault {
  none,
  // 1
  never_starts,
  blocks,
  takes_one_at_a_time,
  // 3
  never_answers,
  runs_twice,
  names_the_second_submit,
  forgets_attempts,
  throws_at_a_bad_command,
  gives_no_reason,
  drops_variables,
  fails_in_an_outage,
  refuses_for_good,
  defers_without_a_reason,
  forgets_what_it_deferred,
  starts_in_an_outage,
  loses_others_in_an_outage,
  // 4
  starts_twice,
  ends_twice,
  ends_first,
  never_ends,
  never_tells_starts,
  hides_failures,
  hides_success,
  blames_the_user,
  forgets_exit_codes,
  calls_signals_exits,
  forgets_reasons,
  calls_every_stopped_run_killed,
  tells_of_strangers,
  loses_one_of_many,
  // 5
  waits_for_the_end,
  ignores_cancellations,
  refuses_before_the_start,
  refuses_a_second_time,
  accepts_anybody,
  has_errors_of_its_own,
  // 6
  loses_when_cancelled,
  loses_behind_a_cancelled_reader,
  ignores_its_cancellation,
  // 7
  needs_a_start,
  never_cleans_up,
  leaves_trials,
  leaves_a_timer,
  tells_afterwards,
  // 8
  forgets_an_intent,
  adopts_anything,
  needs_job_ids,
  forgets_adopted_ends,
  // TrialChannel
  takes_the_word_of_the_trial,
  refuses_receipts,
  settles_at_once,
  never_settles,
  ignores_cancelled_message_readers,
  loses_messages_when_cancelled,
  reverses_values,
  loses_a_value,
  cannot_send
};

/// What outlives a manager.
struct World {
  std::set<RunId> running;
  std::set<RunId> leaving;        // of these, the ones that exit by themselves when they are cancelled
  bool away = false;              // nothing can be started
  std::shared_future<void> gate;  // what blocks waits for it
};

class Scripted {
 public:
  using role = role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "scripted";

  Scripted(std::shared_ptr<World> world, Fault fault) : world_(std::move(world)), fault_(fault) {}

  Capabilities capabilities() const noexcept {
    Capabilities result;
    result.multi_phase = true;
    result.survives_manager = true;
    result.max_in_flight = 4;
    return result;
  }

  awaitable<void> start(Context& context) {
    state_ = std::make_unique<State>(context);
    if (fault_ == Fault::never_starts) {
      auto never = state_->changed.wait();
      co_await std::move(never);
    }
  }
  awaitable<ResourceSnapshot> resources() { co_return ResourceSnapshot(); }

  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    if (fault_ == Fault::blocks) world_->gate.wait();
    if (fault_ == Fault::never_answers) {
      auto never = state_->changed.wait();
      co_await std::move(never);
    }
    const RunId run = form.run;
    state_->form = form;
    auto turn = boost::asio::post(state_->context->executor(), boost::asio::use_awaitable);
    co_await std::move(turn);
    if (fault_ == Fault::takes_one_at_a_time) form = std::exchange(state_->form, TrialJobForm());
    if (form.command.empty()) co_return JobId{"job"};
    if (world_->away) {
      defer(form);
      co_return JobId{"job"};
    }
    if (fault_ == Fault::forgets_attempts) form.run.attempt = 0;
    const int count = ++state_->submitted[form.run];
    if (count == 1 || fault_ == Fault::runs_twice) execute(form);
    co_return JobId{"job " + to_string(run) + (count > 1 && fault_ == Fault::names_the_second_submit ? "b" : "")};
  }

  awaitable<void> cancel_trial_job(RunId run, StopReason why) {
    if (state_->stopped.contains(run) && fault_ == Fault::refuses_a_second_time)
      throw Error(Errc::platform_rejected, "scripted: it is being stopped");
    if (!world_->running.contains(run)) {
      if (fault_ == Fault::accepts_anybody) co_return;
      if (fault_ == Fault::has_errors_of_its_own) throw std::runtime_error("404");
      throw Error(Errc::no_such_job, "scripted: there is no run " + to_string(run));
    }
    if (fault_ == Fault::refuses_before_the_start && !state_->told.contains(run))
      throw Error(Errc::platform_rejected, "scripted: it has not begun");
    if (fault_ == Fault::ignores_cancellations) co_return;
    JobEnd killed(EndKind::killed);
    if (world_->leaving.contains(run) && fault_ != Fault::calls_every_stopped_run_killed) killed.kind = EndKind::exited;
    if (fault_ != Fault::forgets_reasons) killed.why = why;
    world_->running.erase(run);
    state_->stopped.insert(run);
    if (fault_ != Fault::forgets_adopted_ends || !state_->adopted.contains(run)) end(run, std::move(killed));
    while (fault_ == Fault::waits_for_the_end && !state_->heard.contains(run)) {
      auto change = state_->changed.wait();
      co_await std::move(change);
    }
  }

  awaitable<JobEvent> next_event() {
    while (state_->events.empty()) {
      auto change = wait_for_events();
      co_await std::move(change);
    }
    JobEvent event = std::move(state_->events.front());
    state_->events.pop_front();
    if (fault_ == Fault::loses_when_cancelled) {
      auto pausing = state_->context->clock().sleep_for(std::chrono::milliseconds(8));
      co_await std::move(pausing);
    }
    if (const auto* begin = std::get_if<JobStarted>(&event)) state_->told.insert(begin->run);
    if (const auto* ended = std::get_if<JobEnded>(&event)) state_->heard.insert(ended->run);
    co_return event;
  }

  awaitable<void> clean_up() {
    if (!state_ && fault_ == Fault::needs_a_start) throw Error(Errc::internal, "scripted: there is no connection");
    if (!state_) co_return;
    if (fault_ == Fault::never_cleans_up) {
      auto never = state_->changed.wait();
      co_await std::move(never);
    }
    if (fault_ == Fault::leaves_a_timer)
      boost::asio::co_spawn(state_->context->executor(), state_->context->clock().sleep_for(std::chrono::hours(1)),
                            boost::asio::detached);
    state_->events.clear();
    if (fault_ == Fault::tells_afterwards)
      for (const RunId run : world_->running) end(run, JobEnd(EndKind::killed));
    if (fault_ != Fault::leaves_trials) world_->running.clear();
  }

  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> intents) {
    std::vector<JobReport> reports;
    for (const Intent& intent : intents) {
      const bool known =
          world_->running.contains(intent.run) && (fault_ != Fault::needs_job_ids || !intent.job.empty());
      const bool runs = known || fault_ == Fault::adopts_anything;
      if (known) state_->adopted.insert(intent.run);
      reports.emplace_back(intent.run, runs ? JobReport::State::running : JobReport::State::never_started);
    }
    if (fault_ == Fault::forgets_an_intent) reports.pop_back();
    co_return reports;
  }

  awaitable<TrialMessage> next_message() {
    while (state_->messages.empty()) {
      auto change =
          fault_ == Fault::ignores_cancelled_message_readers
              ? async::shield(state_->changed.wait())
              : state_->changed.wait();
      co_await std::move(change);
    }
    TrialMessage message = std::move(state_->messages.front());
    state_->messages.pop_front();
    if (fault_ == Fault::loses_messages_when_cancelled) {
      auto pausing = state_->context->clock().sleep_for(std::chrono::milliseconds(8));
      co_await std::move(pausing);
    }
    state_->changed.notify();
    co_return message;
  }
  awaitable<void> acknowledge(Receipt receipt) {
    if (fault_ == Fault::refuses_receipts && receipt.value > 3) throw Error(Errc::internal, "there is no such message");
    co_return;
  }
  awaitable<void> send(RunId, Parameters) {
    if (fault_ == Fault::cannot_send) throw Error(Errc::unsupported, "scripted: there is one set of parameters");
    co_return;
  }
  awaitable<void> settle(RunId) {
    while (fault_ == Fault::never_settles || (!state_->messages.empty() && fault_ != Fault::settles_at_once)) {
      auto change = state_->changed.wait();
      co_await std::move(change);
    }
  }

 private:
  struct State {
    explicit State(Context& surroundings) : context(&surroundings) {}
    Context* context;
    async::event changed;
    TrialJobForm form;  // the one that is being submitted
    std::deque<JobEvent> events;
    std::deque<TrialMessage> messages;
    std::map<RunId, int> submitted;
    std::set<RunId> told;     // of these the start was heard
    std::set<RunId> heard;    // and of these the end
    std::set<RunId> stopped;  // cancelled
    std::set<RunId> adopted;
    bool spoiled = false;  // a reader was cancelled
  };

  awaitable<void> wait_for_events() {
    if (fault_ == Fault::ignores_its_cancellation) return async::shield(state_->changed.wait());
    if (fault_ == Fault::loses_behind_a_cancelled_reader) return wait_and_remember();
    return state_->changed.wait();
  }

  // A reader that was cancelled still stands in line, and gets the next event.
  awaitable<void> wait_and_remember() {
    try {
      auto change = state_->changed.wait();
      co_await std::move(change);
    } catch (...) {
      state_->spoiled = true;
      throw;
    }
  }

  void tell(JobEvent event) {
    if (!std::exchange(state_->spoiled, false)) state_->events.push_back(std::move(event));
    state_->changed.notify();
  }

  void begin(RunId run) {
    if (fault_ == Fault::never_tells_starts) return;
    tell(JobStarted(run, JobId("job"), TimePoint{}));
    if (fault_ == Fault::starts_twice) tell(JobStarted(run, JobId("job"), TimePoint{}));
  }

  void end(RunId run, JobEnd how) {
    if (fault_ == Fault::never_ends) return;
    if (fault_ == Fault::loses_one_of_many && run.trial.number == 39) return;
    if (fault_ == Fault::hides_failures) how = JobEnd(EndKind::exited, 0);
    if (fault_ == Fault::hides_success && how.succeeded()) how.code = 1;
    if (fault_ == Fault::blames_the_user && how.code != 0) how.kind = EndKind::killed;
    if (fault_ == Fault::forgets_exit_codes && how.code > 1) how.code = 1;
    if (fault_ == Fault::calls_signals_exits && how.kind == EndKind::signalled) how = JobEnd(EndKind::exited, 137);
    if (fault_ == Fault::gives_no_reason) how.message.clear();
    if (fault_ == Fault::tells_of_strangers) tell(JobStarted(RunId{TrialId{99}, 0}, JobId("job"), TimePoint{}));
    tell(JobEnded(run, how, TimePoint{}));
    if (fault_ == Fault::ends_twice) tell(JobEnded(run, how, TimePoint{}));
  }

  void defer(const TrialJobForm& form) {
    if (fault_ == Fault::refuses_for_good) throw Error(Errc::platform_rejected, "scripted: no");
    if (fault_ == Fault::starts_in_an_outage) begin(form.run);
    if (fault_ == Fault::forgets_what_it_deferred) ++state_->submitted[form.run];
    if (fault_ == Fault::loses_others_in_an_outage)
      for (const RunId run : std::exchange(world_->running, {})) end(run, JobEnd(EndKind::lost, 0, "away"));
    const bool fails = fault_ == Fault::fails_in_an_outage;
    const char* const reason = fault_ == Fault::defers_without_a_reason ? "" : "there is no process left";
    end(form.run, JobEnd(fails ? EndKind::not_started : EndKind::deferred, 0, reason));
  }

  void execute(const TrialJobForm& form) {
    const RunId run = form.run;
    const std::string what = form.command.to_string();
    if (what == "never") {
      if (fault_ == Fault::throws_at_a_bad_command)
        throw Error(Errc::spawn_failed, "scripted: there is no such program");
      return end(run, JobEnd(EndKind::not_started, 0, "there is no such program"));
    }
    if (what == "stop" || what == "leave") {
      world_->running.insert(run);
      if (what == "leave") world_->leaving.insert(run);
      if (what == "leave")
        state_->messages.emplace_back(Metric(run, MetricKind::intermediate, 0, "1", TimePoint{}), Receipt{1});
      return begin(run);
    }
    const bool has = form.environment.contains("NNI_CONFORMANCE") && fault_ != Fault::drops_variables;
    int code = what == "fail" ? 9 : 0;
    if (what == "variable" && !has) code = 1;
    if (what == "report") report(run);
    const JobEnd how = what == "signal" ? JobEnd(EndKind::signalled, 9) : JobEnd(EndKind::exited, code);
    if (fault_ != Fault::ends_first) begin(run);
    end(run, how);
    if (fault_ == Fault::ends_first) begin(run);
  }

  void report(RunId run) {
    if (fault_ == Fault::takes_the_word_of_the_trial) run.trial = TrialId{99};
    std::vector<Metric> values;
    values.emplace_back(run, MetricKind::intermediate, 0, "0.25", TimePoint{});
    values.emplace_back(run, MetricKind::intermediate, 1, "0.5", TimePoint{});
    values.emplace_back(run, MetricKind::final, 0, "0.75", TimePoint{});
    if (fault_ == Fault::reverses_values) std::swap(values[0], values[1]);
    if (fault_ == Fault::loses_a_value) values.pop_back();
    std::uint64_t delivery = 0;
    for (Metric& value : values) state_->messages.emplace_back(std::move(value), Receipt{++delivery});
    state_->changed.notify();
  }

  std::shared_ptr<World> world_;
  Fault fault_;
  std::unique_ptr<State> state_;
};
static_assert(ResumableService<Scripted> && CarriesMessages<Scripted>);

/// The same without adoption, which it says to have nevertheless.
class Boaster {
 public:
  using role = role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "boaster";

  explicit Boaster(std::shared_ptr<World> world) : inner_(std::move(world), Fault::none) {}

  Capabilities capabilities() const noexcept { return inner_.capabilities(); }
  awaitable<void> start(Context& context) { return inner_.start(context); }
  awaitable<ResourceSnapshot> resources() { return inner_.resources(); }
  awaitable<JobId> submit_trial_job(TrialJobForm form) { return inner_.submit_trial_job(std::move(form)); }
  awaitable<void> cancel_trial_job(RunId run, StopReason why) { return inner_.cancel_trial_job(run, why); }
  awaitable<JobEvent> next_event() { return inner_.next_event(); }
  awaitable<void> clean_up() { return inner_.clean_up(); }

 private:
  Scripted inner_;
};
static_assert(TrainingService<Boaster> && !ResumableService<Boaster> && !CarriesMessages<Boaster>);

}  // namespace nni_test
