#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/channel/server.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/keeper/process/job.hpp>
#include <nni/keeper/process/keeper_options.hpp>
#include <nni/keeper/process/spool.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/process/identity.hpp>
#include <nni/process/launcher.hpp>
#include <nni/process/reaper.hpp>

namespace nni::keeper {

/// Runs the trials of one experiment on this machine: starts, waits, kills, serves their channel, and keeps records
/// of all of it in a spool until they are acknowledged.
///
/// It knows nothing of its manager; `Connection` connects the two. Each event becomes a `Record`, which is written
/// before it is delivered (at least once), so that a manager that comes back finds everything it has not acknowledged.
///
/// A trial is a process group. Its directory is `DIRECTORY/environments/ENVIRONMENT/trials/RUN`, with `trial.stdout`
/// and `trial.stderr`; only this user may look into it. What is left of the group when its first process ends is killed.
///
/// All members are called on the executor, except `recover`, which comes before all others.
class Keeper : public std::enable_shared_from_this<Keeper> {
 public:
  /// Receives records that have just been written, as frames.
  /// @param frames  complete frames of type *record*
  /// @param first   position of the first record
  /// @param end     position after the last record
  using Listener = std::function<void(std::string_view frames, std::uint64_t first, std::uint64_t end)>;

  /// Receives a run that the system has no room to start now, and the reason. The keeper forgets it: it may be ordered again.
  using DeferralListener = std::function<void(RunId run, const std::string& reason)>;

  /// Creates a keeper that has done nothing yet. When the last copy of the result goes, it stops at once; running trials
  /// continue. `close` first, for an orderly end.
  /// @param executor  single-threaded
  /// @param options   where, and for which experiment
  /// @param log       receives what people may have to look into
  NNI_NEEDS_PROCESS([[nodiscard]] static std::shared_ptr<Keeper> create(
      boost::asio::any_io_executor executor, KeeperOptions options, Log log = {}));
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper();

  /// Locks the directory, opens the spool, and ends the processes that an earlier keeper left. Blocks; any thread.
  /// @throws Error  `Errc::in_use` when another process has the lock, and whatever prevents work in the directory
  void recover();

  /// Starts to serve the channel and to wait for processes.
  void open();

  /// Sets the environment that trials inherit: `NAME=value`. Variables that NNI sets for managers are left out.
  void inherit(const std::vector<std::string>& environment);

  /// Makes a template known; one with the same id replaces it.
  void define(JobTemplate job);

  /// Makes the keeper serve a life of its experiment (`Hello::life`). Records of another life are dropped: nobody can
  /// ask for them any more, and runs of the same names would take them for their own. Waits for the disk then.
  /// @returns       false when runs of another life have not ended; nothing is changed then
  /// @throws Error  when the change cannot be written
  [[nodiscard]] bool enter_life(const std::string& life);

  /// Starts a run, soon. Whether it could be started is reported by a record. The same order for a run that lives is
  /// ignored.
  /// @returns  the reason why the order is not carried out: a run of this name lives with other parameters; empty otherwise
  std::string start(StartOrder order);

  /// Stops a run for a `reason`: SIGINT to its group, after the grace SIGKILL to what is left. Unknown runs are ignored.
  void kill(RunId run, StopReason reason);

  /// Stops all runs.
  void kill_all(StopReason reason);

  /// Stops all runs because this process was sent SIGTERM, as the end of an experiment does. Whoever shuts a machine down
  /// sends it to all processes at once: an end by the same signal, before or after this call, is none of the trial's own.
  void stop_by_signal();

  /// Queues a parameter `record` (docs/formats/trial-channel.md) for `run`, which lives.
  void send(RunId run, std::string record);

  /// Marks records as kept by the manager. Trials that wait for the answer to a final value get it.
  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  /// Sets the listener that receives records, each when it has been written.
  void on_records(Listener listener) { listener_ = std::move(listener); }
  /// Sets the write-failure listener; called at once if writing is failing now, and again on recovery.
  void on_trouble(TroubleListener listener);
  /// Sets the listener for runs that cannot be started now. Without one they are forgotten as well.
  void on_deferred(DeferralListener listener) { deferral_listener_ = std::move(listener); }

  /// Calls back when the last run has ended and everything is written; at once when that is so.
  void on_idle(std::function<void()> listener);

  /// Returns the message that a manager needs first.
  [[nodiscard]] Welcome welcome() const;

  /// Appends records from a position on as frames, unacknowledged ones only.
  /// @param from       first position of interest
  /// @param max_bytes  stops after about this much
  /// @param out        is appended to
  /// @returns          the position to continue from; `written_end()` when there is no more
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  /// The position after the last record that is written.
  [[nodiscard]] std::uint64_t written_end() const noexcept { return spool_.written_end(); }

  /// Returns the number of runs that live or wait to be started.
  [[nodiscard]] std::size_t live() const noexcept { return runs_.size(); }

  /// Returns the number of records that are not acknowledged.
  [[nodiscard]] std::size_t unacknowledged() const noexcept { return spool_.unacknowledged(); }

  /// Returns the port of the channel; 0 before `open`.
  [[nodiscard]] unsigned short port() const noexcept {
    return channel_ ? channel_->port() : static_cast<unsigned short>(0);
  }

  /// Ends the watch over processes and calls nothing any more; running trials continue.
  void stop();

  /// Puts the spool on the disk, ends the channel and gives the lock back. Call it when nothing is live.
  [[nodiscard]] awaitable<void> close();

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

  Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log);

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
  void check_idle() {
    if (idle_listener_ && runs_.empty() && spool_.written_end() == spool_.next_position()) idle_listener_();
  }

  boost::asio::any_io_executor executor_;
  KeeperOptions options_;
  Log log_;
  Listener listener_;
  TroubleListener trouble_listener_;
  DeferralListener deferral_listener_;
  std::function<void()> idle_listener_;
  Spool spool_;
  std::shared_ptr<channel::Server> channel_;
  TrialSurroundings surroundings_;
  Lock lock_;
  std::string life_;
  int trials_ = -1;
  bool restarted_ = false;
  bool closed_ = false;
  bool stopped_by_signal_ = false;

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

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/process/keeper_inl.hpp>
#endif
