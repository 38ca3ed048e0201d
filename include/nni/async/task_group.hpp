#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/this_coro.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/cancellation.hpp>
#include <nni/async/context.hpp>

namespace nni::async {

/// A group of concurrent child coroutines on one executor that never outlive `join`.
///
/// The first child that fails cancels its siblings, and `join` throws its exception. A cancellation of a
/// child is no failure. Every spawned child must be joined, also after an exception: use `with_task_group`, or
/// avoid throwing code between `spawn` and `join`. Destroying a group with live children is a bug
/// of the program (asserted); the destructor cancels and detaches them.
class task_group {
 public:
  explicit task_group(boost::asio::any_io_executor executor);

  explicit task_group(Context& context) : task_group(context.executor()) {}

  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  ~task_group();

  /// Starts a child; if called on the executor, the child runs up to its first suspension before this returns.
  ///
  /// @param work  dropped without being started if the group is canceled
  /// @returns     false if it was dropped
  NNI_LAZY bool spawn(awaitable<void> work);

  /// Cancels the children, once; the group accepts no more until it is joined.
  void cancel();

  /// Suspends until all children have ended; the group can be reused then.
  ///
  /// Canceling the joiner cancels the children, waits for them, and then ends with `operation_aborted`.
  ///
  /// @throws  the exception of the child that failed first
  NNI_LAZY [[nodiscard]] awaitable<void> join();

  /// Returns the number of live children.
  [[nodiscard]] std::size_t size() const noexcept;

  /// Returns true if there is no live child.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Returns true from `cancel`, or the first failure, to the end of `join`.
  [[nodiscard]] bool cancelled() const noexcept;

 private:
  template <class Body>
  friend awaitable<void> with_task_group(Body body);

  /// @param listens  a cancellation of the caller is forwarded
  NNI_LAZY awaitable<void> join_all(bool listens);

  struct Core;
  std::shared_ptr<Core> core_;
};

/// Runs a body as the first child of a new group, and joins the group whatever the outcome.
///
/// The body and the children that it spawns are equals: the first that fails cancels the rest.
/// @code
/// auto all = async::with_task_group([this](async::task_group& group) { return run_loops(group); });
/// co_await std::move(all);
/// @endcode
///
/// @param body  called with the group; returns `awaitable<void>`
/// @throws      the first exception of body or children; `operation_aborted` when canceled
template <class Body>
[[nodiscard]] awaitable<void> with_task_group(Body body) {
  auto executor = co_await boost::asio::this_coro::executor;
  // No exception may leave between the first spawn and the end of the join.
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);

  task_group group(executor);
  group.spawn(body(group));
  auto outcome = std::make_shared<detail::Outcome<void>>();
  auto joined = detail::capture(outcome, group.join_all(throws));
  co_await std::move(joined);

  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  outcome->take();
}

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/task_group_inl.hpp>
#endif
