#pragma once

#include <exception>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <nni/async/awaitable.hpp>

namespace nni::async::detail {

/// A spawned coroutine that can be cancelled at any time. It must not move, and it lives until `on_end` is called.
///
/// Asio 1.26 throws out of `co_spawn`, or out of the context's `run`, and never calls the completion handler,
/// when a coroutine is cancelled before it has started or while it has not suspended yet. This class keeps
/// cancellations away from a coroutine that has not started, and lets its end pass.
class Child {
 public:
  Child() = default;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Starts the work; on the executor itself it runs up to its first suspension.
  ///
  /// @param on_end  called on the executor, never from inside `start`, with what the work has thrown; may destroy
  ///                this object
  template <class OnEnd>
  void start(const boost::asio::any_io_executor& executor, awaitable<void> work, OnEnd on_end) {
    auto ended = [this, on_end = std::move(on_end)](const std::exception_ptr&) mutable {
      const std::exception_ptr failure = std::move(failure_);
      on_end(failure);
    };
    boost::asio::co_spawn(
        executor, guarded(std::move(work)), Completion<decltype(ended)>(signal_.slot(), std::move(ended)));
  }

  /// Cancels the work; its end comes later, from the executor's queue.
  void cancel() {
    cancelled_ = true;
    if (started_) signal_.emit(boost::asio::cancellation_type::terminal);
  }

 private:
  /// Connects a completion to a slot. Asio's own binder makes it hand a cancellation to the executor's queue,
  /// where what was woken meanwhile would overtake it.
  template <class F>
  class Completion {
   public:
    using cancellation_slot_type = boost::asio::cancellation_slot;

    Completion(boost::asio::cancellation_slot slot, F function) : slot_(slot), function_(std::move(function)) {}

    [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

    void operator()(const std::exception_ptr& failure) { function_(failure); }

   private:
    boost::asio::cancellation_slot slot_;
    F function_;
  };

  awaitable<void> guarded(awaitable<void> work);

  boost::asio::cancellation_signal signal_;
  std::exception_ptr failure_;
  bool started_ = false;
  bool cancelled_ = false;
};

}  // namespace nni::async::detail

#if NNI_HEADER_ONLY
#include <nni/async/impl/child.ipp>
#endif
