#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <nni/ledger/ledger.hpp>
#include <nni/ledger/ledger_outage_inl.hpp>
#include <nni/ledger/ledger_resume_inl.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni {

NNI_INLINE Ledger::Ledger(LedgerOptions options) : options_(std::move(options)) {}

// First in, first out by trial: a trial that is tried again does not go to the end of the line.
NNI_INLINE void Ledger::stand_in_line(TrialId trial) {
  waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), trial), trial);
  ++counts_.waiting;
}

NNI_INLINE void Ledger::retry_due(TrialId id) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !std::exchange(found->second.pausing, false)) return;
  --counts_.retrying;
  stand_in_line(id);
}

NNI_INLINE std::size_t Ledger::wanted() const noexcept {
  if (stopped_ || paused() || exhausted_ || holds_starts()) return 0;
  const std::size_t busy = counts_.live + counts_.waiting + requested_;
  if (busy >= options_.concurrency) return 0;
  const std::uint64_t spent = counts_.ordered + requested_;
  if (spent >= options_.max_trials) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(options_.concurrency - busy, options_.max_trials - spent));
}

NNI_INLINE TrialId Ledger::order(NewTrial what, TimePoint now, Transition& out) {
  if (requested_ > 0) --requested_;
  const TrialId id{++counts_.ordered};
  out.records.emplace_back(std::in_place_type<TrialOrdered>, id, what.parameter, what.parameters, now);
  Trial& trial = trials_[id];
  trial.detail.trial = id;
  trial.detail.parameter = what.parameter;
  trial.detail.parameters = std::move(what.parameters);
  trial.detail.status = TrialJobStatus::waiting;
  trial.detail.submit_time = now;
  trial.run = RunId{id, 0};
  waiting_.push_back(id);
  ++counts_.waiting;
  return id;
}

NNI_INLINE void Ledger::no_more_trials() noexcept {
  requested_ = 0;
  exhausted_ = true;
}

NNI_INLINE std::optional<TrialId> Ledger::next_waiting() const {
  if (stopped_ || paused() || holds_starts() || waiting_.empty() || counts_.live >= options_.concurrency)
    return std::nullopt;
  return waiting_.front();
}

NNI_INLINE void Ledger::intend(TrialId id, TrialJobForm form, TimePoint now, Transition& out) {
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  const auto found = trials_.find(id);
  if (place == waiting_.end() || found == trials_.end()) return;
  waiting_.erase(place);
  --counts_.waiting;
  Trial& trial = found->second;
  next_run(trial);
  trial.last_end.reset();
  trial.submitted = true;
  trial.holds_place = true;
  trial.start_recorded = false;
  trial.placement = form.placement;
  trial.detail.environment = form.placement.node;
  ++counts_.live;
  out.records.emplace_back(std::in_place_type<RunIntended>, trial.run, form.placement, now);
  form.run = trial.run;
  form.parameter = trial.detail.parameter;
  form.parameters = trial.detail.parameters;
  out.effects.emplace_back(options_.submit_durability, Submit{std::move(form)});
}

NNI_INLINE void Ledger::refuse(TrialId id, std::string reason, TimePoint now, Transition& out) {
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  const auto found = trials_.find(id);
  if (place == waiting_.end() || found == trials_.end()) return;
  waiting_.erase(place);
  --counts_.waiting;
  Trial& trial = found->second;
  next_run(trial);
  JobEnd end{EndKind::not_started, 0, std::move(reason)};
  judge_start(end);
  finish(trial, TrialJobStatus::failed, std::move(end), now, out);
}

NNI_INLINE void Ledger::event(const JobEvent& what, TimePoint, Transition& out) {
  if (const auto* begin = std::get_if<JobStarted>(&what)) {
    take_up(begin->run);
    started(*begin, out);
  } else if (const auto* end = std::get_if<JobEnded>(&what)) {
    if (end->end.kind != EndKind::deferred) take_up(end->run);
    ended(*end, false, out);
  } else if (const auto* queued = std::get_if<JobQueued>(&what)) {
    if (Trial* trial = find_live(queued->run)) trial->detail.message = queued->reason;
  }
}

