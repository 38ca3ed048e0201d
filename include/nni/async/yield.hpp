#pragma once

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>

namespace nni::async {

/// Suspends until everything that was ready on an executor has had its turn: other coroutines, timers, sockets, signals.
///
/// A coroutine whose source never runs dry does not suspend when it awaits the next element, and so nothing else of a
/// single-threaded executor runs. Such a loop yields after a bounded number of elements:
/// @code
/// for (unsigned steps = 1;; ++steps) {
///   auto next = source.next();
///   handle(co_await std::move(next));
///   if (steps % 64 != 0) continue;
///   auto others = async::yield(executor);
///   co_await std::move(others);
/// }
/// @endcode
///
/// @param executor  where the caller runs
/// @throws boost::system::system_error  `operation_aborted` when cancelled
NNI_LAZY [[nodiscard]] awaitable<void> yield(boost::asio::any_io_executor executor);

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/yield_inl.hpp>
#endif
