#pragma once

#include <nni/keeper/keeper.hpp>
#include <nni/trial/channel_server.hpp>

#if NNI_WITH_PROCESS

#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/core/error.hpp>
#include <nni/keeper/job.hpp>
#include <nni/keeper/lock.hpp>
#include <nni/keeper/spool.hpp>
#include <nni/process/group.hpp>
#include <nni/process/launcher.hpp>

namespace nni::keeper {

namespace detail {

NNI_INLINE TimePoint wall_now() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// So many starts per turn of the loop: each blocks it until the program runs, and messages must not wait for all.
inline constexpr int starts_per_turn = 4;

/// Frames are collected no further than this for one turn; beyond it the listener reads the spool.
inline constexpr std::chrono::seconds write_retry{1};

/// Room for this many bytes of records is kept between turns.
inline constexpr std::size_t worth_freeing = 1024 * 1024;

}  // namespace detail

class Keeper::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
      : executor_(std::move(executor)), options_(std::move(options)), log_(std::move(log)), kill_timer_(executor_), write_timer_(executor_) {
    surroundings_.experiment = options_.experiment;
    surroundings_.platform = options_.platform;
    surroundings_.trials = trials_directory(options_.directory, options_.environment).string();
  }

  ~Core() {
    if (trials_ >= 0) ::close(trials_);
  }

  // ---- begin and end --------------------------------------------------------------------------------------------

  void recover();

  void open() {
    reaper_.emplace(executor_, options_.scope, [this](const process::Exit& exit) { ended(exit); });
    trial::ChannelServerOptions channel;
    channel.environment = options_.environment;
    channel_.emplace(executor_, channel, [this](trial::ChannelMessage message) { received(std::move(message)); }, log_);
  }

  awaitable<void> open_channel() {
    auto opening = channel_->open();
    co_await std::move(opening);
    flush_soon();   // what recover found
  }

  void stop() {
    closed_ = true;
    reaper_.reset();
    boost::system::error_code ignored;
    kill_timer_.cancel();
    write_timer_.cancel();
    listener_ = nullptr;
    trouble_listener_ = nullptr;
    idle_listener_ = nullptr;
  }

  awaitable<void> close();

  // ---- orders ---------------------------------------------------------------------------------------------------

  void inherit(const std::vector<std::string>& environment) {
    inherited_ = environment;
    jobs_.clear();   // templates are sent again by whoever sends an environment
  }

  void define(JobTemplate job) {
    const std::uint64_t id = job.id;
    jobs_[id] = std::make_unique<PreparedJob>(std::move(job), inherited_, surroundings_);
  }

  void start(StartOrder order) {
    const auto [at, fresh] = runs_.try_emplace(order.run);
    if (!fresh) return;
    orders_.push_back(std::move(order));
    pump_soon();
  }

  void kill(RunId run, StopReason why);
  void kill_all(StopReason why);

  void send(RunId run, std::string record) {
    if (channel_ && runs_.contains(run)) channel_->send(run, std::move(record));
  }

  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  // ---- answers --------------------------------------------------------------------------------------------------

  Welcome welcome() const;
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  std::size_t live() const noexcept { return runs_.size(); }

  Listener listener_;
  TroubleListener trouble_listener_;
  std::function<void()> idle_listener_;
  Spool spool_;
  std::optional<trial::ChannelServer> channel_;

  void check_idle() {
    if (idle_listener_ && runs_.empty() && spool_.written_end() == spool_.next_position()) idle_listener_();
  }

 private:
  struct Run {
    process::Identity process;          // pid 0: not started yet
    TimePoint started{};
    std::uint64_t started_position = 0;
    std::optional<StopReason> killed;
    std::string how_killed;
    std::vector<process::Identity> below;   // descendants when the kill began: they may lose their parent by it
    bool has_reported = false;
    bool settling = false;
  };

  /// A message that is acknowledged to its trial when the last of its records is.
  struct Final {
    trial::ChannelMessage message;
    std::size_t open = 0;
  };

  void pump_soon();
  void pump();
  void launch(const StartOrder& order);
  void fail_start(RunId run, std::string reason);
  void ended(const process::Exit& exit);
  awaitable<void> settle_and_end(RunId run, JobEnd end);
  void record_end(RunId run, Run& state, JobEnd end);
  void received(trial::ChannelMessage message);
  std::uint64_t append(const Record& record, bool keep = false);
  void flush_soon();
  void flush();
  void arm_kill_timer();
  void kill_overdue();

