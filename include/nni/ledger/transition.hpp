#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <nni/core/messages.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// The durability that the records of a transition must reach before an effect is performed.
enum class Durability : std::uint8_t {
  none,     ///< the effect does not wait for its records
  written,  ///< the records survive a kill of this process
  synced    ///< the records survive a loss of power
};

/// Submits a run to the training service.
class Submit {
 public:
  Submit() = default;
  explicit Submit(TrialJobForm job_form) : form(std::make_unique<TrialJobForm>(std::move(job_form))) {}
  std::unique_ptr<TrialJobForm> form;  ///< on the heap: an action is moved several times
};

/// Asks the training service to stop a run.
class Cancel {
 public:
  Cancel() = default;
  /// @param reason  determines the final status of its trial
  Cancel(RunId run_id, StopReason reason) : run(run_id), why(reason) {}
  RunId run;                          ///< the run
  StopReason why = StopReason::user;  ///< determines the final status of its trial
};

/// Acknowledges a message to its trial.
class Acknowledge {
 public:
  Acknowledge() = default;
  /// @param delivery  receipt of the message
  explicit Acknowledge(Receipt delivery) : receipt(delivery) {}
  Receipt receipt;  ///< receipt of the message
};

/// Reports a value of a running trial to the advisor.
class ReportMetric {
 public:
  ReportMetric() = default;
  explicit ReportMetric(Metric value) : metric(std::move(value)) {}
  Metric metric;  ///< the value and its run
};

/// Reports the outcome of a trial to the advisor.
class ReportOutcome {
 public:
  ReportOutcome() = default;
  explicit ReportOutcome(TrialOutcome trial_outcome) : outcome(std::move(trial_outcome)) {}
  TrialOutcome outcome;  ///< the trial, its final status and its value
};

/// Releases a placement to the scheduler.
class Release {
 public:
  Release() = default;
  explicit Release(Placement granted) : placement(std::move(granted)) {}
  Placement placement;  ///< as the scheduler returned it
};

/// Notifies the observers that a trial has ended. It does not wait for the record: users see events at once, and a resume
/// repeats the notification for an end that was not recorded.
class Announce {
 public:
  Announce() = default;
  explicit Announce(TrialJobDetail job_detail) : detail(std::make_unique<TrialJobDetail>(std::move(job_detail))) {}
  std::unique_ptr<TrialJobDetail> detail;  ///< on the heap: an action is moved several times
};

/// Notifies the training service that the end of a run is recorded. A service that keeps ends for a restarted manager
/// may drop this one.
class Forget {
 public:
  Forget() = default;
  explicit Forget(RunId run_id) : run(run_id) {}
  RunId run;  ///< the run
};

/// Starts the retry delay of a trial; its end is reported by `Ledger::retry_due`.
class RetryLater {
 public:
  RetryLater() = default;
  RetryLater(TrialId trial_id, Duration delay) : trial(trial_id), pause(delay) {}
  TrialId trial;     ///< the trial
  Duration pause{};  ///< from now on
};

/// An action that the ledger requests.
using Action =
    std::variant<Submit, Cancel, Acknowledge, ReportMetric, ReportOutcome, Release, Announce, Forget, RetryLater>;

/// An action and the durability that it waits for.
class Effect {
 public:
  Effect() = default;
  /// @param durability  required of the records of its transition
  /// @param requested   the action to perform then
  Effect(Durability durability, Action requested) : waits_for(durability), action(std::move(requested)) {}
  Durability waits_for = Durability::none;  ///< required durability of the records of its transition
  Action action;                            ///< the action to perform then
};

/// The result of a step of the ledger: records to append, then effects to perform, both in order.
class Transition {
 public:
  Transition() = default;

  /// Returns true if there are no records and no effects.
  [[nodiscard]] bool empty() const noexcept { return records.empty() && effects.empty(); }

  /// Removes all records and effects but keeps the memory, so that a loop can reuse one transition.
  void clear() noexcept {
    records.clear();
    effects.clear();
  }

  std::vector<StoreEvent> records;  ///< to append to the store, in order
  std::vector<Effect> effects;      ///< to perform, in order, each when its records have the required durability
};

}  // namespace nni
