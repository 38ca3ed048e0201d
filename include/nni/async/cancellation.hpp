#pragma once

#include <exception>

#include <boost/asio/this_coro.hpp>
#include <boost/system/error_code.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/outcome.hpp>

namespace nni::async {

/// Returns true for every error code of Asio and the system that means cancellation.
[[nodiscard]] bool is_cancellation(const boost::system::error_code& code) noexcept;

/// Returns true for an exception that means cancellation, on which loops end silently.
[[nodiscard]] bool is_cancellation(const std::exception_ptr& failure) noexcept;

/// Resets the cancellation state, so that a canceled coroutine can await its clean-up.
///
/// A canceled coroutine throws at each `co_await`, before the operation starts. Awaiting the result discards
/// previous cancellations. A later one would interrupt the clean-up, unless that is protected by `shield`.
/// @code
/// std::exception_ptr failure;
/// try { co_await work(); } catch (...) { failure = std::current_exception(); }
/// co_await async::ignore_cancellation();
/// auto last = async::shield(clean_up());
/// co_await std::move(last);
/// @endcode
/// `finally` does the same in one call.
[[nodiscard]] inline auto ignore_cancellation() noexcept { return boost::asio::this_coro::reset_cancellation_state(); }

/// Runs work to its end regardless of cancellation; for shutdown only.
///
/// A cancellation in the meantime is kept and interrupts the caller at its next `co_await`. A
/// timeout belongs inside: `shield(with_timeout(work, limit))`.
///
/// @param work  runs to its end
/// @returns     its result, or its exception
template <class T>
[[nodiscard]] awaitable<T> shield(awaitable<T> work);

/// Runs work and then, whatever its outcome, a shielded clean-up.
///
/// The clean-up runs after a result, an exception and a cancellation. If both throw, the work's exception is rethrown.
///
/// @param clean_up  built before the work starts, started after it ended
/// @returns         the work's result
template <class T>
[[nodiscard]] awaitable<T> finally(awaitable<T> work, awaitable<void> clean_up);

namespace detail {

/// Waits for work in a separately spawned coroutine, to which a cancellation of the caller does not propagate.
NNI_LAZY awaitable<void> run_apart(awaitable<void> work);

}  // namespace detail

template <class T>
awaitable<T> shield(awaitable<T> work) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  auto apart = detail::run_apart(detail::capture(outcome, std::move(work)));
  co_await std::move(apart);
  co_return outcome->take();
}

template <class T>
awaitable<T> finally(awaitable<T> work, awaitable<void> clean_up) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  auto first = detail::capture(outcome, std::move(work));
  co_await std::move(first);

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  auto ended = std::make_shared<detail::Outcome<void>>();
  auto last = detail::run_apart(detail::capture(ended, std::move(clean_up)));
  co_await std::move(last);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  if (!outcome->failed()) ended->take();
  co_return outcome->take();
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/cancellation_inl.hpp>
#endif
