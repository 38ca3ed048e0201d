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
#include <nni/experiment/detail/composition.hpp>
#include <nni/experiment/options.hpp>
#include <nni/ledger/ledger.hpp>
#include <nni/ledger/transition.hpp>

namespace nni::detail {

/// What the loops ask of the experiment that they belong to. All are set, and called on the executor.
struct EngineHooks {
  std::function<ResourceRequest(TrialId)> request_of;

  /// Everything about a run that does not come from the ledger.
  std::function<TrialJobForm(TrialId, const ResourceRequest&, Placement)> form;

  /// What is in force has changed: the next record of the experiment says so.
  std::function<void()> settings_changed;

  /// Suggestions come from another space from now on. Throws `ConfigError` when it cannot be searched.
  std::function<void(const SearchSpace&)> update_search_space;

  /// Counts the results that do not fit the search space in force.
  std::function<awaitable<void>()> count_unfitting;
};

/// Since when nothing can be started, and when that is tried again.
struct Outage {
  SteadyPoint since{};
  SteadyPoint until{};
  Duration pause{};
  std::string reason;          // for people
  std::optional<RunId> probe;  // was submitted to find out
  bool answered = false;       // its submission
};

/// The loops of a running experiment over one ledger. One object per run; all of it lives on one executor.
///
/// Each loop waits for one source of events, hands what it got to the ledger, and lets `apply` carry the transition
/// out: records go to the store, effects happen at once or wait until their records are strong enough.
///
/// While it runs it can be steered (`apply(Change)`), paused for several reasons, and stopped.
///
/// It is no template: whatever is composed, it is compiled once, and calls the policies through `Composition`.
class Engine {
 public:
  Engine(Context& context, EngineHooks hooks, Composition& policies, ExperimentOptions& options, Ledger& ledger,
         Board& board)
      : context_(&context),
        hooks_(std::move(hooks)),
        policies_(&policies),
        options_(&options),
        ledger_(&ledger),
        board_(&board),
        began_(context.clock().steady_now()) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs until everything that was asked for has ended, or until a stop was asked for and carried out.
  NNI_LAZY awaitable<void> run();

  /// Hears of trouble of the store and of the service from now on; the engine outlives their run.
  NNI_LAZY void listen();

  /// The inverse of `listen`.
  NNI_LAZY void stop_listening();

  /// No trial starts any more, live ones are told to stop; `run` returns when they have ended. Executor only.
  NNI_LAZY void request_stop();

  [[nodiscard]] bool stopping() const noexcept { return stopping_; }

  /// Ends `run` with an exception that came from outside of its loops. Executor only.
  NNI_LAZY void fail(std::exception_ptr failure);

  /// Time since `run` began, pauses left out.
  [[nodiscard]] Duration active() const { return active_at(context_->clock().steady_now()); }

  /// No trial starts until the reason is lifted; running ones go on. Executor only.
  /// @param text  why, for people; not empty
  NNI_LAZY void pause(PauseReason why, std::string text);

  /// Lifts a reason; trials are placed again when it was the last. Executor only.
  NNI_LAZY void resume(PauseReason why);

  /// Who waits for records and was not told before the loops ended: what was appended since may tell.
  NNI_LAZY [[nodiscard]] std::vector<std::shared_ptr<std::promise<bool>>> take_unanswered();

  /// Makes a change that somebody asked for, and records it. Executor only.
  NNI_LAZY void apply(const Change& what);

  // ---- orders of a program that drives the experiment itself; executor only ---------------------------------------

  /// Orders a trial. @returns its id
  NNI_LAZY TrialId order(NewTrial what);

  /// Stops a trial in any state; unknown or ended ones are ignored.
  NNI_LAZY void cancel(TrialId trial, StopReason why);

  /// Sends further parameters to a live run. @throws Error  what the channel says, see `TrialChannel`
  awaitable<void> send(RunId run, Parameters parameters) { return policies_->send(run, std::move(parameters)); }

  /// Runs work beside the loops; it ends with them, and must not throw.
  NNI_LAZY void spawn(awaitable<void> work);

  /// Tells the ledger what became of runs of an earlier manager.
  NNI_LAZY void adopt(const std::vector<JobReport>& reports);

  /// Carries out a transition.
  NNI_LAZY void apply(Transition& transition);

 private:
  struct Pending {
    Pending() = default;
    Pending(StorePosition where, Action what) : position(where), action(std::move(what)) {}
    StorePosition position;
    Action action;
  };

  [[nodiscard]] TimePoint now() const { return context_->clock().now(); }

  NNI_LAZY void drop_submissions(Queue<Pending>& waiting);

  NNI_LAZY [[nodiscard]] Duration active_at(SteadyPoint at) const;

  NNI_LAZY void change(const SetConcurrency& what);
  NNI_LAZY void change(const SetMaxTrials& what);
  NNI_LAZY void change(const SetMaxDuration& what);
  NNI_LAZY void change(const UpdateSearchSpace& what);
  NNI_LAZY void change(const PauseTrials& what);
  NNI_LAZY void change(const ResumeTrials& what);
  NNI_LAZY void change(const ShowProgress& what);
  NNI_LAZY void tell_pause();
  NNI_LAZY void record_settings();
  NNI_LAZY void cancel_by_user(TrialId trial);
  NNI_LAZY awaitable<void> tell_when_recorded(std::shared_ptr<std::promise<bool>> answer);
  NNI_LAZY awaitable<void> throw_again(std::exception_ptr failure);
  NNI_LAZY void retry_later(const RetryLater& later);

