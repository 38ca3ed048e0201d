#pragma once

#include <filesystem>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/macros.hpp>

namespace nni::storage::detail {

/// Tells when files of this machine change: one inotify instance for all of them, read on the executor.
class FileWatcher {
 public:
  /// @throws Error  `Errc::unsupported` when the system gives no inotify instance
  explicit FileWatcher(boost::asio::any_io_executor executor);
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;
  ~FileWatcher();

  /// The first call for a file begins to watch it and returns at once. Each later one returns when the file was written,
  /// touched, moved or removed since the last return. A cancelled call ends the watch. One waits at a time for a file.
  ///
  /// @throws Error  `Errc::not_found`; `Errc::unsupported` for a file whose changes this machine cannot see (a network
  ///                file system), or when the system has no more watches; `Errc::closed` after `close`
  NNI_LAZY awaitable<void> changed(std::filesystem::path file);

  /// Ends all watches; whoever waits gets `Errc::closed`.
  void close();

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::storage::detail

#if NNI_HEADER_ONLY
#include <nni/storage/detail/file_watcher_inl.hpp>
#endif
