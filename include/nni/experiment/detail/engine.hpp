#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/cancellation.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/async/race.hpp>
#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>
#include <nni/async/yield.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/core/queue.hpp>
#include <nni/core/store_event.hpp>
#include <nni/experiment/control.hpp>
#include <nni/experiment/detail/board.hpp>
#include <nni/experiment/options.hpp>
#include <nni/ledger/ledger.hpp>
#include <nni/ledger/transition.hpp>

namespace nni::detail {

/// The loops of a running experiment over one ledger. One object per run; all of it lives on one executor.
///
/// Each loop waits for one source of events, hands what it got to the ledger, and lets `apply` carry the transition
/// out: records go to the store, effects happen at once or wait until their records are strong enough.
///
/// While it runs it can be steered (`carry_out(Change)`), paused for several reasons, and stopped.
///
/// @tparam Parts  what the experiment composed: references named service, scheduler, storage, channel, advisor, store;
///                optional hooks: `settings_changed()` before a change is recorded, `update_search_space(space)`
template <class Parts>
class Engine {
 public:
  Engine(Context& context, Parts parts, ExperimentOptions& options, Ledger& ledger, Board& board)
      : context_(&context),
        parts_(std::move(parts)),
        options_(&options),
        ledger_(&ledger),
        board_(&board),
        began_(context.clock().steady_now()) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs until everything that was asked for has ended, or until a stop was asked for and carried out.
  awaitable<void> run() {
    if (failure_) std::rethrow_exception(failure_);
    async::task_group loops(*context_);
    group_ = &loops;
    resources_stale_ = true;
    began_ = context_->clock().steady_now();
    if (paused_at_) paused_at_ = began_;
    for (const RetryLater& later : ledger_->pauses(now())) retry_later(later);
    loops.spawn(lasting(written_loop(), "records of the data store"));
    loops.spawn(lasting(synced_loop(), "synced records of the data store"));
    loops.spawn(lasting(service_loop(), "orders to the training service"));
    loops.spawn(lasting(message_loop(), "messages of trials"));
    loops.spawn(lasting(event_loop(), "events of the training service"));
    loops.spawn(lasting(order_loop(), "orders of the advisor"));
    loops.spawn(lasting(control_loop(), "decisions of the experiment"));
    loops.spawn(lasting(limit_loop(), "limits of the experiment"));
    for (auto& [end, lost] : std::exchange(ended_before_, {}))
      loops.spawn(lasting(hear_end(std::move(end), lost), "end of an earlier run"));
    if (stopping_) loops.spawn(give_up());
    for (awaitable<void>& waiting : std::exchange(early_, {})) loops.spawn(std::move(waiting));
    auto all = loops.join();
    co_await std::move(all);
  }

  /// Hears of trouble of the store and of the service from now on; the engine outlives their run.
  void listen() {
    if constexpr (requires { parts_.store.on_trouble(TroubleListener()); })
      parts_.store.on_trouble([this](const std::string& reason) { note_store_trouble(reason); });
    if constexpr (requires { parts_.service.on_trouble(TroubleListener()); })
      parts_.service.on_trouble([this](const std::string& reason) { note_trouble(service_trouble_, reason); });
  }

  /// The inverse of `listen`.
  void stop_listening() {
    if constexpr (requires { parts_.store.on_trouble(TroubleListener()); }) parts_.store.on_trouble({});
    if constexpr (requires { parts_.service.on_trouble(TroubleListener()); }) parts_.service.on_trouble({});
  }

  /// No trial starts any more, live ones are told to stop; `run` returns when they have ended. Executor only.
  void request_stop() {
    if (stopping_) return;
    stopping_ = true;
    board_->set_status(ExperimentStatus::stopping);
    Transition transition;
    ledger_->stop_placing();
    ledger_->cancel_all(now(), transition);
    apply(transition);
    drop_submissions(written_);
    drop_submissions(synced_);
    drop_submissions(in_turn_);
    if (group_) group_->spawn(give_up());
    // A stop while records cannot be kept takes more messages, see `piles_up`.
    make_room();
    wake();
  }

  [[nodiscard]] bool stopping() const noexcept { return stopping_; }

  /// Ends `run` with an exception that came from outside of its loops. Executor only.
  void fail(std::exception_ptr failure) {
    if (!group_)
      failure_ = std::move(failure);
    else
      group_->spawn(throw_again(std::move(failure)));
  }

  /// Time since `run` began, pauses left out.
  [[nodiscard]] Duration active() const { return active_at(context_->clock().steady_now()); }

  /// No trial starts until the reason is lifted; running ones go on. Executor only.
  /// @param text  why, for people; not empty
  void pause(PauseReason why, std::string text);

