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
/// Other work of the context goes on meanwhile; what is left of it when the awaitable ends stays in the context.
/// Must not be called from inside the same context.
///
/// @param context  nobody else runs it now
/// @param work     what to run
/// @returns        its result
/// @throws         what the work throws, or what a handler of the context throws
template <class T>
T run(boost::asio::io_context& context, awaitable<T> work) {
  auto outcome = std::make_shared<detail::Outcome<T>>();
  detail::drive(context, detail::capture(outcome, std::move(work)));
  return outcome->take();
}

/// As above, on a context that lives for this call only.
template <class T>
T run(awaitable<T> work) {
  boost::asio::io_context context(1);
  return run(context, std::move(work));
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/run_inl.hpp>
#endif
