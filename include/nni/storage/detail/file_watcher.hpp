#pragma once

#include <filesystem>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/macros.hpp>

namespace nni::storage::detail {

/// A watcher of local files: one inotify instance for all of them, read on the executor.
class FileWatcher {
 public:
  /// @throws Error  `Errc::unsupported` if the system has no more inotify instances
  explicit FileWatcher(boost::asio::any_io_executor executor);
  FileWatcher(const FileWatcher&) = delete;
  FileWatcher& operator=(const FileWatcher&) = delete;
  ~FileWatcher();

  /// The first call for a file starts a watch and returns at once. Each later one returns after the file was written,
  /// touched, moved or removed since the last return. A canceled call ends the watch. One waiter at a time per file.
  ///
  /// @throws Error  `Errc::not_found`; `Errc::unsupported` for a file whose changes this machine cannot observe (a network
  ///                file system), or if the system has no more watches; `Errc::closed` after `close`
  NNI_LAZY awaitable<void> changed(std::filesystem::path file);

  /// Ends all watches; waiters get `Errc::closed`.
  void close();

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::storage::detail

#if NNI_HEADER_ONLY
#include <nni/storage/detail/file_watcher_inl.hpp>
#endif
