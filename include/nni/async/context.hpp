#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <nni/async/clock.hpp>
#include <nni/core/log.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// Settings of a `Context`.
struct ContextOptions {
  Log log = {};                                        ///< receiver of log lines; by default none
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< time limit for the clean-up of a service
};

/// The execution environment of policies: executor, pool for blocking calls, clock, log, shutdown limit.
///
/// One single-threaded executor owns all state. Members of services, storages and so on are called on it and
/// never block; blocking calls go through `async::offload`. A policy may keep a pointer to the context that it was
/// started with; the context outlives the policy's run.
///
/// `Runtime` makes one. A program with an `io_context` of its own creates one over it and destroys the
/// pool before the context of the executor.
class Context {
 public:
  /// @param executor  single-threaded; owns all state
  /// @param pool      runs blocking calls; outlives this object
  /// @param options   log, clock and limit
  Context(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, ContextOptions options = {})
      : executor_(std::move(executor)), pool_(&pool), options_(std::move(options)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Returns the executor that owns all state.
  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  /// Returns the pool for blocking calls.
  [[nodiscard]] boost::asio::thread_pool& pool() const noexcept { return *pool_; }

  /// Returns the clock.
  [[nodiscard]] ClockRef clock() const noexcept { return options_.clock; }

  /// Returns the log.
  [[nodiscard]] const Log& log() const noexcept { return options_.log; }

  /// Returns the time limit for the clean-up of a service.
  [[nodiscard]] Duration shutdown_limit() const noexcept { return options_.shutdown_limit; }

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool* pool_;
  ContextOptions options_;
};

}  // namespace nni
