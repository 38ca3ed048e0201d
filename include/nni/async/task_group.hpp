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

/// Children that run side by side on one executor and never outlive `join`.
///
/// The first child that fails cancels its siblings, and `join` throws its exception. A child that ends with a
/// cancellation ends quietly. Every spawned child is joined, also on the way out: use `with_task_group`, or let
/// nothing that may throw stand between `spawn` and `join`. A group that dies with children in it is a defect
/// of the program (asserted); it cancels them and lets go.
class task_group {
 public:
  /// @param executor  where the children run
  explicit task_group(boost::asio::any_io_executor executor);

  /// @param context  gives the executor
  explicit task_group(Context& context) : task_group(context.executor()) {}

  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;
  ~task_group();

  /// Starts a child; called on the executor, it runs up to its first suspension before this returns.
  ///
  /// @param work  dropped without being started when the group is cancelled
  /// @returns     false when it was dropped
  NNI_LAZY bool spawn(awaitable<void> work);

  /// Cancels the children, once; the group takes no more until it was joined.
  void cancel();

  /// Suspends until no child is left, then the group can be used again.
  ///
  /// Cancelling the joiner cancels the children, waits for them, and then ends with `operation_aborted`.
  ///
  /// @throws  the exception of the child that failed first
  NNI_LAZY [[nodiscard]] awaitable<void> join();

  /// Children that have not ended.
  [[nodiscard]] std::size_t size() const noexcept;

  /// True when no child is running.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// True from `cancel`, or the first failure, to the end of `join`.
  [[nodiscard]] bool cancelled() const noexcept;

 private:
  template <class Body>
  friend awaitable<void> with_task_group(Body body);

  /// @param listens  the caller wants to hear of its own cancellation
  NNI_LAZY awaitable<void> join_all(bool listens);

  struct Core;
  std::shared_ptr<Core> core_;
};

/// Runs a body as the first child of a group of its own, and joins the group whatever becomes of it.
///
/// The body and the children that it spawns are equals: the first that fails cancels the rest.
/// @code
/// auto all = async::with_task_group([this](async::task_group& group) { return run_loops(group); });
/// co_await std::move(all);
/// @endcode
///
/// @param body  given the group; returns `awaitable<void>`
/// @throws      the exception of whoever failed first; `operation_aborted` when cancelled
template <class Body>
[[nodiscard]] awaitable<void> with_task_group(Body body) {
  auto executor = co_await boost::asio::this_coro::executor;
  // Between the first spawn and the end of the join nothing may throw.
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
