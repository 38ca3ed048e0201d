#pragma once

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/detail/child.hpp>

namespace nni::async::detail {

NNI_LAZY_BODY void spawn(const boost::asio::any_io_executor& executor, awaitable<void> work, Completion completion) {
  boost::asio::co_spawn(executor, std::move(work), std::move(completion));
}

NNI_LAZY_BODY void Child::start(const boost::asio::any_io_executor& executor, awaitable<void> work,
                                Completion::Function on_end) {
  spawn(executor, guarded(std::move(work)), Completion(std::move(on_end), signal_.slot(), failure_));
}

NNI_LAZY_BODY awaitable<void> Child::guarded(awaitable<void> work) {
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
  // Asio awaits internally before it calls the completion, and a cancellation must not throw out of that.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
}

}  // namespace nni::async::detail
