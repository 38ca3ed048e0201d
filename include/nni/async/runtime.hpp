#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/run.hpp>

namespace nni {

/// Settings of a `Runtime`.
struct RuntimeOptions {
  std::size_t threads = 0;                             ///< threads of the pool; 0: max(2, min(8, processors))
  Log log = {};                                        ///< receiver of log lines; by default none
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< time limit for the clean-up of a service
};

/// The execution resources of an experiment: a single-threaded executor and a pool for blocking calls.
///
/// Destroy services and everything else that holds timers, sockets or events of this runtime before it. The runtime
/// itself ends in the only safe order: first the pool, so that nothing posts any more, then the executor's
/// context with the coroutines that remain in it.
class Runtime {
 public:
  /// @param options  threads, log, clock, limit
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// Returns the context of policies; it lives as long as the runtime.
  [[nodiscard]] Context& context() noexcept { return *context_; }

  /// Returns the executor's context, for tests and for programs that run it themselves.
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }

  /// Runs one awaitable to completion on the calling thread.
  /// @returns its result
  /// @throws  any exception of the work
  template <class T>
  T run(awaitable<T> work) {
    return async::run(io_, std::move(work));
  }

  /// Installs a two-phase handler for Ctrl-C.
  ///
  /// The first SIGINT or SIGTERM calls the handler on the executor. The second ends the process at once with
  /// exit code 130, even when the executor is stuck. The destructor of the runtime restores the
  /// previous signal handlers. A process has one such handler at a time.
  ///
  /// @param handler  called once, while the executor runs
  /// @throws nni::Error  `Errc::in_use` if another runtime of this process has a handler
  void on_stop_signal(std::function<void()> handler);

  /// Restores the previous signal handlers; for a runtime that outlives its work.
  void restore_signals() noexcept;

 private:
  class StopSignals;

  // Destroyed last: coroutines that are destroyed with the executor's context may still access it.
  std::optional<Context> context_;
  boost::asio::io_context io_;
  boost::asio::thread_pool pool_;
  std::unique_ptr<StopSignals> signals_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/async/runtime_inl.hpp>
#endif