  boost::asio::any_io_executor executor_;
  KeeperOptions options_;
  Log log_;
  TrialSurroundings surroundings_;
  Lock lock_;
  int trials_ = -1;
  bool restarted_ = false;
  bool closed_ = false;

  process::Launcher launcher_;
  std::optional<process::Reaper> reaper_;
  std::vector<std::string> inherited_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PreparedJob>> jobs_;
  std::unordered_map<RunId, Run> runs_;
  std::unordered_map<pid_t, RunId> pids_;
  std::deque<StartOrder> orders_;
  bool pumping_ = false;

  std::deque<std::pair<SteadyPoint, RunId>> overdue_;   // in the order of their times
  boost::asio::steady_timer kill_timer_;
  bool kill_timer_armed_ = false;

  std::string frames_;                    // records that are not written yet, as frames
  std::uint64_t frames_from_ = 0;         // position of the first one
  bool flush_posted_ = false;
  bool in_trouble_ = false;
  boost::asio::steady_timer write_timer_;
  std::vector<trial::ChannelMessage> after_write_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Final>> finals_;      // by position
  std::unordered_map<std::uint64_t, std::uint64_t> starts_of_ends_;       // position of an end: position of its start
};

// ---- begin and end ----------------------------------------------------------------------------------------------

NNI_INLINE void Keeper::Core::recover() {
  namespace fs = std::filesystem;
  const fs::path own = keeper_directory(options_.directory);
  std::error_code failure;
  fs::create_directories(own, failure);
  if (!failure) fs::permissions(own, fs::perms::owner_all, failure);
  if (!failure) fs::create_directories(surroundings_.trials, failure);
  if (failure)
    throw Error(boost::system::error_code(failure.value(), boost::system::system_category()),
                "the directories of the experiment cannot be made below " + options_.directory.string());
  trials_ = ::open(surroundings_.trials.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (trials_ < 0)
    throw Error(boost::system::error_code(errno, boost::system::system_category()), "the directory " + surroundings_.trials + " cannot be opened");

  const Lock::Before before = lock_.acquire(own / "lock");
  std::unordered_map<RunId, Record> open_runs;
  spool_.open(own / "spool", [&](std::uint64_t position, std::string_view payload) {
    const Result<Record> record = decode_record(payload, position);
    if (!record) throw Error(Errc::store_corrupt, "the spool in " + own.string() + " holds a record that this version does not know");
    if (record->kind == Record::Kind::started) open_runs[record->run] = *record;
    if (record->kind == Record::Kind::ended) open_runs.erase(record->run);
  });
  frames_from_ = spool_.next_position();
  if (before == Lock::Before::orderly && open_runs.empty()) return;

  // Trials without their keeper: nobody would learn how they end, so they are ended here and run again.
  restarted_ = true;
  std::vector<process::Identity> left_over;
  if (before != Lock::Before::rebooted) {
    for (const auto& [run, record] : open_runs)
      if (process::is_alive(record.process)) left_over.push_back(record.process);
    // Also whoever left its group or lost its parent, and a trial that was started but not yet written down.
    for (const auto& [process, directory] : process::processes_with_variable("NNI_OUTPUT_DIR", surroundings_.trials + "/")) {
      left_over.push_back(process);
      const auto run = parse_run_id(fs::path(directory).filename().string());
      if (run && !open_runs.contains(*run)) open_runs[*run] = Record(Record::Kind::started, *run, TimePoint{});
    }
    process::kill_and_wait(left_over, std::chrono::seconds(5));
  }
  const char* const reason = before == Lock::Before::rebooted
                                 ? "the machine was restarted while the trial ran"
                                 : "the keeper of the trial was killed, and the trial was ended because its result could not be known any more";
  for (const auto& [run, record] : open_runs) {
    Record lost(Record::Kind::ended, run, detail::wall_now());
    lost.process = record.process;
    lost.started = record.at;
    lost.end = JobEnd(EndKind::lost, 0, reason);
    append(lost);
  }
  if (const int error = spool_.flush())
    throw Error(boost::system::error_code(error, boost::system::system_category()), "the spool in " + own.string() + " cannot be written");
  frames_.clear();
  frames_from_ = spool_.next_position();
  log_.warning("keeper", "the keeper before this one ended unexpectedly: " + std::to_string(open_runs.size()) + " trials are lost, " +
                             std::to_string(left_over.size()) + " processes were killed");
}

NNI_INLINE awaitable<void> Keeper::Core::close() {
  const std::shared_ptr<Core> keep = shared_from_this();
  if (channel_) {
    auto closing = channel_->close();
    co_await std::move(closing);
  }
  stop();
  if (const int error = spool_.sync())
    log_.error("keeper", "the spool could not be put on the disk: " + std::string(std::strerror(error)));
  spool_.clear_if_unneeded();
  if (runs_.empty()) lock_.release();
}

// ---- orders -----------------------------------------------------------------------------------------------------

NNI_INLINE void Keeper::Core::pump_soon() {
  if (pumping_ || orders_.empty()) return;
  pumping_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->pumping_ = false;
    self->pump();
  });
}