  /// Lifts a reason; trials are placed again when it was the last. Executor only.
  void resume(PauseReason why);

  /// Who waits for records and was not told before the loops ended: what was appended since may tell.
  [[nodiscard]] std::vector<std::shared_ptr<std::promise<bool>>> take_unanswered() {
    return std::exchange(unanswered_, {});
  }

  /// Makes a change that somebody asked for, and records it. Executor only.
  void carry_out(const Change& what);

  // ---- orders of a program that drives the experiment itself; executor only ---------------------------------------

  /// Orders a trial. @returns its id
  TrialId order(NewTrial what);

  /// Stops a trial in any state; unknown or ended ones are ignored.
  void cancel(TrialId trial, StopReason why);

  /// Sends further parameters to a live run. @throws Error  what the channel says, see `TrialChannel`
  awaitable<void> send(RunId run, Parameters parameters) { return parts_.channel.send(run, std::move(parameters)); }

  /// Runs work beside the loops; it ends with them, and must not throw.
  void spawn(awaitable<void> work) {
    if (group_) group_->spawn(std::move(work));
  }

  /// Tells the ledger what became of runs of an earlier manager.
  void adopt(const std::vector<JobReport>& reports);

  /// Carries out a transition.
  void apply(Transition& transition) {
    StorePosition position = last_;
    if (!transition.records.empty()) last_ = position = parts_.store.append(std::move(transition.records));
    for (Effect& effect : transition.effects) {
      if (effect.waits_for == Strength::written) {
        written_.emplace_back(position, std::move(effect.action));
        written_changed_.notify();
      } else if (effect.waits_for == Strength::synced) {
        synced_.emplace_back(position, std::move(effect.action));
        synced_changed_.notify();
      } else {
        carry_out_now(std::move(effect.action));
      }
    }
  }

 private:
  struct Pending {
    Pending() = default;
    Pending(StorePosition where, Action what) : position(where), action(std::move(what)) {}
    StorePosition position;
    Action action;
  };

  [[nodiscard]] TimePoint now() const { return context_->clock().now(); }

  void drop_submissions(Queue<Pending>& waiting);

  [[nodiscard]] Duration active_at(SteadyPoint at) const {
    return at - began_ - paused_for_ - (paused_at_ ? at - *paused_at_ : Duration{});
  }

  void change(const SetConcurrency& what);
  void change(const SetMaxTrials& what);
  void change(const SetMaxDuration& what);
  void change(const UpdateSearchSpace& what);
  void change(const PauseTrials& what);
  void change(const ResumeTrials& what);
  void change(const ShowProgress& what);
  void tell_pause();
  void record_settings();
  void cancel_by_user(TrialId trial);
  awaitable<void> tell_when_recorded(std::shared_ptr<std::promise<bool>> answer);
  awaitable<void> throw_again(std::exception_ptr failure);
  void retry_later(const RetryLater& later);

  // Nothing starts while records cannot be kept, and nobody is asked for more.
  [[nodiscard]] bool in_trouble() const noexcept { return !store_trouble_.empty() || !service_trouble_.empty(); }

  void note_trouble(std::string& which, const std::string& reason) {
    which = reason;
    show_trouble();
    make_room();
    trouble_changed_.notify();
    limits_changed_.notify();
    wake();
  }

  // Time in which nothing can be recorded is no active time.
  void note_store_trouble(const std::string& reason) {
    if (reason.empty())
      resume(PauseReason::store);
    else
      pause(PauseReason::store, reason);
    note_trouble(store_trouble_, reason);
  }

  void wake() {
    dirty_ = true;
    changed_.notify();
  }

  // What needs an await is queued for the loop that may wait.
  void carry_out_now(Action action) {
    if (auto* released = std::get_if<Release>(&action)) {
      parts_.scheduler.release(released->placement);
      resources_stale_ = true;
    } else if (auto* ended = std::get_if<Announce>(&action)) {
      board_->trial_ended(std::move(*ended->detail));
    } else if (const auto* later = std::get_if<RetryLater>(&action)) {
      retry_later(*later);
    } else if (std::holds_alternative<Cancel>(action)) {
      urgent_.push_back(std::move(action));
    } else {
      inbox_.push_back(std::move(action));
    }
    wake();
  }

  // The next effect that waits for nothing; a cancellation before everything else.
  Action take_action() {
    Queue<Action>& from = urgent_.empty() ? inbox_ : urgent_;
    Action action = std::move(from.front());
    from.pop_front();
    return action;
  }

