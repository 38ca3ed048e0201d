#pragma once

#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/convert.hpp>

namespace nni::datastore::detail {

/// Returns how a run ended, as far as its trial shows.
NNI_INLINE JobEnd end_of(const TrialJobDetail& trial) {
  if (trial.exit_code) return JobEnd(EndKind::exited, *trial.exit_code, trial.message);
  if (trial.signal) return JobEnd(EndKind::signalled, *trial.signal, trial.message);
  JobEnd end(EndKind::killed, 0, trial.message);
  switch (trial.status) {
    case TrialJobStatus::user_canceled: end.why = StopReason::user; break;
    case TrialJobStatus::sys_canceled: end.why = StopReason::experiment_end; break;
    case TrialJobStatus::early_stopped: end.why = StopReason::early_stop; break;
    case TrialJobStatus::succeeded: end.kind = EndKind::lost; break;  // after its final value
    default: end.kind = is_terminal(trial.status) ? EndKind::threw : EndKind::lost;
  }
  return end;
}

NNI_INLINE RunEnded ended(RunId run, JobEnd how, TrialJobStatus status, TimePoint at) {
  RunEnded event;
  event.run = run;
  event.end = std::move(how);
  event.status = status;
  event.final_attempt = is_terminal(status);
  event.at = at;
  return event;
}

NNI_INLINE void add_last_run(std::vector<StoreEvent>& events, RunId run, const TrialJobDetail& trial,
                             const std::vector<Metric>& values, const UnfinishedTrial* open) {
  const Intent* const intent = open != nullptr && open->open_run ? &*open->open_run : nullptr;
  const TimePoint ordered = trial.submit_time.value_or(TimePoint{});
  const TimePoint begun = trial.start_time.value_or(intent != nullptr ? intent->at : ordered);
  events.emplace_back(RunIntended(run, intent != nullptr ? intent->placement : Placement(trial.environment),
                                  intent != nullptr ? intent->at : begun));
  if (intent != nullptr ? intent->started : trial.start_time || !trial.job.empty()) {
    JobStarted started(run, trial.job, begun);
    start_fields(started, trial, [](auto& told, const auto& known) { told = known; });
    events.emplace_back(RunStarted(std::move(started)));
  }
  // A final value that arrived too late to count was recorded after the end.
  const bool is_late = is_terminal(trial.status) && !trial.final_value;
  const auto add = [&](bool late) {
    for (const Metric& value : values)
      if (value.run.attempt == run.attempt && (is_late && value.kind == MetricKind::final) == late)
        events.emplace_back(MetricReceived(value));
  };
  add(false);
  if (intent == nullptr) {
    // A run of which only the start is known cannot be adopted: the trial waits for its next attempt.
    const TrialJobStatus status = is_terminal(trial.status) ? trial.status : TrialJobStatus::waiting;
    RunEnded end = ended(run, end_of(trial), status, trial.end_time.value_or(begun));
    if (open != nullptr) {
      static_cast<RetryState&>(end) = *open;
      if (open->ended_at != TimePoint{}) end.at = open->ended_at;
    }
    events.emplace_back(std::move(end));
  }
  add(true);
}

NNI_INLINE std::vector<StoreEvent> events_of(
    const TrialJobDetail& trial, const std::vector<Metric>& values, const UnfinishedTrial* open) {
  const TimePoint at = trial.submit_time.value_or(TimePoint{});
  // Each of them takes two events here.
  constexpr std::uint32_t most_attempts = 1'000'000;
  if (trial.attempts > most_attempts)
    throw Error(Errc::store_corrupt, "trial " + to_string(trial.trial) + " has " + std::to_string(trial.attempts) +
                                         " attempts, which no experiment makes: its record is damaged");
  std::vector<StoreEvent> events;
  events.emplace_back(TrialOrdered(trial.trial, trial.parameter, trial.parameters, at));
  for (std::uint32_t attempt = 0; attempt + 1 < trial.attempts; ++attempt) {
    const RunId run{trial.trial, attempt};
    events.emplace_back(RunIntended(run, Placement(), at));
    for (const Metric& value : values)
      if (value.run.attempt == attempt) events.emplace_back(MetricReceived(value));
    RunEnded end = ended(run, JobEnd(EndKind::lost, 0, "an earlier attempt"), TrialJobStatus::waiting, at);
    if (open != nullptr) static_cast<RetryState&>(end) = *open;
    end.pause = Duration::zero();  // that of the last end
    events.emplace_back(std::move(end));
  }
  if (trial.attempts > 0) add_last_run(events, RunId{trial.trial, trial.attempts - 1}, trial, values, open);
  return events;
}

NNI_INLINE ProfileChanged unfinished_copy(const ProfileChanged& profile) {
  ProfileChanged result = profile;
  result.status = ExperimentStatus::error;
  result.message = "this copy of the experiment was not finished; delete it and make another one";
  return result;
}

NNI_INLINE void require_all_copied(std::uint64_t copied, const ExperimentSnapshot& snapshot) {
  std::uint64_t expected = snapshot.unfinished.size();
  for (const std::uint64_t count : snapshot.by_status) expected += count;
  if (copied >= expected) return;
  throw Error(Errc::store_corrupt,
              "of the " + std::to_string(expected) + " trials of the experiment only " + std::to_string(copied) +
                  " could be read: its records are damaged; restore them from a copy");
}

}  // namespace nni::datastore::detail
