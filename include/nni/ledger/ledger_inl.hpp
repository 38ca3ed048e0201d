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

// Ordered by trial id, not by arrival: a retried trial keeps its position before younger ones.
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

// Requested suggestions count as busy, so that an advisor that answers slowly is not asked twice for the same slot.
NNI_INLINE std::size_t Ledger::wanted() const noexcept {
  if (stopped_ || paused() || exhausted_ || holds_starts()) return 0;
  const std::size_t busy = counts_.live + counts_.waiting + requested_;
  if (busy >= options_.concurrency) return 0;
  const std::uint64_t spent = counts_.ordered + requested_;
  if (spent >= options_.max_trials) return 0;
  return static_cast<std::size_t>(std::min<std::uint64_t>(options_.concurrency - busy, options_.max_trials - spent));
}

NNI_INLINE TrialId Ledger::order(NewTrial suggestion, TimePoint now, Transition& out) {
  // An advisor may order trials that nobody requested.
  if (requested_ > 0) --requested_;
  const TrialId id{++counts_.ordered};
  out.records.emplace_back(std::in_place_type<TrialOrdered>, id, suggestion.parameter, suggestion.parameters, now);
  Trial& trial = trials_[id];
  trial.detail.trial = id;
  trial.detail.parameter = suggestion.parameter;
  trial.detail.parameters = std::move(suggestion.parameters);
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

NNI_INLINE void Ledger::event(const JobEvent& event, TimePoint, Transition& out) {
  if (const auto* begin = std::get_if<JobStarted>(&event)) {
    take_up(begin->run);
    started(*begin, out);
  } else if (const auto* end = std::get_if<JobEnded>(&event)) {
    // A deferral repeats what is known of a deferred run; any other end means that the platform had accepted it after all.
    if (end->end.kind != EndKind::deferred) take_up(end->run);
    ended(*end, false, out);
  } else if (const auto* queued = std::get_if<JobQueued>(&event)) {
    if (Trial* trial = find_live(queued->run)) trial->detail.message = queued->reason;
  }
}

NNI_INLINE void Ledger::lost_with_manager(const JobEnded& event, Transition& out) { ended(event, true, out); }

NNI_INLINE void Ledger::started(const JobStarted& event, Transition& out) {
  Trial* trial = find_live(event.run);
  if (!trial || trial->detail.status == TrialJobStatus::running) return;
  trial->detail.status = TrialJobStatus::running;
  trial->detail.start_time = event.at;
  trial->detail.message.clear();
  trial->detail.job = event.job;
  trial->detail.url = event.url;
  trial->detail.working_directory = event.working_directory;
  trial->detail.tags = event.tags;
  ++counts_.running;
  // Of an adopted run the start may be recorded already; one record per run is enough.
  if (!std::exchange(trial->start_recorded, true)) out.records.emplace_back(std::in_place_type<RunStarted>, event);
}

NNI_INLINE void Ledger::message(TrialMessage message, Transition& out) {
  // A message proves that its run, and so any run, can start.
  can_start_ = true;
  failed_starts_ = 0;
  take_up(message.metric.run);
  if (message.kind == TrialMessage::Kind::garbage) {
    // Acknowledged without a record: a second delivery would be as unreadable as the first.
    ++counts_.garbage;
    out.effects.emplace_back(Durability::none, Acknowledge{message.receipt});
    return;
  }
  metric(std::move(message.metric), message.receipt, out);
}

// Once any run has started, start failures stop counting until the next start of the experiment: a flaky platform is not
// a bad command.
NNI_INLINE void Ledger::judge_start(const JobEnd& end) {
  if (can_start_ || end.kind == EndKind::killed || end.kind == EndKind::lost) return;
  // The exit codes of shells for a program that cannot be executed (126) or is not found (127).
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

NNI_INLINE void Ledger::metric(Metric value, Receipt receipt, Transition& out) {
  Trial* trial = find_live(value.run);
  const bool is_final = value.kind == MetricKind::final;
  // A final value decides the outcome of the trial, so its sender may forget it only when it survives a loss of power.
  const Durability durability = is_final ? Durability::synced : Durability::written;
  if (!trial) {
    // Late values are recorded too if the trial exists; in any case the sender gets its acknowledgement, or it would retry
    // without end.
    ++counts_.late;
    const bool ordered = value.run.trial.number != 0 && value.run.trial.number <= counts_.ordered;
    if (!ordered) {
      out.effects.emplace_back(Durability::none, Acknowledge{receipt});
      return;
    }
    out.records.emplace_back(std::in_place_type<MetricReceived>, std::move(value));
    out.effects.emplace_back(durability, Acknowledge{receipt});
    return;
  }
  // A duplicate delivery changes nothing, but its sender still needs the acknowledgement.
  if (trial->seen.insert(value)) {
    out.records.emplace_back(std::in_place_type<MetricReceived>, value);
    const bool is_later = is_final && trial->detail.final_value;  // not the result of the run
    if (is_final && !is_later) trial->detail.final_value = value.value;
    if (!is_final) {
      const std::optional<double> number = value.scalar();
      if (number && std::isfinite(*number)) trial->last_number = number;
    }
    if (!is_later || options_.every_final) out.effects.emplace_back(Durability::none, ReportMetric{std::move(value)});
  }
  out.effects.emplace_back(durability, Acknowledge{receipt});
}

// The stop was requested by this manager, or by the previous one, as the service remembers.
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

NNI_INLINE void Ledger::ended(const JobEnded& event, bool with_manager, Transition& out) {
  Trial* trial = find_live(event.run);
  if (!trial) return;
  if (event.end.kind == EndKind::deferred) return put_back(*trial, event, out);
  if (trial->detail.status == TrialJobStatus::running) --counts_.running;
  --counts_.live;
  trial->submitted = false;
  const std::optional<StopReason> stopped = stop_reason(*trial, event.end);
  // A stopped run says nothing about whether runs can start.
  if (!stopped) judge_start(event.end);
  if (std::exchange(trial->holds_place, false))
    out.effects.emplace_back(Durability::none, Release{std::exchange(trial->placement, {})});
  out.effects.emplace_back(Durability::written, Forget{event.run});
  const bool stops_with_experiment = stopped == StopReason::experiment_end;
  if (stopped && !stops_with_experiment) return finish(*trial, status_of(*stopped), event.end, event.at, out);
  if (trial->detail.final_value && (stops_with_experiment || event.end.kind == EndKind::lost)) {
    JobEnd end = event.end;
    if (!end.succeeded())
      end.message = "its final value was recorded before its end" + (end.message.empty() ? "" : ": " + end.message);
    return finish(*trial, TrialJobStatus::succeeded, std::move(end), event.at, out);
  }
  if (stops_with_experiment) return try_again(*trial, event.end, event.at, Duration::zero(), out);
  if (!with_manager && retries_after(*trial, event.end)) {
    ++trial->retries;
    const Duration pause = pause_before(trial->retries, options_.backoff, options_.seed, event.run.trial);
    return try_again(*trial, event.end, event.at, pause, out);
  }
  // With retries, a lost run is repeated by the rule above only; without them by `max_losses`. A loss together with the
  // manager is never counted: otherwise a trial would fail because of crashes that it did not cause.
  const bool repeats = event.end.kind == EndKind::lost && (with_manager || options_.max_retries == 0);
  if (repeats && (with_manager || ++trial->losses <= options_.max_losses))
    return try_again(*trial, event.end, event.at, Duration::zero(), out);
  finish(*trial, event.end.succeeded() ? TrialJobStatus::succeeded : TrialJobStatus::failed, event.end, event.at, out);
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
  // The next attempt numbers its values from 0 again, and they are not duplicates of these.
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
  // A tuner with nothing to suggest may have more after this result.
  exhausted_ = false;
  const auto node = trials_.extract(trial.detail.trial);
  out.effects.emplace_back(Durability::none, Announce{std::move(node.mapped().detail)});
}

NNI_INLINE void Ledger::cancel(TrialId id, StopReason reason, TimePoint now, Transition& out) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || found->second.adopting) return;
  Trial& trial = found->second;
  if (trial.submitted) {
    if (trial.told_to_stop) return;
    trial.told_to_stop = reason;
    // The stop must not overtake the submission of the same run, so it waits for the same durability. Once the run has
    // started it waits for nothing: stopping must work while the disk is full.
    const bool begun = trial.detail.status == TrialJobStatus::running;
    out.effects.emplace_back(begun ? Durability::none : options_.submit_durability, Cancel{trial.run, reason});
    return;
  }
  // A trial without a live run stays open when the experiment stops; a resume starts it.
  if (reason == StopReason::experiment_end) return;
  const auto place = std::find(waiting_.begin(), waiting_.end(), id);
  if (place != waiting_.end()) {
    waiting_.erase(place);
    --counts_.waiting;
  }
  if (trial.pausing) --counts_.retrying;
  if (std::exchange(trial.deferred, false)) --deferred_;
  JobEnd end{EndKind::killed, 0, "stopped before it started"};
  end.why = reason;
  if (trial.last_end) {
    // The recorded end of its last run stays as it is, time included; only the trial ends now.
    end = *std::move(trial.last_end);
    end.message =
        "stopped while it waited for its next attempt" + (end.message.empty() ? "" : "; before: " + end.message);
    now = trial.ended_at;
  }
  finish(trial, status_of(reason), std::move(end), now, out);
}

NNI_INLINE void Ledger::cancel_all(TimePoint now, Transition& out) {
  std::vector<TrialId> live;
  for (const auto& [id, trial] : trials_)
    if (trial.submitted) live.push_back(id);
  std::sort(live.begin(), live.end());  // the same order in every execution
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
