#pragma once

/// @file
/// Bodies of `Ledger`: restoring the state of a previous manager from the store and the platform. Included by ledger_inl.hpp.

#include <algorithm>
#include <utility>

#include <nni/ledger/ledger.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni {

NNI_LAZY_BODY void Ledger::restore(const ExperimentSnapshot& snapshot) {
  counts_.ordered = snapshot.trials;
  std::copy(std::begin(snapshot.by_status), std::end(snapshot.by_status), std::begin(counts_.by_status));
  for (const std::uint64_t count : counts_.by_status) counts_.finished += count;
  for (const UnfinishedTrial& known : snapshot.unfinished) {
    Trial trial;
    trial.detail.trial = known.trial;
    trial.detail.parameter = known.parameter;
    trial.detail.parameters = known.parameters;
    trial.detail.attempts = known.attempts;
    trial.detail.status = TrialJobStatus::waiting;
    trial.retries = known.retries;
    trial.losses = known.losses;
    trial.ended_at = known.ended_at;
    trial.last_end = known.last_end;
    // The last attempt; one that never ran counts as attempt 0.
    trial.run = RunId{known.trial, known.attempts == 0 ? 0 : known.attempts - 1};
    if (known.open_run) {
      trial.run = known.open_run->run;
      trial.adopting = true;
      trial.detail.status = TrialJobStatus::unknown;  // until the platform has reported its state
      trial.start_recorded = known.open_run->started;
      trial.intended_at = known.open_run->at;
      trial.placement = known.open_run->placement;
      trial.detail.environment = trial.placement.node;
      trial.detail.job = known.open_run->job;
      trial.detail.final_value = known.final_value;
      trial.seen = known.seen;
      trial.last_number = last_finite(known.history);
    } else if (known.pause > Duration::zero()) {
      trial.pausing = true;
      trial.pause = known.pause;
      ++counts_.retrying;
    } else {
      waiting_.push_back(known.trial);
      ++counts_.waiting;
    }
    trials_.emplace(known.trial, std::move(trial));
  }
}

NNI_INLINE void Ledger::recall(const TrialJobDetail& known) {
  const auto found = trials_.find(known.trial);
  if (found == trials_.end()) return;
  TrialJobDetail& detail = found->second.detail;
  detail.submit_time = known.submit_time;
  if (!found->second.adopting) return;
  detail.url = known.url;
  detail.working_directory = known.working_directory;
  detail.tags = known.tags;
}

NNI_LAZY_BODY std::vector<Intent> Ledger::open_intents() const {
  std::vector<Intent> intents;
  for (const auto& [id, trial] : trials_) {
    if (!trial.adopting) continue;
    Intent intent;
    intent.run = trial.run;
    intent.at = trial.intended_at;
    intent.job = trial.detail.job;
    intent.started = trial.start_recorded;
    intent.placement = trial.placement;
    intents.push_back(std::move(intent));
  }
  std::sort(intents.begin(), intents.end(), [](const Intent& a, const Intent& b) { return a.run < b.run; });
  return intents;
}

NNI_INLINE std::vector<RetryLater> Ledger::pauses(TimePoint now) const {
  std::vector<RetryLater> pauses;
  for (const auto& [id, trial] : trials_)
    if (trial.pausing && trial.pause > Duration::zero()) {
      // Clamped, because the wall clock may have been adjusted while no manager ran.
      const Duration left = trial.ended_at + trial.pause - now;
      pauses.emplace_back(id, std::clamp(left, Duration::zero(), trial.pause));
    }
  std::sort(pauses.begin(), pauses.end(), [](const auto& a, const auto& b) { return a.trial < b.trial; });
  return pauses;
}

NNI_INLINE void Ledger::reopen(TrialJobDetail ended) {
  --counts_.finished;
  --counts_.by_status[static_cast<std::size_t>(ended.status)];
  Trial& trial = trials_[ended.trial];
  trial.run = RunId{ended.trial, ended.attempts == 0 ? 0 : ended.attempts - 1};
  trial.detail.trial = ended.trial;
  trial.detail.parameter = ended.parameter;
  trial.detail.parameters = std::move(ended.parameters);
  trial.detail.attempts = ended.attempts;
  trial.detail.submit_time = ended.submit_time;
  trial.detail.status = TrialJobStatus::waiting;
  stand_in_line(ended.trial);
}

NNI_INLINE void Ledger::adopted(const JobReport& report, TimePoint now, Transition& out) {
  const auto found = trials_.find(report.run.trial);
  if (found == trials_.end() || !found->second.adopting || found->second.run != report.run) return;
  Trial& trial = found->second;
  trial.adopting = false;
  if (report.state == JobReport::State::never_started) {
    // The intent is withdrawn: it had no external effect, so the trial is requeued.
    JobEnd end{EndKind::not_started, 0, "the manager ended before it was submitted"};
    try_again(trial, end, now, Duration::zero(), out);
    return;
  }
  trial.submitted = true;
  // Only runs that are still alive occupy the scheduler.
  trial.holds_place = report.state == JobReport::State::running;
  ++counts_.live;
  trial.detail.status = TrialJobStatus::waiting;
  if (!report.job.empty()) trial.detail.job = report.job;
  if (report.started != TimePoint{}) {
    // Fields that the report leaves empty are as recorded.
    JobStarted begin{report.run, trial.detail.job, report.started};
    begin.url = report.url.empty() ? trial.detail.url : report.url;
    begin.working_directory =
        report.working_directory.empty() ? trial.detail.working_directory : report.working_directory;
    begin.tags = report.tags.empty() ? trial.detail.tags : report.tags;
    started(begin, out);
  }
  if (report.state == JobReport::State::running) return;
  JobEnd end = report.end;
  if (report.state == JobReport::State::unknown) {
    end.kind = EndKind::lost;
    if (end.message.empty()) end.message = "the platform no longer knows this run";
  }
  // A loss that the platform remembers uses up a retry; without retries it is not counted.
  const bool uncounted = end.kind == EndKind::lost && options_.max_retries == 0;
  const JobEnded ending{report.run, std::move(end), report.ended == TimePoint{} ? now : report.ended};
  ended(ending, uncounted || report.state == JobReport::State::unknown, out);
}

}  // namespace nni