NNI_INLINE void Keeper::Core::pump() {
  for (int count = 0; count < detail::starts_per_turn && !orders_.empty(); ++count) {
    const StartOrder order = std::move(orders_.front());
    orders_.pop_front();
    launch(order);
  }
  pump_soon();
}

NNI_INLINE void Keeper::Core::launch(const StartOrder& order) {
  const auto job = jobs_.find(order.job);
  if (closed_ || job == jobs_.end()) return fail_start(order.run, "its job template is not known to the keeper");
  PreparedJob& prepared = *job->second;
  if (prepared.job().arguments.empty()) return fail_start(order.run, "the trial command is empty");

  const std::string name = to_string(order.run);
  if (::mkdirat(trials_, name.c_str(), 0777) != 0 && errno != EEXIST)
    return fail_start(order.run, "the output directory " + surroundings_.trials + "/" + name + " cannot be made: " + std::strerror(errno));

  std::string channel;
  if (prepared.wants_channel(order)) channel = channel_->admit(order.run, order.record);
  const process::LaunchSpec* spec = &prepared.spec(order, name, channel);
  process::Launched launched = launcher_.launch(*spec);
  if (launched.error == ENOENT && prepared.find_program_again()) {
    spec = &prepared.spec(order, name, channel);
    launched = launcher_.launch(*spec);
  }
  if (!launched.succeeded()) return fail_start(order.run, process::explain(*spec, launched.error));

  Run& run = runs_.at(order.run);
  run.process = launched.process;
  run.started = detail::wall_now();
  pids_[run.process.pid] = order.run;
  Record started(Record::Kind::started, order.run, run.started);
  started.process = run.process;
  run.started_position = append(started, true);
  reaper_->watch(run.process.pid);
}

NNI_INLINE void Keeper::Core::fail_start(RunId run, std::string reason) {
  record_end(run, runs_.at(run), JobEnd(EndKind::not_started, 0, std::move(reason)));
}

NNI_INLINE void Keeper::Core::kill(RunId run, StopReason why) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || found->second.killed || found->second.settling) return;
  Run& state = found->second;
  if (state.process.pid == 0) {
    std::erase_if(orders_, [run](const StartOrder& order) { return order.run == run; });
    JobEnd end(EndKind::killed, 0, "stopped before it was started");
    end.why = why;
    return record_end(run, state, std::move(end));
  }
  // A process that has ended already, unnoticed so far, ended by itself.
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(state.process.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) return;
  state.killed = why;
  state.below = process::descendants(state.process.pid);
  process::signal_group(state.process.pid, SIGINT);
  overdue_.emplace_back(std::chrono::steady_clock::now() + options_.grace, run);
  arm_kill_timer();
}

NNI_INLINE void Keeper::Core::kill_all(StopReason why) {
  std::vector<RunId> all;
  all.reserve(runs_.size());
  for (const auto& entry : runs_) all.push_back(entry.first);
  for (const RunId run : all) kill(run, why);
}

