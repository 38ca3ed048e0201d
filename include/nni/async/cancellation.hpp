#pragma once

#include <exception>

#include <boost/asio/this_coro.hpp>
#include <boost/system/error_code.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/outcome.hpp>

namespace nni::async {

/// True for every code that stands for "somebody cancelled this", whatever part of Asio says so.
[[nodiscard]] bool is_cancellation(const boost::system::error_code& code) noexcept;

/// True when an exception says that somebody cancelled the work; loops end quietly on it.
[[nodiscard]] bool is_cancellation(const std::exception_ptr& failure) noexcept;

/// Lets a coroutine that was cancelled await its clean-up.
///
/// A cancelled coroutine throws at each `co_await`, before anything is done. Awaiting this forgets the
/// cancellations so far. A new one would interrupt the clean-up; together with `shield` none does.
/// @code
/// std::exception_ptr failure;
/// try { co_await work(); } catch (...) { failure = std::current_exception(); }
/// co_await async::ignore_cancellation();
/// auto last = async::shield(clean_up());
/// co_await std::move(last);
/// @endcode
/// Where it fits, `finally` says the same in one call.
[[nodiscard]] inline auto ignore_cancellation() noexcept { return boost::asio::this_coro::reset_cancellation_state(); }

/// Runs work that cancellation must not reach; for shutdown only.
///
/// A cancellation that arrives meanwhile is remembered and interrupts the caller at its next `co_await`. A
/// limit on time goes inside: `shield(with_timeout(work, limit))`.
///
/// @param work  runs to its end
/// @returns     its result, or its exception
template <class T>
[[nodiscard]] awaitable<T> shield(awaitable<T> work);

/// Runs work and then, whatever became of it, a shielded clean-up.
///
/// The clean-up runs when the work returned, threw or was cancelled. When both throw, the work's exception counts.
///
/// @param work      the work
/// @param clean_up  built before the work starts, started after it ended
/// @returns         the work's result
template <class T>
[[nodiscard]] awaitable<T> finally(awaitable<T> work, awaitable<void> clean_up);

namespace detail {

/// Waits for work on a thread of execution of its own, whose cancellation is not connected to the caller's.
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
