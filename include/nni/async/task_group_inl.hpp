#pragma once

#include <cassert>
#include <list>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include <nni/async/detail/child.hpp>
#include <nni/async/detail/waiting.hpp>
#include <nni/async/task_group.hpp>

namespace nni::async {

/// Shared by the group and the completions of its children, which may be destroyed in any order.
struct task_group::Core {
  using Children = std::list<detail::Child>;

  explicit Core(boost::asio::any_io_executor given)
      : executor(std::move(given)), context_gone(detail::WaitRegistry::of(executor).gone()) {}

  void cancel() {
    if (std::exchange(cancelled, true)) return;
    // A canceled child completes later, from the queue: the list does not change during this loop.
    for (auto& child : children) child.cancel();
  }

  void finish(Children::iterator child, const std::exception_ptr& end) {
    children.erase(child);
    if (end != nullptr && failure == nullptr && !is_cancellation(end)) {
      failure = end;
      cancel();
    }
    if (children.empty()) idle.post_all();
  }

  boost::asio::any_io_executor executor;
  std::shared_ptr<const bool> context_gone;
  Children children;
  std::exception_ptr failure;
  bool cancelled = false;
  detail::WaitList idle;
};

NNI_INLINE task_group::task_group(boost::asio::any_io_executor executor)
    : core_(std::make_shared<Core>(std::move(executor))) {}

NNI_INLINE task_group::~task_group() {
  // The destructor of a context destroys frames in any order; then children may be left, and none can be canceled.
  if (core_->children.empty() || *core_->context_gone) return;
  assert(core_->children.empty() && "a task_group must be joined before its destruction");
  core_->cancel();
}

NNI_LAZY_BODY bool task_group::spawn(awaitable<void> work) {
  if (core_->cancelled) return false;
  const auto child = core_->children.emplace(core_->children.end());
  child->start(core_->executor, std::move(work), [core = core_, child](const std::exception_ptr& end) {
    core->finish(child, end);
  });
  return true;
}

NNI_INLINE void task_group::cancel() { core_->cancel(); }

NNI_LAZY_BODY awaitable<void> task_group::join() {
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await join_all(throws);
}

NNI_LAZY_BODY awaitable<void> task_group::join_all(bool listens) {
  detail::Interrupt forward;
  forward.call = [](void* core) { static_cast<Core*>(core)->cancel(); };
  forward.object = core_.get();

  // From here on a cancellation is forwarded to the children; it must not end the wait before they have ended.
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  bool interrupted = false;
  for (;;) {
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    interrupted = listens && state.cancelled() != boost::asio::cancellation_type::none;
    if (core_->children.empty()) break;
    // The cancellation may have arrived outside the wait, where it is not forwarded.
    if (interrupted) core_->cancel();
    co_await core_->idle.wait(forward);
  }
  co_await boost::asio::this_coro::throw_if_cancelled(throws);

  core_->cancelled = false;
  const std::exception_ptr failure = std::exchange(core_->failure, nullptr);
  if (failure != nullptr) std::rethrow_exception(failure);
  if (interrupted) detail::throw_cancelled();
}

NNI_INLINE std::size_t task_group::size() const noexcept { return core_->children.size(); }

NNI_INLINE bool task_group::cancelled() const noexcept { return core_->cancelled; }

}  // namespace nni::async
