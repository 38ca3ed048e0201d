#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/keeper/process/keeper_options.hpp>

namespace nni::keeper {

/// A keeper as a process of its own: listens on a Unix socket of mode 0600 in the experiment's directory, to processes
/// of its own user only, and lets one manager in at a time.
///
/// It continues without a manager until its last trial has ended, where a later one can resume the experiment; otherwise
/// it stops its trials when the manager's process has ended. Trials of an earlier life of the experiment are stopped
/// before a manager of the next life is let in. A socket whose name was removed is made again.
///
/// SIGTERM stops all trials as the end of an experiment does, so a resume runs them again; only `nni-keeper stop` stops
/// them on behalf of the user.
class Daemon {
 public:
  /// @param io       nobody else uses it
  /// @param options  scope is set to `everything`
  /// @param log      where it writes what people may have to look into
  Daemon(boost::asio::io_context& io, KeeperOptions options, Log log);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  /// Takes the directory, ends left-overs, and listens. Blocks.
  /// @throws Error  `Errc::in_use` when there is a keeper already
  void open();

  /// Serves until there is nothing left to do.
  void run();

 private:
  class Core;
  std::unique_ptr<Core> core_;
};

/// Name of the socket within the keeper's directory.
inline constexpr const char* socket_name = "socket";

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/process/daemon_inl.hpp>
#endif
