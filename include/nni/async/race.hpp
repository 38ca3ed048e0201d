#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/this_coro.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/cancellation.hpp>
#include <nni/async/detail/child.hpp>
#include <nni/async/detail/outcome.hpp>
#include <nni/async/detail/waiting.hpp>

namespace nni::async {

namespace detail {

/// Two children of which the first to end cancels the other; both are waited for.
///
/// The winner is determined in the very step in which its work ends, and the other one is canceled in the same
/// step. An operation that checks for cancellation before it takes a value (as `mailbox::receive` does) thus
/// never takes one for a finished race.
class Race {
 public:
  static constexpr std::size_t nobody = 2;

  explicit Race(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  /// Starts a child, unless the race is over.
  NNI_LAZY void start(std::size_t index, awaitable<void> child);

  /// Records the end of a child's work.
  ///
  /// @param gave_up  it ended with a cancellation, which does not win once the whole race was canceled
  void ended(std::size_t index, bool gave_up);

  /// Suspends until both have ended; cancelling the waiter cancels both.
  ///
  /// @param listens  a cancellation of the caller is forwarded
  NNI_LAZY awaitable<void> join(bool listens);

  /// Returns the index of the winner, or `nobody` if the race was canceled before.
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

 private:
  /// Cancels each child at most once: a second cancellation would disturb its clean-up.
  void cancel_all();

  boost::asio::any_io_executor executor_;
  std::array<Child, 2> children_;
  std::size_t running_ = 0;
  std::size_t winner_ = nobody;
  bool cancelled_ = false;
  WaitList idle_;
};

template <class T>
awaitable<void> racer(Race& race, std::size_t index, Outcome<T>& outcome, awaitable<T> work) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      outcome.set_value();
    } else {
      T value = co_await std::move(work);
      outcome.set_value(std::move(value));
    }
  } catch (...) {
    outcome.set_failure(std::current_exception());
  }
  race.ended(index, is_cancellation(outcome.failure()));
}

template <class T>
using Present = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <std::size_t I, class Result, class T>
Result winning(Outcome<T>& outcome) {
  if constexpr (std::is_void_v<T>) {
    outcome.take();
    return Result(std::in_place_index<I>);
  } else {
    return Result(std::in_place_index<I>, outcome.take());
  }
}

}  // namespace detail

/// The result of a race: `index()` is the winner. `void` becomes `std::monostate`.
template <class A, class B>
using RaceResult = std::variant<detail::Present<A>, detail::Present<B>>;

/// Returns the result of the first of two operations to end; cancels the other one and waits for it.
///
/// If `first` ends without suspending, `second` is not started. An exception decides the race like a result; it
/// does not wait for the other one to succeed. A result of the loser despite its
/// cancellation is dropped.
///
/// Canceling the caller cancels both; a result despite the cancellation is returned.
///
/// @param first   started first
/// @param second  started second
/// @returns       the winner's index and value
/// @throws        any exception of the winner
template <class A, class B>
[[nodiscard]] awaitable<RaceResult<A, B>> race(awaitable<A> first, awaitable<B> second) {
  auto executor = co_await boost::asio::this_coro::executor;
  detail::Race both(executor);
  detail::Outcome<A> left;
  detail::Outcome<B> right;

  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  both.start(0, detail::racer(both, 0, left, std::move(first)));
  both.start(1, detail::racer(both, 1, right, std::move(second)));
  co_await both.join(throws);
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  using Result = RaceResult<A, B>;
  if (both.winner() == 0) co_return detail::winning<0, Result>(left);
  if (both.winner() == 1) co_return detail::winning<1, Result>(right);
  detail::throw_cancelled();
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/race_inl.hpp>
#endif
