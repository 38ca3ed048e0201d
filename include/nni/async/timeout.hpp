#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <nni/async/awaitable.hpp>
#include <nni/async/clock.hpp>
#include <nni/async/race.hpp>
#include <nni/core/time.hpp>

namespace nni::async {

namespace detail {

/// The error of work that took too long.
[[noreturn]] void throw_timed_out(const std::string& what, Duration limit);

}  // namespace detail

/// Work with a limit on time, on a clock of the caller's choice.
///
/// Returns the result, or throws the work's exception, as soon as there is one. At the limit the work is
/// cancelled and waited for, so it must listen to cancellation; then this throws `Errc::timed_out`, whatever the
/// work says about its end. Only a value is never thrown away: work that still yields one after the limit has
/// it returned.
///
/// @param clock  measures the limit
/// @param work   what to run
/// @param limit  time from now on
/// @param what   what is waited for, in front of the message: "connecting to 10.0.0.4:22"
/// @throws nni::Error  `Errc::timed_out` at the limit
/// @throws             what the work throws before; `operation_aborted` when the caller is cancelled
template <class T>
[[nodiscard]] awaitable<T> with_timeout(ClockRef clock, awaitable<T> work, Duration limit, std::string what = {}) {
  detail::Race both(co_await boost::asio::this_coro::executor);
  detail::Outcome<T> outcome;
  detail::Outcome<void> alarm;

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const SteadyPoint deadline = clock.steady_now() + limit;
  both.start(0, detail::racer(both, 0, outcome, std::move(work)));
  both.start(1, detail::racer(both, 1, alarm, clock.sleep_until(deadline)));
  co_await both.join();
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  const bool has_value = outcome.ready() && !outcome.failed();
  if (both.winner() == 0 || (has_value && !std::is_void_v<T>)) co_return outcome.take();
  if (both.winner() == detail::Race::nobody) detail::throw_cancelled();
  alarm.take();
  detail::throw_timed_out(what, limit);
}

/// Work with a limit on real time.
template <class T>
[[nodiscard]] awaitable<T> with_timeout(awaitable<T> work, Duration limit, std::string what = {}) {
  return with_timeout(ClockRef(), std::move(work), limit, std::move(what));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/impl/timeout.ipp>
#endif