  // Nothing starts while records cannot be kept, and nobody is asked for more.
  [[nodiscard]] bool in_trouble() const noexcept { return !store_trouble_.empty() || !service_trouble_.empty(); }

  NNI_LAZY void note_trouble(std::string& which, const std::string& reason);

  // Time in which nothing can be recorded is no active time.
  NNI_LAZY void note_store_trouble(const std::string& reason);

  NNI_LAZY void wake();

  // What needs an await is queued for the loop that may wait.
  NNI_LAZY void dispatch(Action action);

  // The next effect that waits for nothing; a cancellation before everything else.
  NNI_LAZY Action take_action();

  // Effects that wait are bounded: sources that fill up faster than effects are carried out wait for room. A stop does
  // not wait for a store that cannot write, whose queue would otherwise keep the ends of trials back.
  NNI_LAZY [[nodiscard]] bool piles_up() const noexcept;

  NNI_LAZY void make_room();

  // ---- effects ------------------------------------------------------------------------------------------------

  NNI_LAZY awaitable<void> perform(Action action);

  // Otherwise each submission and cancellation is awaited before the next, in a loop of their own: a platform that takes
  // its time must not keep trials waiting for their acknowledgements.
  [[nodiscard]] bool takes_several() const { return policies_->capabilities().max_in_flight > 1; }

  NNI_LAZY [[nodiscard]] bool is_busy() const;

  // Not by a destructor: a context that dies destroys what waits in any order.
  NNI_LAZY void leave_service();

  // A cancellation goes first: of a run whose submission still waits it is noted, as beside others.
  NNI_LAZY void order_in_turn(Action action);

  NNI_LAZY bool stopped_early(RunId run);
  NNI_LAZY awaitable<void> service_loop();
  NNI_LAZY awaitable<void> submit_trial(TrialJobForm form);
  NNI_LAZY awaitable<void> cancel_trial(RunId run, StopReason why);

  NNI_LAZY awaitable<void> lasting(awaitable<void> loop, const char* what);

  NNI_LAZY awaitable<void> written_loop();

  NNI_LAZY awaitable<void> synced_loop();

  // ---- sources of events --------------------------------------------------------------------------------------

  NNI_LAZY awaitable<void> message_loop();

  NNI_LAZY awaitable<void> hear_end(JobEnded end, bool lost_with_manager);
  NNI_LAZY awaitable<void> send_further(SendParameters what);

  NNI_LAZY awaitable<void> event_loop();

  // Results of a run are heard before its end is. So many runs at a time, and the others after them.
  NNI_LAZY awaitable<void> settle(RunId run);
  NNI_LAZY awaitable<void> settle_now(RunId run);

  NNI_LAZY awaitable<void> order_loop();

  // ---- decisions ----------------------------------------------------------------------------------------------

  NNI_LAZY awaitable<void> control_loop();

  NNI_LAZY awaitable<void> place_waiting();
  NNI_LAZY [[noreturn]] void refuse_to_go_on(const std::string& why) const;

  NNI_LAZY void follow_status();

  // A reason counts until its run has begun or ended.
  void show_queued() { board_->set_waiting_reason(queued_.empty() ? std::string() : queued_.begin()->second); }
  NNI_LAZY void forget_queued(RunId run);

  NNI_LAZY awaitable<void> give_up();
  NNI_LAZY [[nodiscard]] std::string what_is_awaited() const;

  // ---- a platform that is away ----------------------------------------------------------------------------------

  NNI_LAZY void show_trouble();
  NNI_LAZY void defer_run(JobEnded what);
  NNI_LAZY void hold_starts(std::string reason);
  NNI_LAZY void release_starts();
  NNI_LAZY void drop_outage();
  NNI_LAZY [[nodiscard]] bool may_place();
  NNI_LAZY void note_probe(RunId run);
  NNI_LAZY SteadyPoint watch_platform(SteadyPoint at);
  NNI_LAZY [[noreturn]] void end_by_outage(const std::string& reason) const;
  NNI_LAZY awaitable<std::optional<std::string>> ask_to_cancel(RunId run, StopReason why);
  NNI_LAZY awaitable<void> cancel_again(RunId run, StopReason why, std::string refusal);

  // ---- limits -------------------------------------------------------------------------------------------------

  // Runs that were adopted come in the order of their names, not of their age.
  NNI_LAZY void note_start(RunId run, Duration ago);

  NNI_LAZY awaitable<void> limit_loop();
  NNI_LAZY SteadyPoint place_retries(SteadyPoint at);
  NNI_LAZY SteadyPoint stop_overdue(SteadyPoint at);

  Context* context_;
  EngineHooks hooks_;
  Composition* policies_;
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

#if NNI_HEADER_ONLY
#include <nni/experiment/detail/engine_inl.hpp>
#endif
