#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/this_coro.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

namespace detail {

/// Throws the error of a send into a closed mailbox.
[[noreturn]] void throw_mailbox_closed();

/// Throws the error of a mailbox without capacity.
[[noreturn]] void throw_no_capacity();

}  // namespace detail

/// A bounded queue between coroutines of one executor.
///
/// Back-pressure: senders wait while it is full, receivers while it is empty. After `close` receivers get the
/// remaining values, then nothing. A canceled receiver takes no value, nor does one that loses a race. A receive
/// does not suspend if there is a value.
/// @code
/// for (;;) {
///   std::optional<JobEvent> event = co_await box.receive();
///   if (!event) break;  // closed, and drained
///   handle(*event);
/// }
/// @endcode
///
/// @tparam T  movable, not necessarily copyable; `CoroutineSafe`
template <class T>
class mailbox {
  static_assert(CoroutineSafe<T>, "declare a default constructor: an aggregate must not cross coroutines");

 public:
  /// @param capacity  maximum number of queued values, >= 1
  explicit mailbox(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) detail::throw_no_capacity();
  }

  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// Appends a value; suspends while the mailbox is full.
  /// @throws nni::Error  `Errc::closed` if the mailbox is or becomes closed; the value is dropped
  [[nodiscard]] awaitable<void> send(T value);

  /// Appends a value if the mailbox is open and not full; otherwise leaves the value unchanged.
  bool try_send(T&& value) {
    if (closed_ || full()) return false;
    values_.push_back(std::move(value));
    receivers_.post_one();
    return true;
  }

  /// Removes and returns the oldest value; suspends while there is none. Nothing once the mailbox is closed and drained.
  [[nodiscard]] awaitable<std::optional<T>> receive();

  /// Removes and returns the oldest value if there is one.
  [[nodiscard]] std::optional<T> try_receive() {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    if (!closed_) senders_.post_one();
    return value;
  }

  /// Rejects further values, fails waiting senders, and lets receivers drain.
  void close() {
    closed_ = true;
    receivers_.post_all();
    senders_.post_all();
  }

  /// Returns true after `close`.
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// Returns true if no value is queued.
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  /// Returns true if a sender would have to wait.
  [[nodiscard]] bool full() const noexcept { return values_.size() >= capacity_; }
  /// Returns the number of queued values.
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  /// Returns the maximum number of queued values.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::size_t capacity_;
  bool closed_ = false;
  std::deque<T> values_;
  detail::WaitList receivers_;
  detail::WaitList senders_;
};

template <class T>
awaitable<void> mailbox<T>::send(T value) {
  while (!closed_ && full()) {
    co_await senders_.wait();
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
    if (throws && state.cancelled() != boost::asio::cancellation_type::none) {
      // Resumed, then canceled before it could run: another sender gets the slot.
      if (!full()) senders_.post_one();
      detail::throw_cancelled();
    }
  }
  if (closed_) detail::throw_mailbox_closed();
  values_.push_back(std::move(value));
  receivers_.post_one();
}

template <class T>
awaitable<std::optional<T>> mailbox<T>::receive() {
  while (values_.empty() && !closed_) {
    co_await receivers_.wait();
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
    if (throws && state.cancelled() != boost::asio::cancellation_type::none) {
      // Resumed, then canceled before it could run: another receiver gets the value.
      if (!empty()) receivers_.post_one();
      detail::throw_cancelled();
    }
  }
  co_return try_receive();
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/mailbox_inl.hpp>
#endif
