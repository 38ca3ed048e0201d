#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni::transport {

namespace detail {
class TailCore;

/// The operations of a storage that `FileTail` needs, whatever its type.
struct TailFiles {
  std::function<awaitable<std::string>(RemotePath, std::uint64_t, std::size_t)> read{};
  std::function<awaitable<void>(std::filesystem::path, RemotePath)> upload{};
  std::function<awaitable<std::vector<FileInfo>>(RemotePath)> list{};
  std::function<awaitable<void>(RemotePath)> changed{};  ///< empty where nothing can be watched
  std::function<std::filesystem::path(TrialId)> root{};  ///< where a trial sees the storage
};
}  // namespace detail

/// Settings of `FileTail`.
struct FileTailOptions {
  /// Where a trial sees the root of the storage, for instance `/mnt/nni`. Empty: under the host path that the storage
  /// says, which a storage must have then.
  std::filesystem::path trial_root = {};
  std::string directory = "trials";          ///< of the storage, for the directories of the runs
  std::size_t max_record_bytes = 1'000'000;  ///< largest value of a trial; a larger one is skipped as garbage
  Duration first_pause = std::chrono::milliseconds(100);  ///< between two looks at a file that cannot be watched,
  Duration longest_pause = std::chrono::seconds(5);       ///< doubled up to this while nothing is written
};

/// NNI's legacy channel: parameters and results in files, over any storage. For trials that reach no server of ours,
/// and for programs that know this channel only.
///
/// A run has a directory `trials/RUN` in the storage: `parameter.cfg`, `parameter_1.cfg` and so on (multi-phase), and
/// `.nni/metrics`, to which the trial appends. NNI's unmodified Python library does that by itself, directed by the
/// variables that `environment` sets. Changes are noticed where the storage can be watched, otherwise the file is read
/// from time to time. A trial gets no answer, so it cannot wait until its value is recorded.
///
/// The file itself is what makes it safe: nothing is removed from it, each record has a key (run, kind, sequence, text), and
/// after a resume it is read again from its beginning, so that the manager takes what it has not recorded and recognizes
/// the rest. The directories stay when the experiment has ended.
class FileTail {
 public:
  using role = nni::role::metric_transport;
  static constexpr bool multi_phase = true;  ///< it can bring further parameters to a running trial

  /// @param options  limits, and where the files are
  explicit FileTail(FileTailOptions options = {});
  FileTail(FileTail&&) noexcept;
  FileTail& operator=(FileTail&&) noexcept;
  ~FileTail();

  /// @param context       where it reads from now on; outlives it
  /// @param store         holds the files; outlives it
  /// @throws ConfigError  when neither the options nor the storage say where trials see the files
  template <class Store>
  [[nodiscard]] awaitable<void> open(Context& context, Store& store) {
    detail::TailFiles files;
    files.read = [&store](RemotePath path, std::uint64_t offset, std::size_t length) {
      return store.read(std::move(path), offset, length);
    };
    files.upload = [&store](std::filesystem::path from, RemotePath to) {
      return store.upload(std::move(from), std::move(to));
    };
    files.list = [&store](RemotePath path) { return store.list(std::move(path)); };
    if constexpr (WatchableStorage<Store>)
      files.changed = [&store](RemotePath path) { return store.changed(std::move(path)); };
    if (!options_.trial_root.empty())
      files.root = [root = options_.trial_root](TrialId) { return root; };
    else if constexpr (std::convertible_to<typename Store::mount_type, HostPath>)
      files.root = [&store](TrialId trial) { return HostPath(store.mount(trial)).path; };
    return open(context, std::move(files));
  }

  /// Writes the files of a run, and begins to read what it will write; the run is submitted afterwards.
  [[nodiscard]] awaitable<void> prepare(const TrialJobForm& form);

  /// Continues to read for a run of an earlier manager.
  void resume(RunId run);

  /// `NNI_SYS_DIR`, and what makes NNI's library use files: `NNI_PLATFORM=local`, no `NNI_TRIAL_COMMAND_CHANNEL`.
  [[nodiscard]] EnvironmentVariables environment(RunId run);

  [[nodiscard]] awaitable<TrialMessage> next_message();
  [[nodiscard]] awaitable<void> acknowledge(Receipt receipt);

  /// Writes `parameters` to `parameter_N.cfg`.
  /// @throws Error  `Errc::no_such_job` for a run that has ended; what the storage says
  [[nodiscard]] awaitable<void> send(RunId run, Parameters parameters);

  /// Reads what is left and returns when it has been given to `next_message`.
  [[nodiscard]] awaitable<void> settle(RunId run);
  [[nodiscard]] awaitable<void> close();

 private:
  [[nodiscard]] awaitable<void> open(Context& context, detail::TailFiles files);

  FileTailOptions options_;
  std::shared_ptr<detail::TailCore> core_;
};

}  // namespace nni::transport

#if NNI_HEADER_ONLY
#include <nni/transport/file_tail_inl.hpp>
#endif
