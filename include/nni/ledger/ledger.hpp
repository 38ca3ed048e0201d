#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nni/core/macros.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/random.hpp>
#include <nni/core/retry.hpp>
#include <nni/core/seen_metrics.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/ledger/transition.hpp>

namespace nni {

/// A reason to start no trials for now while the experiment continues. Each reason is set and cleared separately.
enum class PauseReason : std::uint8_t {
  user,  ///< requested by a user or a program
  store  ///< the data store cannot write
};

/// Settings of a ledger.
struct LedgerOptions {
  Objectives objectives{};                                               ///< the metric to optimize
  std::size_t concurrency = 1;                                           ///< maximum number of live runs, >= 1
  std::uint64_t max_trials = std::numeric_limits<std::uint64_t>::max();  ///< maximum number of trials
  std::uint32_t max_losses = 3;                        ///< lost runs after which a trial fails, without retries
  std::uint32_t max_retries = 0;                       ///< retries of a trial, after a delay each; 0: none
  RetryOn retry_on = RetryOn::losses;                  ///< ends that a retry follows
  Backoff backoff{};                                   ///< delays before retries
  Seed seed{};                                         ///< seed of the jitter of these delays
  Durability submit_durability = Durability::written;  ///< of the intent before a submission
  Durability outcome_durability = Durability::none;    ///< of the end before the report to the advisor
  /// Consecutive runs that could not start, before any run has proved that runs can, after which none is
  /// started; 0: no limit.
  std::uint32_t max_failed_starts = 0;
  bool every_final = false;  ///< report later final values of a run too: a multi-phase trial has one for each phase
};

/// Counts for progress displays.
struct LedgerCounts {
  std::uint64_t ordered = 0;        ///< trials created so far
  std::uint64_t finished = 0;       ///< trials that ended
  std::size_t live = 0;             ///< runs submitted and not ended
  std::size_t running = 0;          ///< of these, started
  std::size_t waiting = 0;          ///< trials that are not submitted yet
  std::size_t retrying = 0;         ///< trials in their retry delay
  std::uint64_t by_status[8] = {};  ///< finished trials, indexed by `TrialJobStatus`
  std::uint64_t garbage = 0;        ///< unreadable messages
  std::uint64_t late = 0;           ///< messages of runs that had ended
};

/// The state of an experiment's trials, as a pure state machine: events in, records and effects `out`.
///
/// It performs no I/O and takes the wall time `now` as an argument, so the whole orchestration is tested as a table. It
/// holds unfinished trials only; ended ones are in the data store.
///
/// Rules (docs/concepts, "How a trial ends"):
///  - an intent is recorded before a run is submitted;
///  - a recorded final value is never discarded because of the later fate of its run;
///  - a run that was stopped for its own sake (by the advisor, the user or a time limit) ends with the status of
///    that reason, however it exits; a final value is kept, and reported to the advisor;
///  - a run that is lost, or stopped with the experiment, is SUCCEEDED if its final value is recorded.
///    Otherwise the trial gets another attempt, a stopped one after a resume;
///  - otherwise exit 0 is SUCCEEDED, with the final value if there is one; every other end is FAILED, and a final value is
///    kept;
///  - a final value without a finite number is reported to the advisor as a failure (`outcome_of`);
///  - a value is a duplicate if its kind, sequence and text were recorded for this run; anything else is a new value, in
///    whatever order values arrive. The advisor receives values in the order of arrival;
///  - of several final values of a run the first is its result, and the only one reported to the advisor, unless it requests
///    all of them (`every_final`); the others are recorded among its values, each once;
///  - without retries (`max_retries` is 0) a lost run is requeued at once, at most `max_losses` times; a run that
///    was lost while no manager existed is requeued and not counted;
///  - with retries, an end that `retry_on` selects is followed by a retry delay and another attempt, at most
///    `max_retries` times per trial, unless the run was stopped; a run that was lost because the manager
///    died counts by the rule above;
///  - a trial in its retry delay does not count towards the concurrency;
///  - a run that was deferred (`EndKind::deferred`) uses up nothing: no attempt, no retry, no loss, no failed start. Its
///    trial returns to the head of the queue, the intent stays open, and the same run is submitted again. If the platform
///    reports a start, a value or another end of that run after all, it counts as submitted;
///  - a run could not start if the platform reports so, if no machine fits it, or if it exits with 126 or 127 (the codes of
///    shells for a program that cannot be executed or found); after `max_failed_starts` of them, without a message of any
///    trial or any other end since the ledger was created, nothing starts until a live run proves that runs can.
class Ledger {
 public:
  /// @param options  limits and rules; concurrency and budget can be changed later
  explicit Ledger(LedgerOptions options);

  /// Restores the recorded state: unfinished trials wait, those with an open run for `adopted`.
  NNI_LAZY void restore(const ExperimentSnapshot& snapshot);

  /// Restores the details of an unfinished trial that a snapshot lacks. After `restore`.
  void recall(const TrialJobDetail& known);

  /// Returns the runs that the last manager may have submitted. Each needs an answer by `adopted`.
  NNI_LAZY [[nodiscard]] std::vector<Intent> open_intents() const;

  /// Returns the trials that were in a retry delay when the last manager ended, with the remaining delay. Adjustments of the
  /// wall clock never prolong a delay. Delays that began since then have effects of their own.
  [[nodiscard]] std::vector<RetryLater> pauses(TimePoint now) const;

  /// Requeues an ended trial. After `restore`, before any other call.
  void reopen(TrialJobDetail ended);

  /// Adopts an open run, or ends it, according to the `report` of its service.
  void adopted(const JobReport& report, TimePoint now, Transition& out);

  /// Returns the number of suggestions to request, so that live + waiting + requested reaches the concurrency within budget.
  [[nodiscard]] std::size_t wanted() const noexcept;

  /// Records that `count` suggestions were requested from the advisor.
  void requested(std::size_t count) noexcept { requested_ += count; }

  /// Creates a trial from a `suggestion` of the advisor.
  /// @returns the id of the trial
  TrialId order(NewTrial suggestion, TimePoint now, Transition& out);

  /// Records that the advisor has no suggestions for now; it is asked again after the next end of a trial.
  void no_more_trials() noexcept;

  /// Requeues a trial whose retry delay has elapsed.
  void retry_due(TrialId trial);

  /// Returns the next trial to place, if there is a free slot.
  [[nodiscard]] std::optional<TrialId> next_waiting() const;

  /// Records the intent of a waiting trial that has a placement, and submits it.
  /// @param form  everything that the ledger does not know: command, directory, environment, request, mount
  void intend(TrialId trial, TrialJobForm form, TimePoint now, Transition& out);

  /// Ends a waiting trial that can never run as failed, with the reason.
  void refuse(TrialId trial, std::string reason, TimePoint now, Transition& out);

  /// Handles an event of a training service. All messages of a run precede its `JobEnded`.
  void event(const JobEvent& event, TimePoint now, Transition& out);

  /// Ends an adopted run that was lost with the previous manager; uses up no retry.
  void lost_with_manager(const JobEnded& event, Transition& out);

  /// Handles a message of a trial.
  void message(TrialMessage message, Transition& out);

  /// Stops a trial in any state; ignores unknown and ended trials.
  void cancel(TrialId trial, StopReason reason, TimePoint now, Transition& out);

  /// Starts no further trials. Live runs continue until they end or are stopped.
  void stop_placing() noexcept { stopped_ = true; }

  /// Reverts `stop_placing`.
  void go_on_placing() noexcept { stopped_ = false; }

  /// Starts no trials until every reason is cleared; does not finish the experiment.
  void pause(PauseReason reason) noexcept { paused_ |= bit(reason); }

  /// Clears a reason.
  void resume(PauseReason reason) noexcept { paused_ &= ~bit(reason); }

  /// Returns true while any reason is set.
  [[nodiscard]] bool paused() const noexcept { return paused_ != 0; }
  /// Returns true while this reason is set.
  [[nodiscard]] bool paused(PauseReason reason) const noexcept { return (paused_ & bit(reason)) != 0; }

  /// Reverts `no_more_trials`, for instance after a change of the search space.
  void ask_again() noexcept { exhausted_ = false; }

  /// Stops all live runs with the reason `experiment_end`.
  void cancel_all(TimePoint now, Transition& out);

  /// Changes the maximum number of live runs; a smaller one takes effect as runs end.
  void set_concurrency(std::size_t concurrency) noexcept { options_.concurrency = concurrency; }

  /// Changes the budget of trials.
  void set_max_trials(std::uint64_t trials) noexcept { options_.max_trials = trials; }

  /// Returns true if the budget of trials is used up.
  [[nodiscard]] bool budget_used_up() const noexcept { return counts_.ordered >= options_.max_trials; }

  /// Returns a readable reason why no trial can start any more: the last failure. Empty while trials may start or a live run
  /// may prove that they can.
  [[nodiscard]] std::string cannot_start() const;

  /// Returns true if no trial is live, waiting or expected.
  [[nodiscard]] bool finished() const noexcept;

  /// Returns true while a run is submitted and not ended.
  [[nodiscard]] bool any_live() const noexcept { return counts_.live != 0; }

  /// Returns true between `intend` and the end of the run.
  [[nodiscard]] bool is_live(RunId run) const;

  /// Returns the live run of a trial; nothing if it waits or has ended.
  [[nodiscard]] std::optional<RunId> live_run(TrialId trial) const;

  /// Returns the placement of a live run; null for others.
  [[nodiscard]] const Placement* placement(RunId run) const;

  /// Returns the details of a live or waiting trial; nothing for others.
  [[nodiscard]] std::optional<TrialJobDetail> detail(TrialId trial) const;

  /// Returns the counts of trials and runs by state.
  [[nodiscard]] const LedgerCounts& counts() const noexcept { return counts_; }

 private:
  struct Trial {
    TrialJobDetail detail;  // the details that users see, kept up to date
    RunId run;              // the current or last attempt
    std::uint32_t losses = 0;
    std::uint32_t retries = 0;
    bool pausing = false;            // in its retry delay
    Duration pause{};                // the recorded retry delay
    TimePoint ended_at{};            // of its last run
    std::optional<JobEnd> last_end;  // while it waits for its next attempt
    TimePoint intended_at{};         // of an open run of the last manager
    SeenMetrics seen;                // values of this run
    bool submitted = false;          // the run is live
    bool adopting = false;           // an open run of the last manager, until `adopted`
    bool holds_place = false;        // the scheduler has it in its books
    bool start_recorded = false;     // the start of the run is recorded
    bool deferred = false;           // `run` is to be submitted again; its intent is open
    std::optional<StopReason> told_to_stop;
    std::optional<double> last_number;  // of its intermediate values, the last finite one
    Placement placement;
  };

  Trial* find_live(RunId run);
  const Trial* find_live(RunId run) const;
  void started(const JobStarted& event, Transition& out);
  void ended(const JobEnded& event, bool with_manager, Transition& out);
  void put_back(Trial& trial, const JobEnded& event, Transition& out);
  void take_up(RunId run);
  void next_run(Trial& trial);
  [[nodiscard]] bool retries_after(const Trial& trial, const JobEnd& end) const;
  void metric(Metric value, Receipt receipt, Transition& out);
  void finish(Trial& trial, TrialJobStatus status, JobEnd end, TimePoint at, Transition& out);
  void try_again(Trial& trial, const JobEnd& end, TimePoint at, Duration pause, Transition& out);
  void stand_in_line(TrialId trial);
  void judge_start(const JobEnd& end);
  [[nodiscard]] bool holds_starts() const noexcept {
    return options_.max_failed_starts != 0 && failed_starts_ >= options_.max_failed_starts;
  }
  static constexpr unsigned bit(PauseReason reason) noexcept { return 1U << static_cast<unsigned>(reason); }
  [[nodiscard]] static std::optional<StopReason> stop_reason(const Trial& trial, const JobEnd& end);

  LedgerOptions options_;
  std::unordered_map<TrialId, Trial> trials_;  // unfinished ones
  std::deque<TrialId> waiting_;
  std::size_t requested_ = 0;
  bool exhausted_ = false;
  bool stopped_ = false;
  unsigned paused_ = 0;              // a bit for each reason
  std::size_t deferred_ = 0;         // trials whose run is to be submitted again
  bool can_start_ = false;           // some run has proved that runs can start
  std::uint32_t failed_starts_ = 0;  // consecutive, until then
  std::string start_failure_;        // the last one
  LedgerCounts counts_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/ledger/ledger_inl.hpp>
#endif
