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

/// The error of a send into a closed mailbox.
[[noreturn]] void throw_mailbox_closed();

/// The error of a mailbox that could never take anything.
[[noreturn]] void throw_no_capacity();

}  // namespace detail

/// A bounded queue between coroutines of one executor.
///
/// A full mailbox makes senders wait, an empty one receivers. After `close` receivers get what is left, then
/// nothing. A cancelled receiver takes no value with it, and neither does one that loses a race. A receive that
/// finds a value does not suspend.
/// @code
/// for (;;) {
///   std::optional<JobEvent> event = co_await box.receive();
///   if (!event) break;  // closed, and drained
///   handle(*event);
/// }
/// @endcode
///
/// @tparam T  movable, need not be copyable; safe to cross coroutines on g++ 12
template <class T>
class mailbox {
  static_assert(CoroutineSafe<T>, "declare a default constructor: an aggregate must not cross coroutines");

 public:
  /// @param capacity  values that may wait, at least 1
  explicit mailbox(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) detail::throw_no_capacity();
  }

  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  /// Puts a value in; waits while the mailbox is full.
  /// @throws nni::Error  `Errc::closed` when closed, also while waiting; the value is lost then
  [[nodiscard]] awaitable<void> send(T value);

  /// Puts a value in if there is room and the mailbox is open; otherwise the value is not touched.
  bool try_send(T&& value) {
    if (closed_ || full()) return false;
    values_.push_back(std::move(value));
    receivers_.post_one();
    return true;
  }

  /// Takes the oldest value; waits while there is none. Nothing once the mailbox is closed and drained.
  [[nodiscard]] awaitable<std::optional<T>> receive();

  /// Takes the oldest value if there is one.
  [[nodiscard]] std::optional<T> try_receive() {
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    if (!closed_) senders_.post_one();
    return value;
  }

  /// Refuses further values, fails senders that wait, and lets receivers drain.
  void close() {
    closed_ = true;
    receivers_.post_all();
    senders_.post_all();
  }

  /// True after `close`.
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  /// True when no value waits.
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  /// True when a sender would have to wait.
  [[nodiscard]] bool full() const noexcept { return values_.size() >= capacity_; }
  /// Values that wait.
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  /// Values that may wait.
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
      // Woken, then cancelled before it could run: the room is for the next one.
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
      // Woken, then cancelled before it could run: the value is for the next one.
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
