#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/mount.hpp>

namespace nni::storage {

namespace detail {
class FileWatcher;
}

/// Settings of `LocalDirectory`.
struct LocalDirectoryOptions {
  std::filesystem::path root{};  ///< empty: `storage` in the experiment's directory
};

/// A storage in a directory of this machine, which trials access under the same path.
///
/// Trials may create links in it. A link within the directory is followed; a path that leaves the directory through a link
/// is rejected with `Errc::storage_failed`. `download` copies links in a directory as links. The directory itself is never
/// replaced or removed.
class LocalDirectory {
 public:
  using role = nni::role::storage;
  using mount_type = HostPath;

  explicit LocalDirectory(LocalDirectoryOptions options = {}) : root_(std::move(options.root)) {}

  /// Sets the default root below the experiment's directory.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId&) {
    if (root_.empty()) root_ = directory / "storage";
  }

  /// Returns the directory; empty until it is known.
  [[nodiscard]] const std::filesystem::path& root() const noexcept { return root_; }

  NNI_LAZY awaitable<void> open(Context& context);
  NNI_LAZY awaitable<void> upload(std::filesystem::path local, RemotePath remote);
  NNI_LAZY awaitable<void> download(RemotePath remote, std::filesystem::path local);
  NNI_LAZY awaitable<std::string> read(RemotePath remote, std::uint64_t offset, std::size_t length);
  NNI_LAZY awaitable<std::vector<FileInfo>> list(RemotePath remote);
  NNI_LAZY awaitable<void> remove(RemotePath remote);

  /// Waits for a change of a file by inotify.
  /// @throws Error  `Errc::unsupported` on a file system that other machines write to, or if the system has no more
  ///                watches; `Errc::not_found`
  NNI_LAZY awaitable<void> changed(RemotePath remote);
  [[nodiscard]] HostPath mount(TrialId) const { return HostPath{root_}; }
  NNI_LAZY awaitable<void> close();

 private:
  [[nodiscard]] std::filesystem::path resolve(const RemotePath& remote) const;
  /// The same for a path to replace or remove: not the root.
  [[nodiscard]] std::filesystem::path resolve_below(const RemotePath& remote) const;

  std::filesystem::path root_;
  Context* context_ = nullptr;
  std::shared_ptr<detail::FileWatcher> watcher_;  // created by the first watch
};

static_assert(WatchableStorage<LocalDirectory>);

}  // namespace nni::storage

#if NNI_HEADER_ONLY
#include <nni/storage/local_directory_inl.hpp>
#endif
