#pragma once

/// @file
/// A coroutine started beside a test, and small pieces of work.

#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/cancellation.hpp>
#include <nni/async/detail/child.hpp>
#include <nni/async/event.hpp>
#include <nni/core/error.hpp>

namespace nni_test {

/// A coroutine on a context, which the test can look at and cancel.
class Started {
 public:
  Started(boost::asio::io_context& context, nni::awaitable<void> work) : state_(std::make_shared<State>()) {
    const auto ended = [state = state_](const std::exception_ptr& failure) {
      state->done = true;
      state->failure = failure;
    };
    state_->work.start(context.get_executor(), std::move(work), ended);
  }

  void cancel() { state_->work.cancel(); }

  /// It has ended, in whatever way.
  [[nodiscard]] bool done() const { return state_->done; }

  /// It has ended without an exception.
  [[nodiscard]] bool succeeded() const { return state_->done && state_->failure == nullptr; }

  /// It has ended with a cancellation.
  [[nodiscard]] bool cancelled() const { return state_->done && nni::async::is_cancellation(state_->failure); }

  /// Text of the exception that it has ended with.
  [[nodiscard]] std::string failure() const { return nni::describe(state_->failure); }

 private:
  struct State {
    nni::async::detail::Child work;
    std::exception_ptr failure;
    bool done = false;
  };
  std::shared_ptr<State> state_;
};

/// Runs a context until nothing is ready.
inline void settle(boost::asio::io_context& context) {
  do {
    context.restart();
  } while (context.poll() > 0);
}

/// Lets everything else that is ready go first.
inline nni::awaitable<void> hop() { co_await boost::asio::post(boost::asio::use_awaitable); }

inline nni::awaitable<void> wait_for(nni::async::event& event) { co_await event.wait(); }

/// Waits, then writes a word.
inline nni::awaitable<void> wait_then_write(
    nni::async::event& event, std::vector<std::string>& words, std::string word) {
  co_await event.wait();
  words.push_back(std::move(word));
}

/// Waits, then fails.
inline nni::awaitable<void> wait_then_fail(nni::async::event& event, std::string message) {
  co_await event.wait();
  throw nni::Error(nni::Errc::internal, std::move(message));
}

/// Stores what an awaitable yields.
template <class T>
nni::awaitable<void> store(T& target, nni::awaitable<T> work) {
  target = co_await std::move(work);
}

/// Counts its living objects.
class Counted {
 public:
  explicit Counted(int& living) : living_(&living) { ++*living_; }
  Counted(const Counted& other) : living_(other.living_) { ++*living_; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*living_; }

 private:
  int* living_;
};

}  // namespace nni_test
