#pragma once

#include <atomic>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

/// Tells coroutines of one executor that something has changed.
///
/// It keeps nothing: a `notify` that finds nobody waiting is forgotten and costs one comparison. So the state
/// that it speaks of is looked at first, in a loop:
/// @code
/// while (queue.empty()) co_await changed.wait();
/// @endcode
/// That misses nothing, because nothing else runs between the look and the wait. Use it on one executor only,
/// and let it die before its context; for other threads there is `wakeup`.
class event {
 public:
  /// Suspends until the next `notify`.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled, or when the event dies
  NNI_LAZY [[nodiscard]] awaitable<void> wait() { return waiters_.wait(); }

  /// Sends on everybody who waits now.
  void notify() { waiters_.post_all(); }

  /// Sends on the one who waits longest; false when nobody waits.
  bool notify_one() { return waiters_.post_one(); }

  /// True when nobody waits.
  [[nodiscard]] bool idle() const noexcept { return waiters_.empty(); }

 private:
  detail::WaitList waiters_;
};

/// Lets any thread wake a coroutine of one executor.
///
/// Signals coalesce: many calls of `notify` before the coroutine looks are one wake-up, and they cost one
/// atomic operation each. A queue between threads is written first and signalled second, and the coroutine
/// waits first and reads second; then no element is left behind.
/// @code
/// for (;;) {
///   co_await ready.wait();
///   drain(queue);
/// }
/// @endcode
///
/// `wait` belongs to the executor; `notify` may be called from any thread as long as the object and the
/// executor's context live.
class wakeup {
 public:
  /// @param executor  where `wait` is called
  explicit wakeup(boost::asio::any_io_executor executor);
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;
  ~wakeup();

  /// Wakes who waits, or lets the next `wait` return at once. Any thread.
  void notify();

  /// Suspends until there was a `notify` since the last return; consumes it.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled; a signal is then kept
  NNI_LAZY [[nodiscard]] awaitable<void> wait();

  /// Consumes a signal without waiting; false when there was none.
  [[nodiscard]] bool consume() noexcept;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/event_inl.hpp>
#endif
