#pragma once

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/child.hpp>

namespace nni::async::detail {

NNI_INLINE awaitable<void> Child::guarded(awaitable<void> work) {
  started_ = true;
  if (cancelled_) {
    failure_ = std::make_exception_ptr(boost::system::system_error(boost::asio::error::operation_aborted));
    co_return;
  }
  try {
    co_await std::move(work);
  } catch (...) {
    failure_ = std::current_exception();
  }
  // What Asio awaits after this, before it calls the completion, must not throw.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
}

}  // namespace nni::async::detail
