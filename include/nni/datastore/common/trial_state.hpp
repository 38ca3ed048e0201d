#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <nni/core/seen_metrics.hpp>
#include <nni/core/store_event.hpp>

namespace nni::datastore::detail {

/// The state of one trial as its events give it: the rules that every data store shares.
///
/// A trial is seen through its last attempt; each intent begins a new one.
class TrialState : public RetryState {
 public:
  TrialState() = default;

  void ordered(const TrialOrdered& event);
  void intended(const RunIntended& event);
  void started(const RunStarted& event);
  void ended(const RunEnded& event);

  /// Records a value of the current attempt.
  /// @returns false for a duplicate, which changes nothing
  bool received(const Metric& metric);

  /// Returns the trial as a snapshot lists it.
  /// @param values  of the current attempt
  [[nodiscard]] UnfinishedTrial unfinished(std::span<const Metric> values) const;

  /// True for the attempt that the trial is seen through.
  [[nodiscard]] bool is_current(RunId run) const noexcept { return run.attempt == attempt; }

  TrialJobDetail detail;
  std::uint32_t attempt = 0;
  bool has_run = false;   ///< something is known of the current attempt
  bool run_open = false;  ///< it was intended and has not ended
  std::optional<TimePoint> intended_at;
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> ended_at;
  Placement placement;
  JobEnd end;  ///< meaningful with `ended_at`
  SeenMetrics seen;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/trial_state_inl.hpp>
#endif
