#pragma once

/// @file
/// Bodies of `Keeper`: orders, processes and what they report. Included by keeper_inl.hpp.

#include <nni/keeper/process/keeper.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
#include <nni/process/group.hpp>

namespace nni::keeper {

namespace detail {

/// So many starts per turn of the loop: each blocks it until the program runs, and messages must not wait for all.
inline constexpr int starts_per_turn = 4;

/// A shutdown sends SIGTERM to a trial and to its keeper within this time.
inline constexpr std::chrono::milliseconds shutdown_spread{250};

/// Signals the group of a trial, and its first process also where that has gone to another group. It is not waited for
/// yet, so that its id is nobody else's.
NNI_INLINE void signal_trial(pid_t first, int signal) noexcept {
  process::signal_group(first, signal);
  if (::getpgid(first) != first) ::kill(first, signal);
}

}  // namespace detail

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE std::string Keeper::start(StartOrder order) {
  const auto [at, fresh] = runs_.try_emplace(order.run);
  const std::size_t record = std::hash<std::string>()(order.record);
  if (!fresh && at->second.record == record) return {};
  if (!fresh)
    return "run " + to_string(order.run) + " of experiment \"" + options_.experiment +
           "\" was ordered, and lives with other parameters in process " + std::to_string(at->second.process.pid) +
           "; stop that one first";
  at->second.record = record;
  // The template that its number names now: by the turn of the order it may name another one.
  const auto job = jobs_.find(order.job);
  std::shared_ptr<PreparedJob> prepared = job == jobs_.end() ? nullptr : job->second;
  orders_.push_back(Waiting{std::move(order), std::move(prepared)});
  pump_soon();
  return {};
}

NNI_INLINE void Keeper::send(RunId run, std::string record) {
  const auto found = runs_.find(run);
  if (!channel_ || found == runs_.end()) return;
  ++found->second.phases;
  if (found->second.process.pid == 0)
    found->second.early.push_back(std::move(record));
  else
    channel_->send(run, std::move(record));
}

NNI_INLINE void Keeper::pump_soon() {
  if (pumping_ || orders_.empty()) return;
  pumping_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->pumping_ = false;
    self->pump();
  });
}

NNI_INLINE void Keeper::pump() {
  for (int count = 0; count < detail::starts_per_turn && !orders_.empty(); ++count) {
    const Waiting next = std::move(orders_.front());
    orders_.pop_front();
    launch(next);
  }
  pump_soon();
}

NNI_INLINE void Keeper::launch(const Waiting& waiting) {
  const StartOrder& order = waiting.order;
  if (closed_ || !waiting.job) return fail_start(order.run, "its job template is not known to the keeper");
  PreparedJob& prepared = *waiting.job;
  if (prepared.job().arguments.empty()) return fail_start(order.run, "the trial command is empty");

  const std::string name = to_string(order.run);
  // For nobody else: the trial's library writes the address of its channel, with the token, into a log of its own there.
  const bool fresh = ::mkdirat(trials_, name.c_str(), 0700) == 0;
  if (!fresh) {
    // One that is there may have been made by an earlier start of this run, or by somebody else.
    const std::string directory = surroundings_.trials + "/" + name;
    const int error = errno;
    const auto refused = error == EEXIST ? files::check_directory(directory, false) : files::error_of(-error);
    const std::string reason = "the output directory " + directory + " cannot be made: " + refused.message();
    // The keeper made the directory above itself, so that it is not writable for it will pass.
    const bool passes = is_transient_errno(refused.value()) || error == EACCES || error == EPERM;
    if (refused) return passes ? defer_start(order.run, name, false, reason) : fail_start(order.run, reason);
  }

  std::string channel;
  if (prepared.wants_channel(order)) {
    channel = channel_->admit(order.run, order.record);
    if (prepared.has_phases(order)) channel_->expect_phases(order.run);
    for (std::string& record : std::exchange(runs_.at(order.run).early, {}))
      channel_->send(order.run, std::move(record));
  }
  const process::LaunchSpec* spec = &prepared.spec(order, name, channel);
  process::Launched launched = launcher_.launch(*spec);
  if (launched.error == ENOENT && prepared.find_program_again()) {
    spec = &prepared.spec(order, name, channel);
    launched = launcher_.launch(*spec);
  }
  if (!launched.succeeded()) {
    const std::string reason = process::explain(*spec, launched.error);
    return is_transient_errno(launched.error)
               ? defer_start(order.run, name, fresh, reason)
               : fail_start(order.run, reason);
  }
  NNI_CRASH_POINT("keeper: spawned");

  Run& run = runs_.at(order.run);
  run.process = launched.process;
  run.started = wall_now();
  pids_[run.process.pid] = order.run;
  Record started(Record::Kind::started, order.run, run.started);
  started.process = run.process;
  run.started_position = append(std::move(started), true);
  NNI_CRASH_POINT_WHEN_KEPT("keeper: started recorded");
  reaper_->watch(run.process.pid);
}

