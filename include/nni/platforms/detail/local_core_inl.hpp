#pragma once

#include <nni/platforms/detail/local_core.hpp>

#if NNI_WITH_PROCESS

#include <chrono>
#include <csignal>
#include <span>
#include <utility>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/keeper/process/left_over.hpp>
#include <nni/process/group.hpp>
#include <nni/process/identity.hpp>

namespace nni::platforms::detail {

inline constexpr Duration clock_tolerance = std::chrono::seconds(1);

/// Further parameters of one run that are kept until a keeper is known to have them; a trial asks for one at a time.
inline constexpr std::size_t most_phases_on_their_way = 1'000;

NNI_INLINE std::size_t size_of(const TrialMessage& message) {
  return message.metric.value.size() + message.text.size();
}

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE void LocalCore::on_record(keeper::Record record) {
  keeper_answered();
  if (phase_ == Phase::live) return process(std::move(record));
  if (closing_) return;  // it stays in the spool
  held_bytes_ += record.text.size();
  held_.push_back(std::move(record));
  const bool full = held_.size() > most_messages_ || held_bytes_ > most_message_bytes_;
  if (phase_ != Phase::greeting || !full) return;
  // The rest of what is old waits until this was taken.
  holds_back_ = true;
  client_->hold(true);
  phase_ = Phase::held;
  connection_changed_.notify();
}

NNI_INLINE void LocalCore::on_caught_up() {
  keeper_answered();
  caught_up_ = true;
  if (phase_ == Phase::greeting) {
    phase_ = Phase::held;
    connection_changed_.notify();
  } else if (phase_ == Phase::live) {
    end_presumed();
    connection_changed_.notify();
  }
}

NNI_INLINE void LocalCore::go_live() {
  wants_records_ = true;
  if (phase_ != Phase::held || closing_) return;
  phase_ = Phase::live;
  held_bytes_ = 0;
  for (keeper::Record& record : std::exchange(held_, {})) process(std::move(record));
  if (caught_up_) end_presumed();
  hold_back();
}

NNI_INLINE void LocalCore::process(keeper::Record record) {
  if (record.kind == keeper::Record::Kind::ended && foreign_.erase(record.run) != 0) connection_changed_.notify();
  if (unacknowledged_.contains(record.position)) return;  // delivered before the connection was made again
  // Told before as well, and the answer may have been lost with that connection; or nobody waits for it any more.
  if (record.position < seen_end_ || !runs_.contains(record.run)) return client_->acknowledge(record.position);
  seen_end_ = record.position + 1;
  using Kind = keeper::Record::Kind;
  // What another run of this name reports is none of its own.
  if (runs_.at(record.run)->not_taken) return client_->acknowledge(record.position);
  switch (record.kind) {
    case Kind::started: return started(record);
    case Kind::ended: return ended(std::move(record));
    case Kind::metric: {
      Metric metric(record.run, record.metric, record.sequence, std::move(record.text), record.at);
      return push(TrialMessage(std::move(metric), Receipt{record.position}));
    }
    case Kind::garbage:
      return push(TrialMessage::not_understood(record.run, std::move(record.text), Receipt{record.position}));
  }
}

NNI_INLINE void LocalCore::push(TrialMessage message) {
  if (closing_) return;  // it stays in the spool
  unacknowledged_.insert(message.receipt.value);
  ++undelivered_[message.metric.run];
  message_bytes_ += size_of(message);
  messages_.push_back(std::move(message));
  messages_changed_.notify();
  hold_back();
}

// Lets the keeper wait when too much is here, and continue when half of that was taken: its next records come in pieces
// that are worth a system call.
NNI_INLINE void LocalCore::hold_back() {
  const std::size_t share = holds_back_ ? 2 : 1;
  const bool full = messages_.size() > most_messages_ / share || message_bytes_ > most_message_bytes_ / share;
  const bool wanted = full && !closing_;
  if (wanted == holds_back_ || !client_) return;
  holds_back_ = wanted;
  client_->hold(wanted);
}

// As the keeper names it.
NNI_INLINE std::string LocalCore::directory_of(RunId run) const {
  std::string directory = welcome_.directory;
  directory += '/';
  directory += to_string(run);
  return directory;
}

// By what a trial runs, which decides whether it outlives this process.
NNI_INLINE std::vector<std::string> LocalCore::tags() const {
  return std::vector<std::string>(1, with_keeper_ ? "keeper" : "direct");
}

NNI_INLINE void LocalCore::started(const keeper::Record& record) {
  client_->acknowledge(record.position);
  Tracked& tracked = *runs_.at(record.run);
  if (tracked.adopted || tracked.decided) return;
  tracked.job = process::to_job_id(record.process);
  tracked.decided = true;
  tracked.changed.notify();
  JobStarted event(record.run, tracked.job, record.at);
  event.working_directory = directory_of(record.run);
  event.url = "file://" + event.working_directory;
  event.tags = tags();
  push(std::move(event));
}

NNI_INLINE void LocalCore::ended(keeper::Record record) {
  const TrackedPtr tracked = runs_.at(record.run);
  if (record.position != 0) {
    end_positions_[record.run] = record.position;
    unacknowledged_.insert(record.position);
  }
  if (std::exchange(tracked->ended, true)) return;
  tracked->decided = true;
  tracked->changed.notify();
  push(JobEnded(record.run, std::move(record.end), record.at));
}

NNI_INLINE void LocalCore::not_taken(RunId run, std::string reason) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  found->second->not_taken = true;
  keeper::Record record(keeper::Record::Kind::ended, run, wall_now());
  record.end = JobEnd(EndKind::not_started, 0, std::move(reason));
  ended(std::move(record));
}

