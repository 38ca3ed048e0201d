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

/// Two children; the first that ends cancels the other, and both are waited for.
///
/// The winner is named in the very step in which its work ends, and the other one hears of it in the same
/// step. An operation that looks for its cancellation before it takes a value (as `mailbox::receive` does) thus
/// never takes one for a race that is over.
class Race {
 public:
  static constexpr std::size_t nobody = 2;

  explicit Race(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  /// Starts a child, unless the race is over.
  NNI_LAZY void start(std::size_t index, awaitable<void> child);

  /// Said by a child whose work has ended.
  ///
  /// @param gave_up  it ended with a cancellation; that is no victory once the whole race was cancelled
  void ended(std::size_t index, bool gave_up);

  /// Suspends until both have ended; cancelling the waiter cancels both.
  ///
  /// @param listens  the caller wants to hear of its own cancellation
  NNI_LAZY awaitable<void> join(bool listens);

  /// Who ended first, or `nobody` when the race was cancelled before.
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

 private:
  /// Tells each child once at most: to hear of it again would disturb its clean-up.
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

/// What a race yields: `index()` tells the winner. `void` becomes `std::monostate`.
template <class A, class B>
using RaceResult = std::variant<detail::Present<A>, detail::Present<B>>;

/// The first of two; the other one is cancelled and waited for.
///
/// When the first is done before it ever suspends, the second is not started. Whatever ends first decides: an
/// exception is thrown at once, it does not wait for the other one to succeed. A value that the loser yields in
/// spite of its cancellation is dropped.
///
/// Cancelling the caller cancels both; a value that one of them yields nevertheless is returned.
///
/// @param first   started first
/// @param second  started second
/// @returns       the winner's index and value
/// @throws        what the winner throws
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