NNI_INLINE void Keeper::fail_start(RunId run, std::string reason) {
  record_end(run, runs_.at(run), JobEnd(EndKind::not_started, 0, std::move(reason)));
}

// As if the order had never come: no record, and no directory, by which a run that has begun is recognized.
NNI_INLINE void Keeper::defer_start(RunId run, const std::string& name, bool remove, const std::string& reason) {
  log_.warning("keeper", "run " + to_string(run) + " cannot be started now: " + reason);
  if (remove) {
    for (const char* const file : {"/trial.stdout", "/trial.stderr"}) ::unlinkat(trials_, (name + file).c_str(), 0);
    ::unlinkat(trials_, name.c_str(), AT_REMOVEDIR);
  }
  if (channel_) channel_->dismiss(run);
  runs_.erase(run);
  if (deferral_listener_) deferral_listener_(run, reason);
  check_idle();
}

NNI_INLINE void Keeper::kill(RunId run, StopReason reason) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || found->second.killed || found->second.settling) return;
  Run& state = found->second;
  if (state.process.pid == 0) {
    std::erase_if(orders_, [run](const Waiting& waiting) { return waiting.order.run == run; });
    JobEnd end(EndKind::killed, 0, "stopped before it was started");
    end.why = reason;
    return record_end(run, state, std::move(end));
  }
  // A process that has ended already, unnoticed so far, ended by itself.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(state.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0)
    return;
  state.killed = reason;
  state.below = process::descendants(state.process.pid);
  detail::signal_trial(state.process.pid, SIGINT);
  overdue_.emplace_back(std::chrono::steady_clock::now() + options_.grace, run);
  arm_kill_timer();
}

NNI_INLINE void Keeper::kill_all(StopReason reason) {
  std::vector<RunId> all;
  all.reserve(runs_.size());
  for (const auto& entry : runs_) all.push_back(entry.first);
  for (const RunId run : all) kill(run, reason);
}

NNI_INLINE void Keeper::arm_kill_timer() {
  if (kill_timer_armed_ || overdue_.empty()) return;
  kill_timer_armed_ = true;
  kill_timer_.expires_at(overdue_.front().first);
  kill_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
    self->kill_timer_armed_ = false;
    if (failure || self->closed_) return;
    self->kill_overdue();
    self->arm_kill_timer();
  });
}

NNI_INLINE void Keeper::kill_overdue() {
  const SteadyPoint now = std::chrono::steady_clock::now();
  while (!overdue_.empty() && overdue_.front().first <= now) {
    const auto found = runs_.find(overdue_.front().second);
    overdue_.pop_front();
    if (found == runs_.end() || found->second.settling) continue;  // it ended in time
    Run& run = found->second;
    run.how_killed = "did not end within " + to_string(options_.grace) + " of SIGINT and was killed";
    for (const process::Identity& process : process::descendants(run.process.pid)) run.below.push_back(process);
    detail::signal_trial(run.process.pid, SIGKILL);
  }
}

NNI_INLINE void Keeper::acknowledge(const std::vector<AcknowledgedRange>& ranges) {
  for (const AcknowledgedRange& range : ranges) {
    spool_.acknowledge(range.first, range.count);
    if (finals_.empty() && starts_of_ends_.empty()) continue;
    const std::uint64_t end = std::min(range.first + range.count, spool_.next_position());
    for (std::uint64_t position = range.first; position < end; ++position) {
      if (const auto ended = starts_of_ends_.find(position); ended != starts_of_ends_.end()) {
        spool_.release(ended->second);
        starts_of_ends_.erase(ended);
      } else if (const auto final = finals_.find(position); final != finals_.end()) {
        NNI_CRASH_POINT("keeper: before acknowledgement");
        if (--final->second->open == 0) final->second->message.acknowledge();
        finals_.erase(final);
      }
    }
  }
}

// ---- what happens -----------------------------------------------------------------------------------------------

