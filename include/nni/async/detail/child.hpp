#pragma once

#include <exception>
#include <functional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <nni/async/awaitable.hpp>

namespace nni::async::detail {

/// A completion handler that receives the exception of a spawned coroutine, with the slot that cancels the coroutine.
///
/// One type for all uses, so that Asio's templates behind `co_spawn` are compiled once. Asio's own binder could provide the
/// slot, but it posts a cancellation to the executor's queue, where resumed waiters could overtake it.
class Completion {
 public:
  using cancellation_slot_type = boost::asio::cancellation_slot;
  using Function = std::function<void(const std::exception_ptr&)>;

  explicit Completion(Function function) : function_(std::move(function)) {}

  /// @param slot     cancels the coroutine
  /// @param failure  passed to the function in place of Asio's exception; read and cleared at the call
  Completion(Function function, boost::asio::cancellation_slot slot, std::exception_ptr& failure)
      : slot_(slot), function_(std::move(function)), failure_(&failure) {}

  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

  void operator()(const std::exception_ptr& thrown) {
    const std::exception_ptr failure = failure_ ? std::exchange(*failure_, nullptr) : thrown;
    function_(failure);
  }

 private:
  boost::asio::cancellation_slot slot_;
  Function function_;
  std::exception_ptr* failure_ = nullptr;
};

/// Calls `boost::asio::co_spawn`; compiled once.
NNI_LAZY void spawn(const boost::asio::any_io_executor& executor, awaitable<void> work, Completion completion);

/// A spawned coroutine that can be canceled at any time. Not movable; it must live until `on_end` is called.
///
/// Asio 1.26 throws out of `co_spawn`, or out of the context's `run`, and never calls the completion handler,
/// when a coroutine is canceled before it has started or before its first suspension. This class holds back
/// cancellations until the coroutine has started, and shields its end from them.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts the work; if called on the executor, it runs up to its first suspension.
  ///
  /// @param on_end  called on the executor, never from inside `start`, with the exception of the work; may destroy
  ///                this object
  NNI_LAZY void start(const boost::asio::any_io_executor& executor, awaitable<void> work, Completion::Function on_end);

  /// Cancels the work; its completion follows later, from the executor's queue.
  void cancel() {
    cancelled_ = true;
    if (started_) signal_.emit(boost::asio::cancellation_type::terminal);
  }

 private:
  NNI_LAZY awaitable<void> guarded(awaitable<void> work);

  boost::asio::cancellation_signal signal_;
  std::exception_ptr failure_;
  bool started_ = false;
  bool cancelled_ = false;
};

}  // namespace nni::async::detail

#if NNI_HEADER_ONLY
#include <nni/async/detail/child_inl.hpp>
#endif
