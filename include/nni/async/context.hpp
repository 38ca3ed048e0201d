#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <nni/async/clock.hpp>
#include <nni/core/log.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// What surrounds an experiment; everything has a default.
struct ContextOptions {
  Log log = {};                                        ///< where log lines go; the default says nothing
  ClockRef clock = {};                                 ///< the source of time
  Duration shutdown_limit = std::chrono::seconds(60);  ///< a service finishes its clean-up within this
};

/// The surroundings that policies are given: executor, pool for blocking calls, clock, log, limit for shutdown.
///
/// One single-threaded executor owns all state. Members of services, storages and so on are called on it and
/// never block; blocking calls go through `async::offload`. A policy may keep a pointer to the context it was
/// started with; it outlives the policy's run.
///
/// `Runtime` makes one. A program with an `io_context` of its own builds one over it, and keeps the order: the
/// pool dies before the context of the executor.
class Context {
 public:
  /// @param executor  single-threaded; owns all state
  /// @param pool      runs blocking calls; outlives this object
  /// @param options   log, clock and limit
  Context(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool, ContextOptions options = {})
      : executor_(std::move(executor)), pool_(&pool), options_(std::move(options)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Where all state lives.
  [[nodiscard]] const boost::asio::any_io_executor& executor() const noexcept { return executor_; }

  /// Where blocking calls run.
  [[nodiscard]] boost::asio::thread_pool& pool() const noexcept { return *pool_; }

  /// The source of time.
  [[nodiscard]] ClockRef clock() const noexcept { return options_.clock; }

  /// Where log lines go.
  [[nodiscard]] const Log& log() const noexcept { return options_.log; }

  /// The longest that a clean-up may take.
  [[nodiscard]] Duration shutdown_limit() const noexcept { return options_.shutdown_limit; }

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool* pool_;
  ContextOptions options_;
};

}  // namespace nni
