#pragma once

#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/outcome.hpp>

namespace nni::async {

namespace detail {

/// Runs the context on this thread until the work has ended.
NNI_LAZY void drive(boost::asio::io_context& context, awaitable<void> work);

}  // namespace detail

/// Runs one awaitable to completion on the calling thread.
///
/// Other work of the context runs meanwhile; unfinished work stays in the context when the awaitable ends.
/// Must not be called from a handler of the same context.
///
/// @param context  not running on any thread
/// @param work     the awaitable to run
/// @returns        its result
/// @throws         any exception of the work or of a handler of the context
template <class T>
T run(boost::asio::io_context& context, awaitable<T> work) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  detail::drive(context, detail::capture(outcome, std::move(work)));
  return outcome->take();
}

/// As above, on a temporary context.
template <class T>
T run(awaitable<T> work) {
  boost::asio::io_context context(1);
  return run(context, std::move(work));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/run_inl.hpp>
#endif