NNI_INLINE void LocalCore::push(JobEvent event) {
  events_.push_back(std::move(event));
  events_changed_.notify();
}

NNI_INLINE awaitable<JobEvent> LocalCore::next_event() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (events_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no events after clean-up");
    auto change = events_changed_.wait();
    co_await std::move(change);
  }
  JobEvent event = std::move(events_.front());
  events_.pop_front();
  if (const auto* end = std::get_if<JobEnded>(&event)) runs_.erase(end->run);
  co_return event;
}

NNI_INLINE awaitable<TrialMessage> LocalCore::next_message() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (messages_.empty()) {
    if (closing_) throw Error(Errc::closed, "local: there are no messages after clean-up");
    auto change = messages_changed_.wait();
    co_await std::move(change);
  }
  TrialMessage message = std::move(messages_.front());
  messages_.pop_front();
  message_bytes_ -= size_of(message);
  hold_back();
  if (const auto count = undelivered_.find(message.metric.run); count != undelivered_.end() && --count->second == 0) {
    undelivered_.erase(count);
    delivered_.notify();
  }
  co_return message;
}

NNI_INLINE awaitable<void> LocalCore::settle(RunId run) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (undelivered_.contains(run) && !closing_) {
    auto change = delivered_.wait();
    co_await std::move(change);
  }
}

NNI_INLINE void LocalCore::acknowledge(Receipt receipt) {
  // Without a connection it is sent when the next one delivers the record again.
  if (unacknowledged_.erase(receipt.value) != 0 && client_) client_->acknowledge(receipt.value);
}

NNI_INLINE void LocalCore::recorded(RunId run) {
  const auto found = end_positions_.find(run);
  if (found == end_positions_.end()) return;
  acknowledge(Receipt{found->second});
  end_positions_.erase(found);
}

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE keeper::StartOrder LocalCore::order_of(const TrialJobForm& form) {
  keeper::JobTemplate job;
  job.arguments = form.command.arguments();
  std::error_code failure;
  const auto directory =
      std::filesystem::absolute(form.working_directory.empty() ? "." : form.working_directory, failure);
  if (failure)
    throw Error(Errc::not_found,
                "the directory that this process works in was deleted, and the trial should run there; start the "
                "experiment in one that exists, or give the trial another one");
  job.directory = directory.lexically_normal().string();
  job.discard_output = options_.output == Output::discard;
  if (form.request.gpus) job.environment.emplace_back("CUDA_VISIBLE_DEVICES=");

  keeper::StartOrder order;
  order.run = form.run;
  order.job = client_->job(job);
  order.record = channel::parameter_record(form.parameter, form.parameters);
  order.environment.reserve(form.environment.size());
  for (const auto& [name, value] : form.environment) order.environment.push_back(name + "=" + value);
  return order;
}

