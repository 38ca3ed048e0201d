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
  std::size_t threads = 0;                             ///< of the pool; 0 = max(2, min(8, processors))
  Log log = {};                                        ///< where log lines go; the default says nothing
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< a service finishes its clean-up within this
};

/// Owns what an experiment runs on: one single-threaded executor and a pool for blocking calls.
///
/// Services and everything else that holds timers, sockets or events of this runtime die before it. The runtime
/// itself ends in the one order that works: first the pool, so that nobody posts any more, then the executor's
/// context with the coroutines that are left in it.
class Runtime {
 public:
  /// @param options  threads, log, clock, limit
  explicit Runtime(RuntimeOptions options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  /// What policies are given; lives as long as the runtime.
  [[nodiscard]] Context& context() noexcept { return *context_; }

  /// The executor's context, for tests and for programs that run it themselves.
  [[nodiscard]] boost::asio::io_context& io() noexcept { return io_; }

  /// Runs one awaitable to completion on the calling thread.
  /// @returns its result
  /// @throws  what the work throws
  template <class T>
  T run(awaitable<T> work) {
    return async::run(io_, std::move(work));
  }

  /// Makes Ctrl-C stop in two phases.
  ///
  /// The first SIGINT or SIGTERM calls the handler on the executor. The second ends the process at once with
  /// exit code 130, even when the executor is stuck. The former reaction to both signals comes back when the
  /// runtime dies. A process has one such handler at a time.
  ///
  /// @param handler  called once, while the executor runs
  /// @throws nni::Error  `Errc::in_use` when another runtime of this process has a handler
  void on_stop_signal(std::function<void()> handler);

  /// Brings the former reaction to both signals back; for a runtime that outlives its work.
  void restore_signals() noexcept;

 private:
  class StopSignals;

  // Destroyed last: coroutines that die with the executor's context may still look at it.
  std::optional<Context> context_;
  boost::asio::io_context io_;
  boost::asio::thread_pool pool_;
  std::unique_ptr<StopSignals> signals_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/async/runtime_inl.hpp>
#endif
