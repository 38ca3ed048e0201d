#pragma once

#include <utility>

#include <boost/asio/post.hpp>

#include <nni/async/event.hpp>

namespace nni::async {

struct wakeup::Core {
  static constexpr unsigned signalled = 1;  // a notification that was not consumed yet
  static constexpr unsigned waiting = 2;    // a coroutine is suspended, so the first signal has to post
  static constexpr unsigned posted = 4;     // a call of `deliver` is queued

  explicit Core(boost::asio::any_io_executor given) : executor(std::move(given)) {}

  void deliver() {
    const unsigned before = state.fetch_and(~posted, std::memory_order_acq_rel);
    if (waiters.empty()) {
      // The waiter was canceled; the signal stays for the next one.
      state.fetch_and(~waiting, std::memory_order_acq_rel);
    } else if ((before & signalled) != 0) {
      state.fetch_and(~(signalled | waiting), std::memory_order_acq_rel);
      waiters.resume_all();
    }
  }

  boost::asio::any_io_executor executor;
  std::atomic<unsigned> state{0};
  detail::WaitList waiters;
};

NNI_INLINE wakeup::wakeup(boost::asio::any_io_executor executor) : core_(std::make_shared<Core>(std::move(executor))) {}

NNI_INLINE wakeup::~wakeup() {
  // A queued call of `deliver` may keep the core alive, but no coroutine may keep waiting in it.
  core_->waiters.post_all(boost::asio::error::operation_aborted);
}

NNI_INLINE void wakeup::notify() {
  // The read-modify-write orders the caller's writes before the reads of the coroutine that clears the bit, so the
  // early return loses no signal.
  const unsigned before = core_->state.fetch_or(Core::signalled, std::memory_order_acq_rel);
  if ((before & (Core::signalled | Core::waiting)) != Core::waiting) return;
  if ((core_->state.fetch_or(Core::posted, std::memory_order_acq_rel) & Core::posted) != 0) return;
  boost::asio::post(core_->executor, [core = core_] { core->deliver(); });
}

NNI_INLINE bool wakeup::consume() noexcept {
  return (core_->state.fetch_and(~Core::signalled, std::memory_order_acq_rel) & Core::signalled) != 0;
}

NNI_LAZY_BODY awaitable<void> wakeup::wait() {
  // One atomic operation registers the waiter and checks for a signal, so no signal can fall between the two.
  const unsigned before = core_->state.fetch_or(Core::waiting, std::memory_order_acq_rel);
  if ((before & Core::signalled) != 0) {
    unsigned consumed = Core::signalled;
    if (core_->waiters.empty()) consumed |= Core::waiting;
    core_->state.fetch_and(~consumed, std::memory_order_acq_rel);
    co_return;
  }
  co_await core_->waiters.wait();
}

}  // namespace nni::async