/// Resumes when a run can be ordered. Nothing of an earlier run of its name may follow: neither old records, nor a
/// process that still lives.
NNI_INLINE awaitable<void> LocalCore::ready_for(RunId run) {
  while (phase_ != Phase::live || !caught_up_ || foreign_.contains(run)) {
    if (closing_) throw Error(Errc::connection_lost, trouble_.empty() ? "local: it has been cleaned up" : trouble_);
    if (client_ && foreign_.contains(run)) client_->kill(run, StopReason::experiment_end);
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
}

NNI_INLINE awaitable<JobId> LocalCore::submit(TrialJobForm form) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  if (form.request.gpus.value_or(0) > 0)
    throw Error(
        Errc::resource_impossible,
        "the trial asks for " + std::to_string(*form.request.gpus) +
            " GPUs, and local trials cannot be given any yet; leave trial_gpu_number out to let trials see all "
            "of them, or set it to 0 to hide all");
  if (form.command.empty())
    throw config_error("trial_command", "is empty; a local trial is a command, for instance \"python3 train.py\"");
  go_live();  // nothing to adopt
  if (!runs_.contains(form.run)) {
    auto ready = ready_for(form.run);
    co_await std::move(ready);
  }
  if (!runs_.contains(form.run)) {
    const keeper::StartOrder order = order_of(form);
    client_->start(order);  // one that is too large stays unknown
    const auto fresh = std::make_shared<Tracked>();
    fresh->parameter = form.parameter;
    runs_[form.run] = fresh;
  }
  const TrackedPtr tracked = runs_[form.run];
  while (!tracked->decided) {
    auto change = tracked->changed.wait();
    co_await std::move(change);
  }
  co_return tracked->job;
}

NNI_INLINE void LocalCore::cancel(RunId run, StopReason reason) {
  const auto found = runs_.find(run);
  if (found == runs_.end())
    throw Error(Errc::no_such_job, "local: run " + to_string(run) + " is not known; it may have ended");
  if (!found->second->cancelled) found->second->cancelled = reason;
  if (client_) client_->kill(run, reason);
  watch_keeper();
}

NNI_INLINE awaitable<void> LocalCore::send(RunId run, Parameters parameters) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (runs_.contains(run) && phase_ != Phase::live && !closing_) {
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
  const auto found = runs_.find(run);
  if (found == runs_.end() || found->second->ended)
    throw Error(Errc::no_such_job, "local: run " + to_string(run) + " is not known; it may have ended");
  Tracked& tracked = *found->second;
  std::string record = channel::parameter_record(tracked.parameter, parameters, tracked.phases + 1);
  if (client_) client_->send(run, record);
  ++tracked.phases;
  tracked.sent.push_back(std::move(record));
  if (tracked.sent.size() > most_phases_on_their_way) tracked.sent.pop_front();
}

// ---- adoption ---------------------------------------------------------------------------------------------------

NNI_INLINE awaitable<std::vector<JobReport>> LocalCore::adopt(std::vector<Intent> intents) {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  auto connection = connect_again();  // the keeper may have died since the start
  co_await std::move(connection);
  std::unordered_map<RunId, const keeper::LiveRun*> live;
  for (const keeper::LiveRun& run : welcome_.live) live[run.run] = &run;
  std::vector<JobReport> reports;
  reports.reserve(intents.size());
  for (const Intent& intent : intents) {
    reports.push_back(report_of(intent, live));
    live.erase(intent.run);
  }
  // Trials that no record of the experiment knows: nobody would ever take their results. A run of the same name waits
  // for their end.
  std::erase_if(foreign_, [this](RunId run) { return runs_.contains(run); });
  for (const RunId run : foreign_)
    if (client_) client_->kill(run, StopReason::experiment_end);
  go_live();
  co_return reports;
}