NNI_INLINE void Ledger::lost_with_manager(const JobEnded& what, Transition& out) { ended(what, true, out); }

NNI_INLINE void Ledger::started(const JobStarted& what, Transition& out) {
  Trial* trial = find_live(what.run);
  if (!trial || trial->detail.status == TrialJobStatus::running) return;
  trial->detail.status = TrialJobStatus::running;
  trial->detail.start_time = what.at;
  trial->detail.message.clear();
  trial->detail.job = what.job;
  trial->detail.url = what.url;
  trial->detail.working_directory = what.working_directory;
  trial->detail.tags = what.tags;
  ++counts_.running;
  if (!std::exchange(trial->start_recorded, true)) out.records.emplace_back(std::in_place_type<RunStarted>, what);
}

NNI_INLINE void Ledger::message(TrialMessage what, Transition& out) {
  can_start_ = true;
  failed_starts_ = 0;
  take_up(what.metric.run);
  if (what.kind == TrialMessage::Kind::garbage) {
    ++counts_.garbage;
    out.effects.emplace_back(Durability::none, Acknowledge{what.receipt});
    return;
  }
  metric(std::move(what.metric), what.receipt, out);
}

// What is proved once holds until the experiment is started again: a platform that has bad days is no wrong command.
NNI_INLINE void Ledger::judge_start(const JobEnd& end) {
  if (can_start_ || end.kind == EndKind::killed || end.kind == EndKind::lost) return;
  const bool unusable = end.kind == EndKind::exited && (end.code == 126 || end.code == 127);
  if (end.kind != EndKind::not_started && !unusable) {
    can_start_ = true;
    failed_starts_ = 0;
    return;
  }
  ++failed_starts_;
  start_failure_ = end.message.empty() && !unusable ? "its platform gave no reason" : end.message;
  if (unusable)
    start_failure_ +=
        (end.message.empty() ? "exit code " : " (exit code ") + std::to_string(end.code) +
        (end.code == 127 ? ", a program was not found" : ", a program cannot be executed") +
        (end.message.empty() ? "" : ")");
}

NNI_INLINE std::string Ledger::cannot_start() const {
  return holds_starts() && counts_.live == 0 ? start_failure_ : std::string();
}

NNI_INLINE void Ledger::metric(Metric what, Receipt receipt, Transition& out) {
  Trial* trial = find_live(what.run);
  const bool is_final = what.kind == MetricKind::final;
  const Durability durability = is_final ? Durability::synced : Durability::written;
  if (!trial) {
    // It is kept all the same if a store can know the trial, which must not wait for ever.
    ++counts_.late;
    const bool ordered = what.run.trial.number != 0 && what.run.trial.number <= counts_.ordered;
    if (!ordered) {
      out.effects.emplace_back(Durability::none, Acknowledge{receipt});
      return;
    }
    out.records.emplace_back(std::in_place_type<MetricReceived>, std::move(what));
    out.effects.emplace_back(durability, Acknowledge{receipt});
    return;
  }
  // A second delivery of what was recorded changes nothing, but the sender still needs its answer.
  if (trial->seen.insert(what)) {
    out.records.emplace_back(std::in_place_type<MetricReceived>, what);
    const bool is_later = is_final && trial->detail.final_value;  // it is not the result
    if (is_final && !is_later) trial->detail.final_value = what.value;
    if (!is_final) {
      const std::optional<double> number = what.scalar();
      if (number && std::isfinite(*number)) trial->last_number = number;
    }
    if (!is_later || options_.every_final) out.effects.emplace_back(Durability::none, ReportMetric{std::move(what)});
  }
  out.effects.emplace_back(durability, Acknowledge{receipt});
}

// Told by this manager, or by the one before, which the service remembers.
NNI_INLINE std::optional<StopReason> Ledger::stop_reason(const Trial& trial, const JobEnd& end) {
  if (trial.told_to_stop) return trial.told_to_stop;
  return end.kind == EndKind::killed ? end.why.value_or(StopReason::user) : end.why;
}

