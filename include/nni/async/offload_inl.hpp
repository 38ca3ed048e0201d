#pragma once

#include <utility>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/offload.hpp>

namespace nni::async::detail {

NNI_INLINE void BlockingCall::execute() noexcept {
  try {
    // Exactly one of this and `on_cancel` leaves the state `queued`.
    State expected = State::queued;
    if (!state_.compare_exchange_strong(expected, State::running))
      throw boost::system::system_error(boost::asio::error::operation_aborted, "offload");
    call();
  } catch (...) {
    fail(std::current_exception());
  }
}

NNI_INLINE void BlockingCall::on_cancel() {
  State expected = State::queued;
  if (state_.compare_exchange_strong(expected, State::abandoned)) return;
  // The hook runs once, even if the caller is canceled repeatedly.
  if (expected == State::running && !std::exchange(interrupted_, true)) interrupt();
}

// A function object without state, because g++ 12 mishandles lambdas in awaiting expressions.
struct InitiateCall {
  template <class Handler>
  void operator()(Handler&& handler, boost::asio::any_io_executor pool, BlockingCall* call) const {
    call->listen(boost::asio::get_associated_cancellation_slot(handler));
    auto home = boost::asio::get_associated_executor(handler);
    boost::asio::post(pool, [handler = std::forward<Handler>(handler), home = std::move(home), call]() mutable {
      call->execute();
      // Moved out of this object: the coroutine must be neither resumed nor destroyed on a thread of the pool.
      boost::asio::post(home, [handler = std::move(handler)]() mutable { std::move(handler)(); });
    });
  }
};

NNI_LAZY_BODY awaitable<void> execute_on(boost::asio::any_io_executor pool, BlockingCall& call) {
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<>&, void()>(
      InitiateCall{}, boost::asio::use_awaitable, std::move(pool), &call);
}

}  // namespace nni::async::detail