  // Effects that wait are bounded: sources that fill up faster than effects are carried out wait for room. A stop does
  // not wait for a store that cannot write, whose queue would otherwise keep the ends of trials back.
  [[nodiscard]] bool piles_up() const noexcept {
    const std::size_t scale = stopping_ && !store_trouble_.empty() ? 10 : 1;
    return written_.size() + synced_.size() >= scale * most_unwritten || inbox_.size() >= scale * most_undone;
  }

  void make_room() {
    if (!piles_up()) room_.notify();
  }

  // ---- effects ------------------------------------------------------------------------------------------------

  awaitable<void> carry_out(Action action) {
    if (auto* submit = std::get_if<Submit>(&action)) {
      if (!submit->form) co_return;
      parts_.address(*submit->form);
      if (takes_several())
        group_->spawn(submit_trial(std::move(*submit->form)));
      else
        order_in_turn(std::move(action));
    } else if (auto* acknowledge = std::get_if<Acknowledge>(&action)) {
      NNI_CRASH_POINT("before acknowledgement");
      auto work = parts_.channel.acknowledge(acknowledge->receipt);
      co_await std::move(work);
    } else if (auto* metric = std::get_if<ReportMetric>(&action)) {
      auto work = parts_.advisor.report(metric->metric);
      co_await std::move(work);
    } else if (auto* outcome = std::get_if<ReportOutcome>(&action)) {
      auto work = parts_.advisor.trial_ended(outcome->outcome);
      co_await std::move(work);
      NNI_CRASH_POINT("tuner told");
    } else if (auto* cancel = std::get_if<Cancel>(&action)) {
      if (takes_several())
        group_->spawn(cancel_trial(cancel->run, cancel->why));
      else
        order_in_turn(std::move(action));
    } else if (const auto* forget = std::get_if<Forget>(&action)) {
      if constexpr (requires { parts_.service.recorded(forget->run); }) parts_.service.recorded(forget->run);
    }
  }

  // Otherwise each submission and cancellation is awaited before the next, in a loop of their own: a platform that takes
  // its time must not keep trials waiting for their acknowledgements.
  [[nodiscard]] bool takes_several() const { return parts_.service.capabilities().max_in_flight > 1; }

  [[nodiscard]] bool is_busy() const {
    return in_flight_ >= std::max<std::size_t>(parts_.service.capabilities().max_in_flight, 1);
  }

  // Not by a destructor: a context that dies destroys what waits in any order.
  void leave_service() {
    --in_flight_;
    in_flight_changed_.notify_one();
  }

  // A cancellation goes first: of a run whose submission still waits it is noted, as beside others.
  void order_in_turn(Action action) {
    if (const auto* submit = std::get_if<Submit>(&action)) {
      submitting_.emplace(submit->form->run, std::nullopt);
      in_turn_.emplace_back(StorePosition(), std::move(action));
    } else {
      in_turn_.emplace_front(StorePosition(), std::move(action));
    }
    in_turn_changed_.notify();
  }

  bool stopped_early(RunId run);
  awaitable<void> service_loop();
  awaitable<void> submit_trial(TrialJobForm form);
  awaitable<void> cancel_trial(RunId run, StopReason why);

  awaitable<void> lasting(awaitable<void> loop, const char* what);

  awaitable<void> written_loop();

  awaitable<void> synced_loop();

  // ---- sources of events --------------------------------------------------------------------------------------

  awaitable<void> message_loop();

  awaitable<void> hear_end(JobEnded end, bool lost_with_manager);
  awaitable<void> send_further(SendParameters what);

  awaitable<void> event_loop();

  // Results of a run are heard before its end is. So many runs at a time, and the others after them.
  awaitable<void> settle(RunId run);
  awaitable<void> settle_now(RunId run);

  awaitable<void> order_loop();

  // ---- decisions ----------------------------------------------------------------------------------------------

  awaitable<void> control_loop();

  awaitable<void> place_waiting();
  [[noreturn]] void refuse_to_go_on(const std::string& why) const;

  void follow_status();

  // A reason counts until its run has begun or ended.
  void show_queued() { board_->set_waiting_reason(queued_.empty() ? std::string() : queued_.begin()->second); }
  void forget_queued(RunId run) {
    if (queued_.erase(run) != 0) show_queued();
  }

  awaitable<void> give_up();
  [[nodiscard]] std::string what_is_awaited() const;

  // ---- a platform that is away ----------------------------------------------------------------------------------

  // Since when nothing can be started, and when that is tried again.
  struct Outage {
    SteadyPoint since{};
    SteadyPoint until{};
    Duration pause{};
    std::string reason;          // for people
    std::optional<RunId> probe;  // was submitted to find out
    bool answered = false;       // its submission
  };