NNI_INLINE bool Ledger::retries_after(const Trial& trial, const JobEnd& end) const {
  if (trial.retries >= options_.max_retries) return false;
  switch (end.kind) {
    case EndKind::lost:
    case EndKind::not_started: return true;
    case EndKind::exited:
    case EndKind::signalled:
    case EndKind::threw: return options_.retry_on == RetryOn::failures && !end.succeeded();
    case EndKind::killed:
    case EndKind::deferred: return false;
  }
  return false;
}

NNI_INLINE void Ledger::ended(const JobEnded& what, bool with_manager, Transition& out) {
  Trial* trial = find_live(what.run);
  if (!trial) return;
  if (what.end.kind == EndKind::deferred) return put_back(*trial, what, out);
  if (trial->detail.status == TrialJobStatus::running) --counts_.running;
  --counts_.live;
  trial->submitted = false;
  const std::optional<StopReason> stopped = stop_reason(*trial, what.end);
  if (!stopped) judge_start(what.end);
  if (std::exchange(trial->holds_place, false))
    out.effects.emplace_back(Durability::none, Release{std::exchange(trial->placement, {})});
  out.effects.emplace_back(Durability::written, Forget{what.run});
  const bool stops_with_experiment = stopped == StopReason::experiment_end;
  if (stopped && !stops_with_experiment) return finish(*trial, status_of(*stopped), what.end, what.at, out);
  if (trial->detail.final_value && (stops_with_experiment || what.end.kind == EndKind::lost)) {
    JobEnd end = what.end;
    if (!end.succeeded())
      end.message = "its final value was recorded before its end" + (end.message.empty() ? "" : ": " + end.message);
    return finish(*trial, TrialJobStatus::succeeded, std::move(end), what.at, out);
  }
  if (stops_with_experiment) return try_again(*trial, what.end, what.at, Duration::zero(), out);
  if (!with_manager && retries_after(*trial, what.end)) {
    ++trial->retries;
    const Duration pause = pause_before(trial->retries, options_.backoff, options_.seed, what.run.trial);
    return try_again(*trial, what.end, what.at, pause, out);
  }
  const bool repeats = what.end.kind == EndKind::lost && (with_manager || options_.max_retries == 0);
  if (repeats && (with_manager || ++trial->losses <= options_.max_losses))
    return try_again(*trial, what.end, what.at, Duration::zero(), out);
  finish(*trial, what.end.succeeded() ? TrialJobStatus::succeeded : TrialJobStatus::failed, what.end, what.at, out);
}

NNI_INLINE void Ledger::try_again(Trial& trial, const JobEnd& end, TimePoint at, Duration pause, Transition& out) {
  RunEnded record;
  record.run = trial.run;
  record.end = end;
  record.status = TrialJobStatus::waiting;
  record.final_attempt = false;
  record.at = at;
  record.retries = trial.retries;
  record.losses = trial.losses;
  record.pause = pause;
  out.records.emplace_back(std::move(record));
  trial.ended_at = at;
  trial.last_end = end;
  trial.detail.status = TrialJobStatus::waiting;
  trial.detail.final_value.reset();
  trial.detail.start_time.reset();
  trial.detail.message = end.message;
  trial.told_to_stop.reset();
  trial.submitted = false;
  trial.seen = {};
  trial.last_number.reset();
  if (pause > Duration::zero()) {
    trial.pausing = true;
    ++counts_.retrying;
    trial.detail.message =
        "waits " + to_string(pause) + " before retry " + std::to_string(trial.retries) + " of " +
        std::to_string(options_.max_retries) + (end.message.empty() ? "" : "; before: " + end.message);
    out.effects.emplace_back(Durability::none, RetryLater{trial.detail.trial, pause});
  } else {
    stand_in_line(trial.detail.trial);
  }
}

