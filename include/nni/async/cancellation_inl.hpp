#pragma once

#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/channel_error.hpp>
#include <boost/system/system_error.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/async/detail/child.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

NNI_INLINE bool is_cancellation(const boost::system::error_code& code) noexcept {
  return code == boost::asio::error::operation_aborted || code == boost::asio::experimental::error::channel_cancelled ||
         code == boost::system::errc::operation_canceled;
}

NNI_INLINE bool is_cancellation(const std::exception_ptr& failure) noexcept {
  if (failure == nullptr) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return is_cancellation(error.code());
  } catch (...) {
    return false;
  }
}

namespace detail {

/// Owned by the child, so that a context that is destroyed with both of them frees both.
struct ApartState {
  WaitList done;
  bool finished = false;
};

NNI_LAZY_BODY awaitable<void> run_apart(awaitable<void> work) {
  auto executor = co_await boost::asio::this_coro::executor;
  auto shared = std::make_shared<ApartState>();
  spawn(executor, std::move(work), Completion([shared](const std::exception_ptr&) {
          shared->finished = true;
          shared->done.resume_all();
        }));
  // An interrupt that does nothing: the cancellation is recorded in the caller's state but does not reach the work.
  Interrupt deaf;
  deaf.call = [](void*) {};
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  while (!shared->finished) co_await shared->done.wait(deaf);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
}

}  // namespace detail

}  // namespace nni::async
