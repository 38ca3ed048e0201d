#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/clock.hpp>
#include <nni/async/race.hpp>
#include <nni/core/time.hpp>

namespace nni::async {

namespace detail {

/// A timer that ends a race. It is no child, because a losing child ends by an exception, which is expensive, and nearly
/// every timeout loses.
class Alarm {
 public:
  Alarm(const boost::asio::any_io_executor& executor, Race& race, std::size_t index, SteadyPoint deadline);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { *race_ = nullptr; }

 private:
  // Shared with the timer's handler, which may be queued already when the race ends.
  std::shared_ptr<Race*> race_;
  boost::asio::steady_timer timer_;
};

/// Throws the error of a timeout.
[[noreturn]] void throw_timed_out(const std::string& operation, Duration limit);

}  // namespace detail

/// Runs work with a timeout, measured by a given clock.
///
/// Returns the result, or throws the work's exception, as soon as there is one. At the limit the work is
/// canceled and waited for, so it must react to cancellation; then this throws `Errc::timed_out`, whatever the
/// exception of the work. A value is never lost: if the work still has a result after the limit, it is
/// returned.
///
/// @param clock      measures the limit
/// @param limit      time from now on
/// @param operation  name of the operation, before the message: "connecting to 10.0.0.4:22"
/// @throws nni::Error  `Errc::timed_out` at the limit
/// @throws             any earlier exception of the work; `operation_aborted` when the caller is canceled
template <class T>
[[nodiscard]] awaitable<T> with_timeout(ClockRef clock, awaitable<T> work, Duration limit, std::string operation = {}) {
  auto executor = co_await boost::asio::this_coro::executor;
  detail::Race both(executor);
  detail::Outcome<T> outcome;
  detail::Outcome<void> sleep;
  std::optional<detail::Alarm> alarm;

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const SteadyPoint deadline = clock.steady_now() + limit;
  both.start(0, detail::racer(both, 0, outcome, std::move(work)));
  if (!clock.is_system())
    both.start(1, detail::racer(both, 1, sleep, clock.sleep_until(deadline)));
  else if (both.winner() == detail::Race::nobody)
    alarm.emplace(executor, both, 1, deadline);
  co_await both.join(throws);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  const bool has_value = outcome.ready() && !outcome.failed();
  if (both.winner() == 0 || (has_value && !std::is_void_v<T>)) co_return outcome.take();
  if (both.winner() == detail::Race::nobody) detail::throw_cancelled();
  sleep.take();
  detail::throw_timed_out(operation, limit);
}

/// Runs work with a timeout in real time.
/// @param work       canceled at the limit
/// @param operation  name of the operation, before the message
template <class T>
[[nodiscard]] awaitable<T> with_timeout(awaitable<T> work, Duration limit, std::string operation = {}) {
  return with_timeout(ClockRef(), std::move(work), limit, std::move(operation));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/timeout_inl.hpp>
#endif
