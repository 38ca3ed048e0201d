#pragma once

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>

namespace nni::async {

/// Suspends until all ready handlers of an executor have run: other coroutines, timers, sockets, signals.
///
/// A loop over a source that always has a next element never suspends and so starves all other work of a
/// single-threaded executor. Such a loop yields after a bounded number of elements:
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
/// @throws boost::system::system_error  `operation_aborted` when canceled
NNI_LAZY [[nodiscard]] awaitable<void> yield(boost::asio::any_io_executor executor);

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/yield_inl.hpp>
#endif
