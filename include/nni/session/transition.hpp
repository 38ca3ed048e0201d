#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <nni/core/event.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// How strongly the records of a transition must be kept before an effect may happen.
enum class Strength : std::uint8_t {
  now,      ///< at once
  written,  ///< survives a kill of this process
  synced    ///< survives a loss of power
};

/// Submit a run to the training service.
class Submit {
 public:
  Submit() = default;
  explicit Submit(TrialJobForm what) : form(std::make_unique<TrialJobForm>(std::move(what))) {}
  std::unique_ptr<TrialJobForm> form;  ///< apart, because an action is moved several times
};

/// Ask the training service to stop a run.
class Cancel {
 public:
  Cancel() = default;
  Cancel(RunId which, StopReason reason) : run(which), why(reason) {}
  RunId run;
  StopReason why = StopReason::user;
};

/// Tell the trial that its message is kept.
class Acknowledge {
 public:
  Acknowledge() = default;
  explicit Acknowledge(Receipt delivery) : receipt(delivery) {}
  Receipt receipt;
};

/// Tell the advisor a value of a running trial.
class ReportMetric {
 public:
  ReportMetric() = default;
  explicit ReportMetric(Metric what) : metric(std::move(what)) {}
  Metric metric;
};

/// Tell the advisor that a trial has ended.
class ReportOutcome {
 public:
  ReportOutcome() = default;
  explicit ReportOutcome(TrialOutcome what) : outcome(std::move(what)) {}
  TrialOutcome outcome;
};

/// Give a placement back to the scheduler.
class Release {
 public:
  Release() = default;
  explicit Release(Placement what) : placement(std::move(what)) {}
  Placement placement;
};

/// Tell the observers that a trial has ended. It waits for no record: people see what happens, and a resume tells again
/// what was not recorded.
class Announce {
 public:
  Announce() = default;
  explicit Announce(TrialJobDetail what) : detail(std::make_unique<TrialJobDetail>(std::move(what))) {}
  std::unique_ptr<TrialJobDetail> detail;  ///< apart, because an action is moved several times
};

/// Tell the training service that the end of a run is recorded; a service that keeps ends for a manager that may come
/// back can forget this one.
class Forget {
 public:
  Forget() = default;
  explicit Forget(RunId which) : run(which) {}
  RunId run;
};

/// Let a trial wait before its next attempt, and call `Ledger::retry_due` then.
class RetryLater {
 public:
  RetryLater() = default;
  RetryLater(TrialId which, Duration span) : trial(which), pause(span) {}
  TrialId trial;
  Duration pause{};
};

/// Something that a ledger wants done.
using Action =
    std::variant<Submit, Cancel, Acknowledge, ReportMetric, ReportOutcome, Release, Announce, Forget, RetryLater>;

/// An action and the strength of record that it waits for.
class Effect {
 public:
  Effect() = default;
  Effect(Strength strength, Action what) : waits_for(strength), action(std::move(what)) {}
  Strength waits_for = Strength::now;
  Action action;
};

/// What a step of the ledger leads to: records to keep, then effects to carry out, both in order.
class Transition {
 public:
  Transition() = default;

  [[nodiscard]] bool empty() const noexcept { return records.empty() && effects.empty(); }

  /// Forgets everything but the memory, so that a loop can use one transition for all its steps.
  void clear() noexcept {
    records.clear();
    effects.clear();
  }

  std::vector<StoreEvent> records;
  std::vector<Effect> effects;
};

}  // namespace nni
