#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <unistd.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/log.hpp>
#include <nni/core/trial.hpp>
#include <nni/keeper/process/job.hpp>
#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/process/spool.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/process/identity.hpp>
#include <nni/process/launcher.hpp>
#include <nni/process/reaper.hpp>

#if NNI_WITH_PROCESS

namespace nni::keeper::detail {

/// Everything that a `Keeper` is. Handlers that wait for the executor keep it alive.
class KeeperCore : public std::enable_shared_from_this<KeeperCore> {
 public:
  KeeperCore(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
      : spool_(options.files),
        executor_(std::move(executor)),
        options_(std::move(options)),
        log_(std::move(log)),
        kill_timer_(executor_),
        write_timer_(executor_) {
    surroundings_.experiment = options_.experiment;
    surroundings_.platform = options_.platform;
    surroundings_.reporter = options_.reporter;
    surroundings_.trials = trials_directory(options_.directory, options_.environment).string();
  }

  ~KeeperCore() {
    if (trials_ >= 0) ::close(trials_);
  }

  // ---- begin and end --------------------------------------------------------------------------------------------

  void recover();

  void open() {
    reaper_.emplace(executor_, options_.scope, [this](const process::Exit& exit) { ended(exit); });
    channel::ServerOptions limits;
    limits.environment = options_.environment;
    channel_ = channel::Server::create(
        executor_, limits, [this](channel::Message message) { received(std::move(message)); }, log_);
  }

  awaitable<void> open_channel() {
    channel_->open();
    flush_soon();  // what recover found
    co_return;
  }

  void stop() {
    closed_ = true;
    reaper_.reset();
    kill_timer_.cancel();
    write_timer_.cancel();
    listener_ = nullptr;
    trouble_listener_ = nullptr;
    deferral_listener_ = nullptr;
    idle_listener_ = nullptr;
  }

  awaitable<void> close();

  // ---- orders ---------------------------------------------------------------------------------------------------

  void inherit(const std::vector<std::string>& environment) {
    inherited_ = environment;
    jobs_.clear();  // templates are sent again by whoever sends an environment
  }

  void define(JobTemplate job) {
    const std::uint64_t id = job.id;
    jobs_[id] = std::make_shared<PreparedJob>(std::move(job), inherited_, surroundings_);
  }

  bool enter_life(const std::string& life);

  std::string start(StartOrder order) {
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

  void kill(RunId run, StopReason why);
  void kill_all(StopReason why);

  void send(RunId run, std::string record) {
    const auto found = runs_.find(run);
    if (!channel_ || found == runs_.end()) return;
    ++found->second.phases;
    if (found->second.process.pid == 0)
      found->second.early.push_back(std::move(record));
    else
      channel_->send(run, std::move(record));
  }

  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  // ---- answers --------------------------------------------------------------------------------------------------

  Welcome welcome() const;
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  std::size_t live() const noexcept { return runs_.size(); }

  void on_trouble(Keeper::TroubleListener listener) {
    trouble_listener_ = std::move(listener);
    if (trouble_listener_ && !trouble_.empty()) trouble_listener_(trouble_);
  }

  Keeper::Listener listener_;
  Keeper::TroubleListener trouble_listener_;
  Keeper::DeferralListener deferral_listener_;
  std::function<void()> idle_listener_;
  Spool spool_;
  std::shared_ptr<channel::Server> channel_;
  bool stopped_by_signal_ = false;

  void check_idle() {
    if (idle_listener_ && runs_.empty() && spool_.written_end() == spool_.next_position()) idle_listener_();
  }

 private:
  struct Run {
    process::Identity process;  // pid 0: not started yet
    TimePoint started{};
    std::uint64_t started_position = 0;
    std::size_t record = 0;          // hash of its parameter record
    std::uint64_t phases = 0;        // further parameters that have come
    std::vector<std::string> early;  // of them, those that came before the turn of its order
    std::optional<StopReason> killed;
    std::string how_killed;
    std::vector<process::Identity> below;  // descendants when the kill began: they may lose their parent by it
    bool has_reported = false;
    bool settling = false;
  };

  /// An order whose turn has not come.
  struct Waiting {
    StartOrder order;
    std::shared_ptr<PreparedJob> job;  // null: its template is not known
  };

  /// A message that is acknowledged to its trial when the last of its records is.
  struct Final {
    channel::Message message;
    std::size_t open = 0;
  };

  void read_life();
  void pump_soon();
  void pump();
  void launch(const Waiting& waiting);
  void fail_start(RunId run, std::string reason);
  void defer_start(RunId run, const std::string& name, bool remove, const std::string& reason);
  void ended(const process::Exit& exit);
  std::vector<process::Identity> strays_of(RunId run) const;
  awaitable<void> settle_and_end(RunId run, JobEnd end, bool by_sigterm);
  void record_end(RunId run, Run& state, JobEnd end);
  void received(channel::Message message);
  std::uint64_t append(Record record, bool keep = false);
  void flush_soon();
  void flush();
  void arm_kill_timer();
  void kill_overdue();

  boost::asio::any_io_executor executor_;
  KeeperOptions options_;
  Log log_;
  TrialSurroundings surroundings_;
  Lock lock_;
  std::string life_;
  int trials_ = -1;
  bool restarted_ = false;
  bool closed_ = false;

  process::Launcher launcher_{
      options_.scope == process::Reaper::Scope::everything
          ? process::Launcher::Surroundings::own
          : process::Launcher::Surroundings::any};
  std::optional<process::Reaper> reaper_;
  std::vector<std::string> inherited_;
  std::unordered_map<std::uint64_t, std::shared_ptr<PreparedJob>> jobs_;
  std::unordered_map<RunId, Run> runs_;
  std::unordered_map<pid_t, RunId> pids_;
  std::deque<Waiting> orders_;
  bool pumping_ = false;

  std::deque<std::pair<SteadyPoint, RunId>> overdue_;  // in the order of their times
  boost::asio::steady_timer kill_timer_;
  bool kill_timer_armed_ = false;

  std::string frames_;             // records that are not written yet, as frames
  std::uint64_t frames_from_ = 0;  // position of the first one
  bool flush_posted_ = false;
  std::string trouble_;  // why records cannot be written for now; empty: they can
  boost::asio::steady_timer write_timer_;
  std::vector<channel::Message> after_write_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Final>> finals_;  // by position
  std::unordered_map<std::uint64_t, std::uint64_t> starts_of_ends_;   // position of an end: position of its start
};

}  // namespace nni::keeper::detail

#endif  // NNI_WITH_PROCESS