NNI_INLINE JobReport
LocalCore::report_of(const Intent& intent, const std::unordered_map<RunId, const keeper::LiveRun*>& live) {
  JobReport report(intent.run, JobReport::State::running);
  const auto track = [this, &intent, &report] {
    const auto tracked = std::make_shared<Tracked>();
    tracked->parameter = ParameterId{intent.run.trial.sequence()};
    tracked->job = report.job;
    tracked->decided = true;
    tracked->adopted = true;
    return runs_[intent.run] = tracked;
  };
  report.job = intent.job;
  const auto locate = [this, &report] {
    report.working_directory = directory_of(report.run);
    report.url = "file://" + report.working_directory;
    report.tags = tags();
  };
  const auto found = live.find(intent.run);
  if (found != live.end() && found->second->process.pid == 0) {  // its turn has not come: its start is an event
    const TrackedPtr tracked = track();
    tracked->phases = found->second->phases;
    tracked->decided = false;
    tracked->adopted = false;
    return report;
  }
  if (found != live.end()) {
    report.job = process::to_job_id(found->second->process);
    report.started = found->second->started;
    // As the wall clock counts now, when it was set since: how long the run has lasted must not change by that.
    const TimePoint begun = wall_now() - process::age_of(found->second->process);
    if (begun - report.started > clock_tolerance || report.started - begun > clock_tolerance) report.started = begun;
    locate();
    track()->phases = found->second->phases;
    return report;
  }
  const keeper::Record* end = nullptr;
  bool messages = false;
  for (const keeper::Record& record : held_) {
    if (record.run != intent.run) continue;
    if (record.kind == keeper::Record::Kind::ended) end = &record;
    messages = messages || record.kind == keeper::Record::Kind::metric || record.kind == keeper::Record::Kind::garbage;
  }
  if (!end && !caught_up_) {
    track();
    JobEnd presumed = end_of_unknown(intent);
    presumed.kind = EndKind::lost;  // nothing can be taken back that was reported as running: it is run once more
    runs_.at(intent.run)->presumed = std::move(presumed);
    return report;
  }
  if (!end) {
    report.end = end_of_unknown(intent);
    report.state = report.end.kind == EndKind::not_started ? JobReport::State::never_started : JobReport::State::ended;
    return report;
  }
  report.started = end->started;
  locate();
  if (end->process.pid != 0) report.job = process::to_job_id(end->process);
  if (messages) {
    track();  // what it reported comes first, then its end, as events
    return report;
  }
  report.state = JobReport::State::ended;
  report.ended = end->at;
  report.end = end->end;
  end_positions_[intent.run] = end->position;
  unacknowledged_.insert(end->position);
  const std::uint64_t position = end->position;
  std::erase_if(held_, [position](const keeper::Record& record) { return record.position == position; });
  return report;
}

// The keeper knows nothing of it: either the order never arrived, or what the keeper knew is gone.
NNI_INLINE JobEnd LocalCore::end_of_unknown(const Intent& intent) const {
  if (const auto job = process::parse_job_id(intent.job);
      job && job->boot == process::boot_id() && process::is_alive(job->process) &&
      keeper::belongs_to_run(job->process.pid, trials(), intent.run)) {
    process::signal_group(job->process.pid, SIGKILL);
    process::kill_now(std::span<const process::Identity>(&job->process, 1));
  }
  std::error_code ignored;
  const bool begun =
      intent.started || !intent.job.empty() || std::filesystem::exists(trials() / to_string(intent.run), ignored);
  if (begun) return JobEnd(EndKind::lost, 0, "the keeper that ran it is gone together with its records");
  return JobEnd(EndKind::not_started, 0, "its order did not reach the keeper");
}

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS
