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

/// Submit a run to the training service.
class Submit {
 public:
  Submit() = default;
  /// @param what  the run, and everything that it needs
  explicit Submit(TrialJobForm what) : form(std::make_unique<TrialJobForm>(std::move(what))) {}
  std::unique_ptr<TrialJobForm> form;  ///< apart, because an action is moved several times
};

/// Ask the training service to stop a run.
class Cancel {
 public:
  Cancel() = default;
  /// @param which   the run
  /// @param reason  decides the status with which its trial ends
  Cancel(RunId which, StopReason reason) : run(which), why(reason) {}
  RunId run;                          ///< which run
  StopReason why = StopReason::user;  ///< decides the status with which its trial ends
};

/// Tell the trial that its message is kept.
class Acknowledge {
 public:
  Acknowledge() = default;
  /// @param delivery  as it came with the message
  explicit Acknowledge(Receipt delivery) : receipt(delivery) {}
  Receipt receipt;  ///< as it came with the message
};

/// Tell the advisor a value of a running trial.
class ReportMetric {
 public:
  ReportMetric() = default;
  /// @param what  the value
  explicit ReportMetric(Metric what) : metric(std::move(what)) {}
  Metric metric;  ///< the value and its run
};

/// Tell the advisor that a trial has ended.
class ReportOutcome {
 public:
  ReportOutcome() = default;
  /// @param what  how it ended
  explicit ReportOutcome(TrialOutcome what) : outcome(std::move(what)) {}
  TrialOutcome outcome;  ///< which trial, and how it ended
};

/// Give a placement back to the scheduler.
class Release {
 public:
  Release() = default;
  /// @param what  as the scheduler returned it
  explicit Release(Placement what) : placement(std::move(what)) {}
  Placement placement;  ///< as the scheduler returned it
};

/// Tell the observers that a trial has ended. It waits for no record: people see what happens, and a resume tells again
/// what was not recorded.
class Announce {
 public:
  Announce() = default;
  /// @param what  the trial in its final state
  explicit Announce(TrialJobDetail what) : detail(std::make_unique<TrialJobDetail>(std::move(what))) {}
  std::unique_ptr<TrialJobDetail> detail;  ///< apart, because an action is moved several times
};

/// Tell the training service that the end of a run is recorded; a service that keeps ends for a manager that may come
/// back can forget this one.
class Forget {
 public:
  Forget() = default;
  /// @param which  the run
  explicit Forget(RunId which) : run(which) {}
  RunId run;  ///< which run
};

/// Let a trial wait before its next attempt, and call `Ledger::retry_due` then.
class RetryLater {
 public:
  RetryLater() = default;
  /// @param which  the trial
  /// @param span   from now on
  RetryLater(TrialId which, Duration span) : trial(which), pause(span) {}
  TrialId trial;     ///< which trial
  Duration pause{};  ///< from now on
};

/// Something that a ledger wants done.
using Action =
    std::variant<Submit, Cancel, Acknowledge, ReportMetric, ReportOutcome, Release, Announce, Forget, RetryLater>;

/// An action and the strength of record that it waits for.
class Effect {
 public:
  Effect() = default;
  /// @param strength  of the records of its transition
  /// @param what      is to be done then
  Effect(Durability strength, Action what) : waits_for(strength), action(std::move(what)) {}
  Durability waits_for = Durability::none;  ///< how strongly the records of its transition must be kept before
  Action action;                            ///< what is to be done then
};

/// What a step of the ledger leads to: records to keep, then effects to carry out, both in order.
class Transition {
 public:
  Transition() = default;

  /// True when there is nothing to do.
  [[nodiscard]] bool empty() const noexcept { return records.empty() && effects.empty(); }

  /// Forgets everything but the memory, so that a loop can use one transition for all its steps.
  void clear() noexcept {
    records.clear();
    effects.clear();
  }

  std::vector<StoreEvent> records;  ///< to append to the store, in order
  std::vector<Effect> effects;      ///< to carry out, in order, each when its records are kept strongly enough
};

}  // namespace nni
