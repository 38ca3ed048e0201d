#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/common/trial_state.hpp>

namespace nni::datastore::detail {

NNI_INLINE void TrialState::ordered(const TrialOrdered& event) {
  detail.trial = event.trial;
  detail.parameter = event.parameter;
  detail.status = TrialJobStatus::waiting;
  detail.submit_time = event.at;
}

NNI_INLINE void TrialState::intended(const RunIntended& event) {
  // A trial that is reopened after its end gets all of its retries again.
  if (is_terminal(detail.status)) static_cast<RetryState&>(*this) = {};
  if (has_run) {
    // The results of the last attempt do not describe this one.
    detail.start_time.reset();
    detail.final_value.reset();
    start_fields(JobStarted(), detail, [](const auto& none, auto& known) { known = none; });
    detail.message.clear();
    // It may have ended, and is retried on request.
    detail.end_time.reset();
    detail.exit_code.reset();
    detail.signal.reset();
    detail.is_early_stopped = false;
    started_at.reset();
    ended_at.reset();
    end = {};
    seen = {};
  }
  attempt = event.run.attempt;
  has_run = true;
  run_open = true;
  intended_at = event.at;
  placement = event.placement;
  detail.attempts = std::max(detail.attempts, attempt + 1);
  detail.environment = event.placement.node;
  detail.status = TrialJobStatus::waiting;
}

NNI_INLINE void TrialState::started(const RunStarted& event) {
  has_run = true;
  started_at = event.started.at;
  detail.status = TrialJobStatus::running;
  detail.start_time = event.started.at;
  start_fields(event.started, detail, [](const auto& told, auto& known) { known = told; });
}

NNI_INLINE bool TrialState::received(const Metric& metric) {
  if (!seen.insert(metric)) return false;
  // A value that arrives after the end is kept, but the outcome was reported without it.
  if (metric.kind == MetricKind::final && !detail.final_value && !is_terminal(detail.status))
    detail.final_value = metric.value;
  return true;
}

NNI_INLINE void TrialState::ended(const RunEnded& event) {
  if (event.run.attempt > attempt) attempt = event.run.attempt;
  has_run = true;
  run_open = false;
  ended_at = event.at;
  end = event.end;
  static_cast<RetryState&>(*this) = event;
  detail.status = event.status;
  detail.message = event.end.message;
  if (!event.final_attempt) {
    detail.start_time.reset();
    detail.final_value.reset();
    return;
  }
  detail.attempts = std::max(detail.attempts, attempt + 1);
  // One that is ended while it waits for another attempt is seen through the last.
  detail.start_time = started_at;
  detail.end_time = event.at;
  detail.is_early_stopped = event.status == TrialJobStatus::early_stopped;
  detail.exit_code.reset();
  detail.signal.reset();
  if (event.end.kind == EndKind::exited) detail.exit_code = event.end.code;
  if (event.end.kind == EndKind::signalled) detail.signal = event.end.code;
}

NNI_INLINE UnfinishedTrial TrialState::unfinished(std::span<const Metric> values) const {
  UnfinishedTrial result;
  result.trial = detail.trial;
  result.parameter = detail.parameter;
  result.parameters = detail.parameters;
  result.attempts = detail.attempts;
  static_cast<RetryState&>(result) = *this;
  if (!run_open) {
    result.ended_at = ended_at.value_or(TimePoint{});
    if (ended_at) result.last_end = end;
    return result;
  }
  result.pause = Duration::zero();
  Intent& intent = result.open_run.emplace();
  intent.run = RunId{detail.trial, attempt};
  intent.at = intended_at.value_or(TimePoint{});
  intent.job = detail.job;
  intent.started = started_at.has_value();
  intent.placement = placement;
  result.final_value = detail.final_value;
  for (const Metric& metric : values) result.seen.insert(metric);
  for (const Metric& metric : values) {
    if (metric.kind != MetricKind::intermediate) continue;
    result.history.push_back(metric.scalar().value_or(std::nan("")));
  }
  return result;
}

}  // namespace nni::datastore::detail
