#pragma once

#include <atomic>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

/// A notification of coroutines of one executor about a change of state.
///
/// It is stateless: a `notify` without waiters has no effect and costs one comparison. Therefore check the state
/// first, in a loop:
/// @code
/// while (queue.empty()) co_await changed.wait();
/// @endcode
/// No change is missed, because nothing else runs between the check and the wait. Use it on one executor only,
/// and destroy it before its context; for other threads use `wakeup`.
class event {
 public:
  /// Suspends until the next `notify`.
  /// @throws boost::system::system_error  `operation_aborted` when canceled, or when the event is destroyed
  NNI_LAZY [[nodiscard]] awaitable<void> wait() { return waiters_.wait(); }

  /// Resumes every coroutine that is waiting now.
  void notify() { waiters_.post_all(); }

  /// Resumes the longest waiting coroutine; returns false if there is none.
  bool notify_one() { return waiters_.post_one(); }

  /// Returns true if no coroutine is waiting.
  [[nodiscard]] bool idle() const noexcept { return waiters_.empty(); }

 private:
  detail::WaitList waiters_;
};

/// A signal from any thread to a coroutine of one executor.
///
/// Signals coalesce: many calls of `notify` before the coroutine runs are one wake-up, and they cost one
/// atomic operation each. For a queue between threads, the producer writes first and notifies second, and the coroutine
/// waits first and reads second; then no element is missed.
/// @code
/// for (;;) {
///   co_await ready.wait();
///   drain(queue);
/// }
/// @endcode
///
/// Call `wait` on the executor only; `notify` from any thread during the lifetime of the object and of the
/// executor's context.
class wakeup {
 public:
  /// @param executor  of the waiting coroutine
  explicit wakeup(boost::asio::any_io_executor executor);
  wakeup(const wakeup&) = delete;
  wakeup& operator=(const wakeup&) = delete;
  ~wakeup();

  /// Resumes the waiter, or lets the next `wait` return at once. Thread-safe.
  void notify();

  /// Suspends until there was a `notify` since the last return; consumes it.
  /// @throws boost::system::system_error  `operation_aborted` when canceled; a signal is then kept
  NNI_LAZY [[nodiscard]] awaitable<void> wait();

  /// Consumes a signal without waiting; returns false if there was none.
  [[nodiscard]] bool consume() noexcept;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/event_inl.hpp>
#endif