NNI_INLINE void Ledger::finish(Trial& trial, TrialJobStatus status, JobEnd end, TimePoint at, Transition& out) {
  trial.detail.status = status;
  trial.detail.end_time = at;
  trial.detail.message = end.message;
  trial.detail.is_early_stopped = status == TrialJobStatus::early_stopped;
  if (end.kind == EndKind::exited) trial.detail.exit_code = end.code;
  if (end.kind == EndKind::signalled) trial.detail.signal = end.code;
  RunEnded record;
  record.run = trial.run;
  record.end = std::move(end);
  record.status = status;
  record.at = at;
  record.retries = trial.retries;
  record.losses = trial.losses;
  out.records.emplace_back(std::move(record));
  out.effects.emplace_back(options_.outcome_durability, ReportOutcome{outcome_of(trial.detail, trial.last_number)});
  ++counts_.finished;
  ++counts_.by_status[static_cast<std::size_t>(status)];
  exhausted_ = false;
  const auto node = trials_.extract(trial.detail.trial);
  out.effects.emplace_back(Durability::none, Announce{std::move(node.mapped().detail)});
}

NNI_INLINE void Ledger::cancel(TrialId id, StopReason why, TimePoint now, Transition& out) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || found->second.adopting) return;
  Trial& trial = found->second;
  if (trial.submitted) {
    if (trial.told_to_stop) return;
    trial.told_to_stop = why;
    // Behind the submission of the same run, which waits for the same strength; behind nothing when that is over: who
    // stops must not wait until a disk has space.
    const bool begun = trial.detail.status == TrialJobStatus::running;
    out.effects.emplace_back(begun ? Durability::none : options_.submit_durability, Cancel{trial.run, why});
    return;
  }
  if (why == StopReason::experiment_end) return;
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  if (place != waiting_.end()) {
    waiting_.erase(place);
    --counts_.waiting;
  }
  if (trial.pausing) --counts_.retrying;
  if (std::exchange(trial.deferred, false)) --deferred_;
  JobEnd end{EndKind::killed, 0, "stopped before it started"};
  end.why = why;
  if (trial.last_end) {
    // Its last run ended as it did, and when it did; only the trial ends now.
    end = *std::move(trial.last_end);
    end.message =
        "stopped while it waited for its next attempt" + (end.message.empty() ? "" : "; before: " + end.message);
    now = trial.ended_at;
  }
  finish(trial, status_of(why), std::move(end), now, out);
}

NNI_INLINE void Ledger::cancel_all(TimePoint now, Transition& out) {
  std::vector<TrialId> live;
  for (const auto& [id, trial] : trials_)
    if (trial.submitted) live.push_back(id);
  std::sort(live.begin(), live.end());
  for (const TrialId id : live) cancel(id, StopReason::experiment_end, now, out);
}

NNI_INLINE bool Ledger::finished() const noexcept {
  if (counts_.live != 0) return false;
  if (stopped_) return true;
  return counts_.waiting == 0 && counts_.retrying == 0 && requested_ == 0 && (exhausted_ || budget_used_up());
}

NNI_INLINE Ledger::Trial* Ledger::find_live(RunId run) {
  const auto found = trials_.find(run.trial);
  return found != trials_.end() && found->second.submitted && found->second.run == run ? &found->second : nullptr;
}

NNI_INLINE const Ledger::Trial* Ledger::find_live(RunId run) const {
  const auto found = trials_.find(run.trial);
  return found != trials_.end() && found->second.submitted && found->second.run == run ? &found->second : nullptr;
}

NNI_INLINE bool Ledger::is_live(RunId run) const { return find_live(run) != nullptr; }

NNI_INLINE std::optional<RunId> Ledger::live_run(TrialId id) const {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !found->second.submitted) return std::nullopt;
  return found->second.run;
}

NNI_INLINE const Placement* Ledger::placement(RunId run) const {
  const Trial* trial = find_live(run);
  return trial ? &trial->placement : nullptr;
}

NNI_INLINE std::optional<TrialJobDetail> Ledger::detail(TrialId id) const {
  const auto found = trials_.find(id);
  if (found == trials_.end()) return std::nullopt;
  return found->second.detail;
}

}  // namespace nni