  void show_trouble();
  void defer_run(JobEnded what);
  void hold_starts(std::string reason);
  void release_starts();
  void drop_outage();
  [[nodiscard]] bool may_place();
  void note_probe(RunId run);
  SteadyPoint watch_platform(SteadyPoint at);
  [[noreturn]] void end_by_outage(const std::string& reason) const;
  awaitable<std::optional<std::string>> ask_to_cancel(RunId run, StopReason why);
  awaitable<void> cancel_again(RunId run, StopReason why, std::string refusal);

  // ---- limits -------------------------------------------------------------------------------------------------

  // Runs that were adopted come in the order of their names, not of their age.
  void note_start(RunId run, Duration ago) {
    if (!options_->max_trial_duration) return;
    const std::pair<SteadyPoint, RunId> start(context_->clock().steady_now() - ago, run);
    starts_.insert(std::upper_bound(starts_.begin(), starts_.end(), start), start);
  }

  awaitable<void> limit_loop();
  SteadyPoint place_retries(SteadyPoint at);
  SteadyPoint stop_overdue(SteadyPoint at);

  Context* context_;
  Parts parts_;
  ExperimentOptions* options_;
  Ledger* ledger_;
  Board* board_;

  async::task_group* group_ = nullptr;
  async::event changed_;
  async::event written_changed_;
  async::event synced_changed_;
  bool dirty_ = true;
  bool stopping_ = false;
  bool out_of_time_ = false;
  std::exception_ptr failure_;  // came before the loops ran
  async::event limits_changed_;
  std::vector<std::shared_ptr<std::promise<bool>>> unanswered_;  // who waits until everything is recorded
  std::vector<awaitable<void>> early_;                           // of them, those who asked before the loops ran

  static constexpr unsigned steps_per_turn = 64;         // of a loop, before everything else that is ready runs
  static constexpr std::size_t most_unwritten = 10'000;  // effects that wait for records
  static constexpr std::size_t most_undone = 1'024;      // effects that wait for nothing but their turn
  static constexpr std::size_t most_settling = 256;      // ended runs whose messages are waited for
  static constexpr std::size_t most_ending = 4'096;      // these, and the ones that wait for their turn
  static constexpr std::size_t most_sending = 256;       // parameters on their way to trials
  static constexpr std::size_t most_waiting = 10'000;    // trials that an advisor may order ahead
  static constexpr Duration first_outage_pause = std::chrono::milliseconds(100);
  static constexpr Duration longest_outage_pause = std::chrono::seconds(10);
  static constexpr Duration end_limit_in_trouble = std::chrono::seconds(10);  // for ends that cannot arrive
  static constexpr Duration quiet_end = std::chrono::seconds(3);              // before a stop says what it waits for

  std::string store_trouble_;
  std::string service_trouble_;
  async::event room_;  // fewer effects wait
  async::event trouble_changed_;
  std::optional<Outage> outage_;
  std::optional<SteadyPoint> service_away_;  // since when the service is in trouble, while the store is not
  std::map<RunId, std::string> refused_;     // runs that the platform would not stop, and why

  StorePosition last_;
  Queue<Pending> written_;
  Queue<Pending> synced_;
  Queue<Pending> in_turn_;  // submissions and cancellations, for a service that takes one at a time
  async::event in_turn_changed_;
  Queue<Action> inbox_;
  Queue<Action> urgent_;  // before these

  std::vector<std::pair<JobEnded, bool>> ended_before_;  // adopted, messages not heard yet; lost with the manager
  std::unordered_map<RunId, std::optional<StopReason>> submitting_;  // being submitted, perhaps cancelled already
  std::size_t in_flight_ = 0;
  async::event in_flight_changed_;
  std::size_t settling_ = 0;
  std::size_t ending_ = 0;
  std::size_t sending_ = 0;
  async::event settled_;

  std::map<RunId, std::string> queued_;  // why platforms keep runs waiting, for people
  bool tuner_is_done_ = false;           // it had no more when it was asked last
  bool is_spent_ = false;                // the budget of trials or of time is used up

  ResourceSnapshot resources_;
  bool resources_stale_ = true;
  SteadyPoint began_{};
  SteadyPoint profile_written_{};
  std::optional<SteadyPoint> paused_at_;
  Duration paused_for_{};
  std::array<std::string, 2> pauses_;  // by `PauseReason`: why, for people
  using Due = std::pair<SteadyPoint, TrialId>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> retries_;
  std::deque<std::pair<SteadyPoint, RunId>> starts_;  // in the order of time
};

}  // namespace nni::detail

#include <nni/experiment/detail/engine_loops.hpp>
#include <nni/experiment/detail/engine_orders.hpp>
#include <nni/experiment/detail/engine_outage.hpp>
#include <nni/experiment/detail/engine_placing.hpp>
#include <nni/experiment/detail/engine_steering.hpp>
