#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/files/system.hpp>
#include <nni/keeper/wire/protocol.hpp>
#include <nni/process/reaper.hpp>

namespace nni::keeper {

namespace detail {
class KeeperCore;
}

/// Settings of `Keeper`.
struct KeeperOptions {
  std::filesystem::path directory = {};                            ///< of the experiment, absolute
  std::string experiment = {};                                     ///< its id
  std::string environment = "local-env";                           ///< name of this machine within the experiment
  std::string platform = "local";                                  ///< what trials find in NNI_PLATFORM
  std::string reporter = {};                                       ///< see `find_reporter`; empty: none
  process::Reaper::Scope scope = process::Reaper::Scope::watched;  ///< `everything` in a process of its own
  Duration grace = std::chrono::seconds(5);                        ///< between SIGINT and SIGKILL
  std::shared_ptr<files::System> files = files::System::real();    ///< makes the calls of the spool
};

/// Runs the trials of one experiment on this machine: starts, waits, kills, serves their channel, and keeps an account
/// of all of it in a spool until somebody acknowledges.
///
/// It knows nothing of its manager; `Connection` connects the two. Each thing that happens becomes a `Record`, is written,
/// and only then told, so that a manager which comes back finds everything it has not acknowledged.
///
/// A trial is a process group. Its directory is `DIRECTORY/environments/ENVIRONMENT/trials/RUN`, with `trial.stdout`
/// and `trial.stderr`; only this user may look into it. What is left of the group when its first process ends is killed.
///
/// All members are called on the executor, except `recover`, which comes before all others.
class Keeper {
 public:
  /// Receives records that have just been written, as frames.
  /// @param frames  complete frames of type *record*
  /// @param first   position of the first record
  /// @param end     position behind the last record
  using Listener = std::function<void(std::string_view frames, std::uint64_t first, std::uint64_t end)>;

  /// Told when something is wrong that will be tried again, and with an empty text when it is over.
  using TroubleListener = std::function<void(const std::string& text)>;

  /// Receives a run that the system has no room to start now, and why. The keeper forgets it: it may be ordered again.
  using DeferralListener = std::function<void(RunId run, const std::string& reason)>;

  /// @param executor  single-threaded
  /// @param options   where, and for which experiment
  /// @param log       is told about what people may have to look into
  NNI_NEEDS_PROCESS(Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log = {}));
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// Stops listening; running trials go on. `close` first, for an orderly end.
  ~Keeper();

  /// Locks the directory, opens the spool, and ends what an earlier keeper left running. Blocks; any thread.
  /// @throws Error  `Errc::in_use` when another process has the lock, and whatever prevents work in the directory
  void recover();

  /// Starts to serve the channel and to wait for processes.
  [[nodiscard]] awaitable<void> open();

  /// Makes what trials inherit known: `NAME=value`. What NNI sets itself for managers is left out.
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
  /// @returns  why the order is not carried out: a run of this name lives with other parameters; empty otherwise
  std::string start(StartOrder order);

  /// Stops a run for the reason `why`: SIGINT to its group, after the grace SIGKILL to whatever is left. Unknown runs are ignored.
  void kill(RunId run, StopReason why);

  /// Stops all runs.
  void kill_all(StopReason why);

  /// Stops all runs because this process was sent SIGTERM, as the end of an experiment does. Whoever shuts a machine down
  /// sends it to all processes at once: an end by the same signal, before or after this call, is none of the trial's own.
  void stop_by_signal();

  /// Queues a parameter `record` (docs/formats/trial-channel.md) for `run`, which lives.
  void send(RunId run, std::string record);

  /// Takes records as recorded elsewhere. Trials that wait for the answer to a final value get it.
  void acknowledge(const std::vector<AcknowledgedRange>& ranges);

  /// Sets who receives records, each when it has been written.
  void on_records(Listener listener);
  /// Sets who is told that records cannot be written for now, at once if that is so already, and when that is over.
  void on_trouble(TroubleListener listener);
  /// Sets the listener for runs that could not be started for now. Without one they are forgotten all the same.
  void on_deferred(DeferralListener listener);

  /// Calls back when the last run has ended and everything is written; at once when that is so.
  void on_idle(std::function<void()> listener);

  /// What a manager needs to know first.
  [[nodiscard]] Welcome welcome() const;

  /// Appends records from a position on as frames, unacknowledged ones only.
  /// @param from       first position of interest
  /// @param max_bytes  stops after about this much
  /// @param out        is appended to
  /// @returns          the position to go on from; `written_end()` when there is no more
  std::uint64_t replay(std::uint64_t from, std::size_t max_bytes, std::string& out);

  /// The position behind the last record that is written.
  [[nodiscard]] std::uint64_t written_end() const noexcept;

  /// Runs that live or wait to be started.
  [[nodiscard]] std::size_t live() const noexcept;

  /// Records that nobody acknowledged.
  [[nodiscard]] std::size_t unacknowledged() const noexcept;

  /// Port of the channel; 0 before `open`.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Puts the spool on the disk, ends the channel and gives the lock back. Call it when nothing is live.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::KeeperCore> core_;
};

/// Where a keeper keeps its own files: `DIRECTORY/keeper`.
[[nodiscard]] std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory);

/// Parent of the directories of all runs: `environments/ENVIRONMENT/trials` of `environment` in `experiment_directory`.
[[nodiscard]] std::filesystem::path trials_directory(
    const std::filesystem::path& experiment_directory, std::string_view environment);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/process/keeper_inl.hpp>
#endif