NNI_INLINE void Keeper::ended(const process::Exit& exit) {
  const auto known = pids_.find(exit.pid);
  if (known == pids_.end()) return;  // an orphan that was adopted
  const RunId run = known->second;
  NNI_CRASH_POINT("keeper: exit seen");
  pids_.erase(known);
  Run& state = runs_.at(run);
  process::signal_group(exit.pid, SIGKILL);

  JobEnd end(EndKind::exited, exit.code);
  end.why = state.killed;
  if (state.killed) {
    process::kill_now(state.below);
    process::kill_now(strays_of(run));
  }
  // A trial that was asked to stop and exits by itself is reported so: its manager decides what that means.
  if (state.killed && exit.how != process::Exit::How::exited) {
    end.kind = EndKind::killed;
    end.message = std::move(state.how_killed);
  } else if (exit.how == process::Exit::How::signalled) {
    end.kind = EndKind::signalled;
    end.message = "ended by signal " + std::to_string(exit.code) + " (" + ::strsignal(exit.code) + ")";
  } else if (exit.how == process::Exit::How::unknown) {
    end.kind = EndKind::lost;
    end.message = "another part of the program waited for the trial's process and took its exit code";
  }
  const bool by_sigterm =
      (end.kind == EndKind::signalled && exit.code == SIGTERM) ||
      (end.kind == EndKind::exited && exit.code == 128 + SIGTERM);
  if (!state.has_reported && !by_sigterm) return record_end(run, state, std::move(end));
  // Its last message may still lie in a socket.
  state.settling = true;
  boost::asio::co_spawn(executor_, settle_and_end(run, std::move(end), by_sigterm), boost::asio::detached);
}

/// Finds the orphans that a trial left in other groups, by the variable that it was started with.
NNI_INLINE std::vector<process::Identity> Keeper::strays_of(RunId run) const {
  constexpr std::string_view variable = "NNI_OUTPUT_DIR";
  const std::string directory = surroundings_.trials + "/" + to_string(run);
  std::vector<process::Identity> found;
  if (options_.scope == process::Reaper::Scope::everything) {  // orphans are our children
    found = process::own_children([this](pid_t child) { return !pids_.contains(child); });
    std::erase_if(found, [&](const process::Identity& child) {
      return process::environment_of(child.pid, variable) != directory;
    });
  } else {
    for (auto& [process, value] : process::processes_with_variable(variable, directory))
      if (value == directory) found.push_back(process);
  }
  return found;
}

NNI_INLINE awaitable<void> Keeper::settle_and_end(RunId run, JobEnd end, bool by_sigterm) {
  const std::shared_ptr<Keeper> keep = shared_from_this();
  if (by_sigterm && !stopped_by_signal_) {
    boost::asio::steady_timer own_signal(executor_);
    own_signal.expires_after(detail::shutdown_spread);
    co_await own_signal.async_wait(boost::asio::use_awaitable);
  }
  if (by_sigterm && stopped_by_signal_) {
    end.kind = EndKind::killed;
    end.why = StopReason::experiment_end;
    end.message = "ended by SIGTERM together with its keeper";
  }
  auto settling = channel_->settle(run);
  co_await std::move(settling);
  if (!closed_) record_end(run, runs_.at(run), std::move(end));
}

NNI_INLINE void Keeper::record_end(RunId run, Run& state, JobEnd end) {
  Record record(Record::Kind::ended, run, wall_now());
  record.process = state.process;
  record.started = state.started;
  record.end = std::move(end);
  const std::uint64_t started = state.started_position;
  const std::uint64_t position = append(std::move(record));
  NNI_CRASH_POINT_WHEN_KEPT("keeper: ended recorded");
  if (started != 0) starts_of_ends_[position] = started;
  if (channel_) channel_->dismiss(run);
  runs_.erase(run);
}

NNI_INLINE void Keeper::received(channel::Message message) {
  const auto found = runs_.find(message.run);
  if (found == runs_.end()) return;
  NNI_CRASH_POINT("keeper: message received");
  found->second.has_reported = true;
  const std::uint64_t first = spool_.next_position();
  const TimePoint now = wall_now();
  for (Metric& metric : message.metrics) {
    Record record(Record::Kind::metric, message.run, metric.at);
    record.metric = metric.kind;
    record.sequence = metric.sequence;
    record.text = std::move(metric.value);
    append(std::move(record));
  }
  for (std::string& text : message.garbage) {
    Record record(Record::Kind::garbage, message.run, now);
    record.text = std::move(text);
    append(std::move(record));
  }
  if (!message.has_final()) {
    after_write_.push_back(std::move(message));
    return flush_soon();
  }
  // The trial may end once it knows that its result is safe, so it gets its answer when the manager has it on its disk.
  const auto final = std::make_shared<Final>();
  final->open = static_cast<std::size_t>(spool_.next_position() - first);
  final->message = std::move(message);
  for (std::uint64_t position = first; position < spool_.next_position(); ++position) finals_[position] = final;
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
