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

/// Why no trial starts for now, although the experiment goes on. Each reason is set and lifted by itself.
enum class PauseReason : std::uint8_t {
  user,  ///< a person or program asked
  store  ///< what happens cannot be recorded
};

/// Settings of a ledger.
struct LedgerOptions {
  Objectives objectives{};                                               ///< which final results are better
  std::size_t concurrency = 1;                                           ///< live runs at most, 1 or more
  std::uint64_t max_trials = std::numeric_limits<std::uint64_t>::max();  ///< trials ever ordered
  std::uint32_t max_losses = 3;        ///< runs that may be lost before the trial fails, without retries
  std::uint32_t max_retries = 0;       ///< further attempts of a trial, after a pause each; 0: none
  RetryOn retry_on = RetryOn::losses;  ///< which ends they follow
  Backoff backoff{};                   ///< the pauses before them
  Seed seed{};                         ///< moves the pauses a little
  Durability submit_durability = Durability::written;  ///< what an intent waits for
  Durability outcome_durability = Durability::none;    ///< what telling the advisor of an end waits for
  /// Runs that could not start, one after the other and before any did what shows that runs can, after which no other
  /// starts; 0: no limit.
  std::uint32_t max_failed_starts = 0;
  bool every_final = false;  ///< later final values of a run are told too: a trial of several phases has one for each
};

/// Counts for progress displays.
struct LedgerCounts {
  std::uint64_t ordered = 0;        ///< trials ever ordered
  std::uint64_t finished = 0;       ///< trials that ended
  std::size_t live = 0;             ///< runs submitted and not ended
  std::size_t running = 0;          ///< of these, started
  std::size_t waiting = 0;          ///< ordered, not submitted yet
  std::size_t retrying = 0;         ///< in the pause before their next attempt
  std::uint64_t by_status[8] = {};  ///< finished trials, indexed by `TrialJobStatus`
  std::uint64_t garbage = 0;        ///< messages that could not be understood
  std::uint64_t late = 0;           ///< messages of runs that had ended
};

/// The state of an experiment's trials, as a pure state machine: events in, records and effects `out`.
///
/// It performs no I/O and knows no time but the wall time `now` that it is told, so the whole orchestration is tested as a table. It
/// holds live trials only; what has ended is in the data store.
///
/// Rules (docs/concepts, "How a trial ends"):
///  - an intent is recorded before a run is submitted;
///  - a final value that was recorded is never set aside by what happens to its run afterwards;
///  - a run that was told to stop for its own sake (by the advisor, the user or a limit of time) ends with the status of
///    that reason, however it exits; a final value is kept, and told to the advisor;
///  - a run that is lost, or stopped because the experiment stops, is over if its final value is recorded: SUCCEEDED with
///    it. Without one it is attempted again, a stopped one after a resume;
///  - otherwise exit 0 is SUCCEEDED, with the final value if there is one; every other end is FAILED, and a final value is
///    kept;
///  - a final value without a finite number is told to the advisor as a failure (`outcome_of`);
///  - a value is a repetition if its kind, sequence and text were recorded for this run; anything else is a new value, in
///    whatever order values arrive. The advisor is told values in the order of arrival;
///  - of several final values of a run the first is its result, and the only one that the advisor hears, unless it wants
///    every one (`every_final`); the others are recorded among its values, each once;
///  - without retries (`max_retries` is 0) a lost run is attempted again at once, at most `max_losses` times; a run that
///    was lost while no manager was there is attempted again and not counted;
///  - with retries, an end of the kinds that `retry_on` names is followed by a pause and another attempt, at most
///    `max_retries` times for a trial, whatever was told to stop excepted; a run that was lost because the manager
///    died counts by the rule above;
///  - a trial in its pause takes no place of the concurrency;
///  - a run that was deferred (`EndKind::deferred`) costs nothing: no attempt, no retry, no loss, no failed start. Its
///    trial returns to the head of the line, the intent stays open, and the same run is submitted again. If the platform
///    reports a start, a value or another end of that run after all, it counts as submitted;
///  - a run could not start if the platform says so, if no machine fits it, or if it exits with 126 or 127 (what shells say
///    of a program that cannot be executed or found); after `max_failed_starts` of them, with no message of any trial and
///    no other end by itself since the ledger began, nothing starts until a run that is still alive shows that runs can.
class Ledger {
 public:
  /// @param options  limits and rules; two of them can be changed later
  explicit Ledger(LedgerOptions options);

  /// Takes over what a store knew: unfinished trials wait, or wait for `adopted` if they have an open run.
  NNI_LAZY void restore(const ExperimentSnapshot& snapshot);

  /// What a store knows of an unfinished trial beside what a snapshot says. After `restore`.
  void recall(const TrialJobDetail& known);

  /// Runs that were submitted, perhaps, when the last manager ended. Each needs an answer by `adopted`.
  NNI_LAZY [[nodiscard]] std::vector<Intent> open_intents() const;

  /// Trials that were in a pause when the last manager ended, and what is left of it. Steps of the wall clock
  /// meanwhile never make a pause longer than it was. A pause that began since has an effect of its own.
  [[nodiscard]] std::vector<RetryLater> pauses(TimePoint now) const;

  /// A trial that had ended is to be tried again: it waits. After `restore`, before everything else.
  void reopen(TrialJobDetail ended);

  /// What became of an open run, by the `report` of its service.
  void adopted(const JobReport& report, TimePoint now, Transition& out);

  /// Suggestions to ask the advisor for, so that live + waiting + requested reaches the concurrency within budget.
  [[nodiscard]] std::size_t wanted() const noexcept;

  /// The advisor was asked for so many.
  void requested(std::size_t count) noexcept { requested_ += count; }

  /// The advisor ordered `what`. @returns the id of the trial
  TrialId order(NewTrial what, TimePoint now, Transition& out);

  /// The advisor has nothing more for now; it is asked again after the next end of a trial.
  void no_more_trials() noexcept;

  /// The pause of a trial is over; it waits for a place.
  void retry_due(TrialId trial);

  /// The next trial that may be placed, if there is a free slot.
  [[nodiscard]] std::optional<TrialId> next_waiting() const;

  /// A waiting trial was given a place: records the intent and submits.
  /// @param form  what does not come from the ledger: command, directory, environment, request, mount
  void intend(TrialId trial, TrialJobForm form, TimePoint now, Transition& out);

  /// A waiting trial can never run; it ends as failed, with the reason.
  void refuse(TrialId trial, std::string reason, TimePoint now, Transition& out);

  /// A training service told `what`. For `JobEnded` all messages of the run must have been given before.
  void event(const JobEvent& what, TimePoint now, Transition& out);

  /// The end, `what`, of an adopted run that was lost because the last manager died; it costs no retry.
  void lost_with_manager(const JobEnded& what, Transition& out);

  /// A trial said `what`.
  void message(TrialMessage what, Transition& out);

  /// Stops a trial in any state, for the reason `why`; unknown or ended trials are ignored.
  void cancel(TrialId trial, StopReason why, TimePoint now, Transition& out);

  /// No further trial starts. Runs that are alive go on until they end or are cancelled.
  void stop_placing() noexcept { stopped_ = true; }

  /// Takes `stop_placing` back.
  void go_on_placing() noexcept { stopped_ = false; }

  /// No trial starts until every reason was lifted; the experiment is not finished by that.
  void pause(PauseReason why) noexcept { paused_ |= bit(why); }

  /// Lifts a reason.
  void resume(PauseReason why) noexcept { paused_ &= ~bit(why); }

  /// True while there is a reason for a pause.
  [[nodiscard]] bool paused() const noexcept { return paused_ != 0; }
  /// True while this is one of the reasons.
  [[nodiscard]] bool paused(PauseReason why) const noexcept { return (paused_ & bit(why)) != 0; }

  /// The advisor may have more to suggest than it said, for instance because of another search space.
  void ask_again() noexcept { exhausted_ = false; }

  /// Stops every live run because the experiment stops.
  void cancel_all(TimePoint now, Transition& out);

  /// Changes the number of live runs; a smaller one takes effect as runs end.
  void set_concurrency(std::size_t concurrency) noexcept { options_.concurrency = concurrency; }

  /// Changes the budget of trials.
  void set_max_trials(std::uint64_t trials) noexcept { options_.max_trials = trials; }

  /// True when the budget of trials is used up.
  [[nodiscard]] bool budget_used_up() const noexcept { return counts_.ordered >= options_.max_trials; }

  /// Why nothing can start any more, for people: the last failure. Empty while trials may start or a live run may show
  /// that they can.
  [[nodiscard]] std::string cannot_start() const;

  /// True when nothing is live, waiting or to be expected.
  [[nodiscard]] bool finished() const noexcept;

  /// True while a run is submitted and not ended.
  [[nodiscard]] bool any_live() const noexcept { return counts_.live != 0; }

  /// True between `intend` and the end of the run.
  [[nodiscard]] bool is_live(RunId run) const;

  /// The live run of a trial; nothing when it waits or has ended.
  [[nodiscard]] std::optional<RunId> live_run(TrialId trial) const;

  /// Where a live run is; nothing for others.
  [[nodiscard]] const Placement* placement(RunId run) const;

  /// A live or waiting trial as people see it; nothing for others.
  [[nodiscard]] std::optional<TrialJobDetail> detail(TrialId trial) const;

  /// Trials and runs by state.
  [[nodiscard]] const LedgerCounts& counts() const noexcept { return counts_; }

 private:
  struct Trial {
    TrialJobDetail detail;  // what people see, kept up to date
    RunId run;              // the current or last attempt
    std::uint32_t losses = 0;
    std::uint32_t retries = 0;
    bool pausing = false;            // before its next attempt
    Duration pause{};                // as a store said
    TimePoint ended_at{};            // of its last run
    std::optional<JobEnd> last_end;  // while it waits for its next attempt
    TimePoint intended_at{};         // of an open run of the last manager
    SeenMetrics seen;                // values of this run
    bool submitted = false;          // the run is live
    bool adopting = false;           // the run waits for `adopted`
    bool holds_place = false;        // the scheduler counts its placement
    bool start_recorded = false;     // the store knows that the run began
    bool deferred = false;           // waits to submit `run` again, whose intent is open
    std::optional<StopReason> told_to_stop;
    std::optional<double> last_number;  // of its intermediate values, the last finite one
    Placement placement;
  };

  Trial* find_live(RunId run);
  const Trial* find_live(RunId run) const;
  void started(const JobStarted& what, Transition& out);
  void ended(const JobEnded& what, bool with_manager, Transition& out);
  void put_back(Trial& trial, const JobEnded& what, Transition& out);
  void take_up(RunId run);
  void next_run(Trial& trial);
  [[nodiscard]] bool retries_after(const Trial& trial, const JobEnd& end) const;
  void metric(Metric what, Receipt receipt, Transition& out);
  void finish(Trial& trial, TrialJobStatus status, JobEnd end, TimePoint at, Transition& out);
  void try_again(Trial& trial, const JobEnd& end, TimePoint at, Duration pause, Transition& out);
  void stand_in_line(TrialId trial);
  void judge_start(const JobEnd& end);
  [[nodiscard]] bool holds_starts() const noexcept {
    return options_.max_failed_starts != 0 && failed_starts_ >= options_.max_failed_starts;
  }
  static constexpr unsigned bit(PauseReason why) noexcept { return 1U << static_cast<unsigned>(why); }
  [[nodiscard]] static std::optional<StopReason> stop_reason(const Trial& trial, const JobEnd& end);

  LedgerOptions options_;
  std::unordered_map<TrialId, Trial> trials_;  // waiting and live ones
  std::deque<TrialId> waiting_;
  std::size_t requested_ = 0;
  bool exhausted_ = false;
  bool stopped_ = false;
  unsigned paused_ = 0;              // a bit for each reason
  std::size_t deferred_ = 0;         // trials that wait to submit the same run again
  bool can_start_ = false;           // a run has shown that runs can
  std::uint32_t failed_starts_ = 0;  // before that
  std::string start_failure_;        // the last one
  LedgerCounts counts_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/ledger/ledger_inl.hpp>
#endif
