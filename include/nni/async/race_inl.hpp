#pragma once

#include <utility>

#include <nni/async/race.hpp>

namespace nni::async::detail {

NNI_LAZY_BODY void Race::start(std::size_t index, awaitable<void> child) {
  // The first child may have ended inside its own start.
  if (winner_ != nobody || cancelled_) return;
  ++running_;
  children_[index].start(executor_, std::move(child), [this](const std::exception_ptr&) {
    --running_;
    if (running_ == 0) idle_.resume_all();
  });
}

NNI_INLINE void Race::ended(std::size_t index, bool gave_up) {
  if (winner_ != nobody || (cancelled_ && gave_up)) return;
  // The loser is canceled in this very step, before it can take a value for a finished race.
  winner_ = index;
  if (!cancelled_) children_[1 - index].cancel();
}

NNI_INLINE void Race::cancel_all() {
  if (std::exchange(cancelled_, true) || winner_ != nobody) return;
  for (auto& child : children_) child.cancel();
}

NNI_LAZY_BODY awaitable<void> Race::join(bool listens) {
  Interrupt forward;
  forward.call = [](void* race) { static_cast<Race*>(race)->cancel_all(); };
  forward.object = this;
  // A child may have canceled this very coroutine before it started to wait.
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  if (listens && state.cancelled() != boost::asio::cancellation_type::none) cancel_all();
  while (running_ > 0) co_await idle_.wait(forward);
}

}  // namespace nni::async::detail
