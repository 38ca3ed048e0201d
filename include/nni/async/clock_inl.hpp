#pragma once

#include <chrono>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/clock.hpp>

namespace nni {

NNI_INLINE TimePoint SystemClock::now() const noexcept { return wall_now(); }

NNI_INLINE SteadyPoint SystemClock::steady_now() const noexcept { return std::chrono::steady_clock::now(); }

NNI_LAZY_BODY awaitable<void> SystemClock::sleep_until(SteadyPoint deadline) {
  auto executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer timer(executor, deadline);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

NNI_INLINE ClockRef::ClockRef() noexcept {
  // Stateless, so one object serves all threads and contexts.
  static SystemClock system;
  clock_ = &system;
  table_ = &table_of<SystemClock>;
}

}  // namespace nni