NNI_INLINE void Keeper::Core::arm_kill_timer() {
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

NNI_INLINE void Keeper::Core::kill_overdue() {
  const SteadyPoint now = std::chrono::steady_clock::now();
  while (!overdue_.empty() && overdue_.front().first <= now) {
    const auto found = runs_.find(overdue_.front().second);
    overdue_.pop_front();
    if (found == runs_.end() || found->second.settling) continue;   // it ended in time
    Run& run = found->second;
    run.how_killed = "did not end within " + to_string(options_.grace) + " of SIGINT and was killed";
    for (const process::Identity& process : process::descendants(run.process.pid)) run.below.push_back(process);
    process::signal_group(run.process.pid, SIGKILL);
  }
}

NNI_INLINE void Keeper::Core::acknowledge(const std::vector<AcknowledgedRange>& ranges) {
  for (const AcknowledgedRange& range : ranges) {
    spool_.acknowledge(range.first, range.count);
    if (finals_.empty() && starts_of_ends_.empty()) continue;
    const std::uint64_t end = std::min(range.first + range.count, spool_.next_position());
    for (std::uint64_t position = range.first; position < end; ++position) {
      if (const auto ended = starts_of_ends_.find(position); ended != starts_of_ends_.end()) {
        spool_.release(ended->second);
        starts_of_ends_.erase(ended);
      } else if (const auto final = finals_.find(position); final != finals_.end()) {
        if (--final->second->open == 0) final->second->message.acknowledge();
        finals_.erase(final);
      }
    }
  }
}

// ---- what happens -----------------------------------------------------------------------------------------------

NNI_INLINE void Keeper::Core::ended(const process::Exit& exit) {
  const auto known = pids_.find(exit.pid);
  if (known == pids_.end()) return;   // an orphan that was adopted
  const RunId run = known->second;
  pids_.erase(known);
  Run& state = runs_.at(run);
  process::signal_group(exit.pid, SIGKILL);

  JobEnd end(EndKind::exited, exit.code);
  if (state.killed) {
    process::kill_now(state.below);
    end.kind = EndKind::killed;
    end.why = *state.killed;
    end.message = std::move(state.how_killed);
  } else if (exit.how == process::Exit::How::signalled) {
    end.kind = EndKind::signalled;
    end.message = "ended by signal " + std::to_string(exit.code) + " (" + ::strsignal(exit.code) + ")";
  } else if (exit.how == process::Exit::How::unknown) {
    end.kind = EndKind::lost;
    end.message = "another part of the program waited for the trial's process and took its exit code";
  }
  if (!state.has_reported) return record_end(run, state, std::move(end));
  // Its last message may still lie in a socket.
  state.settling = true;
  boost::asio::co_spawn(executor_, settle_and_end(run, std::move(end)), boost::asio::detached);
}

NNI_INLINE awaitable<void> Keeper::Core::settle_and_end(RunId run, JobEnd end) {
  const std::shared_ptr<Core> keep = shared_from_this();
  auto settling = channel_->settle(run);
  co_await std::move(settling);
  if (!closed_) record_end(run, runs_.at(run), std::move(end));
}

NNI_INLINE void Keeper::Core::record_end(RunId run, Run& state, JobEnd end) {
  Record record(Record::Kind::ended, run, detail::wall_now());
  record.process = state.process;
  record.started = state.started;
  record.end = std::move(end);
  const std::uint64_t started = state.started_position;
  const std::uint64_t position = append(record);
  if (started != 0) starts_of_ends_[position] = started;
  if (channel_) channel_->dismiss(run);
  runs_.erase(run);
}

NNI_INLINE void Keeper::Core::received(trial::ChannelMessage message) {
  const auto found = runs_.find(message.run);
  if (found == runs_.end()) return;
  found->second.has_reported = true;
  const std::uint64_t first = spool_.next_position();
  const TimePoint now = detail::wall_now();
  for (Metric& metric : message.metrics) {
    Record record(Record::Kind::metric, message.run, metric.at);
    record.metric = metric.kind;
    record.sequence = metric.sequence;
    record.text = std::move(metric.value);
    append(record);
  }
  for (std::string& text : message.garbage) {
    Record record(Record::Kind::garbage, message.run, now);
    record.text = std::move(text);
    append(record);
  }
  if (!message.has_final()) {
    after_write_.push_back(std::move(message));
    return flush_soon();
  }
  // The trial may end once it knows that its result is safe, so it is told when the manager has it on its disk.
  const auto final = std::make_shared<Final>();
  final->open = static_cast<std::size_t>(spool_.next_position() - first);
  final->message = std::move(message);
  for (std::uint64_t position = first; position < spool_.next_position(); ++position) finals_[position] = final;
}

// ---- records ----------------------------------------------------------------------------------------------------

NNI_INLINE std::uint64_t Keeper::Core::append(const Record& record, bool keep) {
  const std::uint64_t position = spool_.next_position();
  const std::size_t at = frames_.size();
  append_frame(frames_, FrameType::record, position, [&record](Writer& out) { encode(out, record); });
  spool_.append(std::string_view(frames_).substr(at + frame_header_size), keep);
  flush_soon();
  return position;
}

NNI_INLINE void Keeper::Core::flush_soon() {
  if (flush_posted_ || in_trouble_) return;
  flush_posted_ = true;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

NNI_INLINE void Keeper::Core::flush() {
  if (closed_) return;
  if (const int error = spool_.flush()) {
    // Nothing is told before it is written, so trials and manager wait with us.
    if (!std::exchange(in_trouble_, true)) {
      const std::string text = "the spool in " + keeper_directory(options_.directory).string() + " cannot be written (" + std::strerror(error) +
                               "); trials wait until there is room";
      log_.error("keeper", text);
      if (trouble_listener_) trouble_listener_(text);
    }
    write_timer_.expires_after(detail::write_retry);
    write_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
      if (!failure) self->flush();
    });
    return;
  }
  if (std::exchange(in_trouble_, false)) {
    log_.info("keeper", "the spool can be written again");
    if (trouble_listener_) trouble_listener_({});
  }
  for (trial::ChannelMessage& message : std::exchange(after_write_, {})) message.acknowledge();
  const std::uint64_t end = spool_.next_position();
  if (listener_ && frames_from_ != end) listener_(frames_, frames_from_, end);
  frames_from_ = end;
  frames_.clear();
  if (frames_.capacity() > detail::worth_freeing) frames_.shrink_to_fit();
  check_idle();
}

NNI_INLINE std::uint64_t Keeper::Core::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) {
  return spool_.read(from, max_bytes, [&out](std::uint64_t position, std::string_view payload) {
    append_frame(out, FrameType::record, position, [payload, &out](Writer&) { out.append(payload); });
  });
}

NNI_INLINE Welcome Keeper::Core::welcome() const {
  Welcome result;
  result.boot = process::boot_id();
  result.pid = static_cast<std::uint64_t>(::getpid());
  result.directory = surroundings_.trials;
  result.next_position = spool_.next_position();
  result.restarted = restarted_;
  for (const auto& [run, state] : runs_) {
    if (state.process.pid == 0) continue;
    LiveRun live;
    live.run = run;
    live.process = state.process;
    live.started = state.started;
    result.live.push_back(live);
  }
  return result;
}

// ---- the public face --------------------------------------------------------------------------------------------

NNI_INLINE Keeper::Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
    : core_(std::make_shared<Core>(std::move(executor), std::move(options), std::move(log))) {}

NNI_INLINE Keeper::~Keeper() { core_->stop(); }

NNI_INLINE void Keeper::recover() { core_->recover(); }

NNI_INLINE awaitable<void> Keeper::open() {
  core_->open();
  return core_->open_channel();
}

NNI_INLINE void Keeper::inherit(const std::vector<std::string>& environment) { core_->inherit(environment); }
NNI_INLINE void Keeper::define(JobTemplate job) { core_->define(std::move(job)); }
NNI_INLINE void Keeper::start(StartOrder order) { core_->start(std::move(order)); }
NNI_INLINE void Keeper::kill(RunId run, StopReason why) { core_->kill(run, why); }
NNI_INLINE void Keeper::kill_all(StopReason why) { core_->kill_all(why); }
NNI_INLINE void Keeper::send(RunId run, std::string record) { core_->send(run, std::move(record)); }
NNI_INLINE void Keeper::acknowledge(const std::vector<AcknowledgedRange>& ranges) { core_->acknowledge(ranges); }
NNI_INLINE void Keeper::on_records(Listener listener) { core_->listener_ = std::move(listener); }
NNI_INLINE void Keeper::on_trouble(TroubleListener listener) { core_->trouble_listener_ = std::move(listener); }

NNI_INLINE void Keeper::on_idle(std::function<void()> listener) {
  core_->idle_listener_ = std::move(listener);
  core_->check_idle();
}

NNI_INLINE Welcome Keeper::welcome() const { return core_->welcome(); }
NNI_INLINE std::uint64_t Keeper::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) { return core_->replay(from, max_bytes, out); }
NNI_INLINE std::uint64_t Keeper::written_end() const noexcept { return core_->spool_.written_end(); }
NNI_INLINE std::size_t Keeper::live() const noexcept { return core_->live(); }
NNI_INLINE std::size_t Keeper::unacknowledged() const noexcept { return core_->spool_.unacknowledged(); }
NNI_INLINE unsigned short Keeper::port() const noexcept { return core_->channel_ ? core_->channel_->port() : static_cast<unsigned short>(0); }
NNI_INLINE awaitable<void> Keeper::close() { return core_->close(); }

NNI_INLINE std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory) { return experiment_directory / "keeper"; }

NNI_INLINE std::filesystem::path trials_directory(const std::filesystem::path& experiment_directory, std::string_view environment) {
  return experiment_directory / "environments" / environment / "trials";
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
