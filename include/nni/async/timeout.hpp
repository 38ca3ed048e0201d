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

/// Ends a race at a point in real time. No child does that: a child that loses ends by an exception, and nearly
/// all limits are never reached.
class Alarm {
 public:
  Alarm(const boost::asio::any_io_executor& executor, Race& race, std::size_t index, SteadyPoint deadline);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm() { *race_ = nullptr; }

 private:
  // The timer's handler may be queued already when the race is over.
  std::shared_ptr<Race*> race_;
  boost::asio::steady_timer timer_;
};

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
  detail::throw_timed_out(what, limit);
}

/// Work with a limit on real time.
/// @param work   cancelled when the limit is reached
/// @param limit  from now on
/// @param what   for the error: what took too long
template <class T>
[[nodiscard]] awaitable<T> with_timeout(awaitable<T> work, Duration limit, std::string what = {}) {
  return with_timeout(ClockRef(), std::move(work), limit, std::move(what));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/timeout_inl.hpp>
#endif
