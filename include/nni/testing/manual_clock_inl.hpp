#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/detail/waiting.hpp>
#include <nni/core/error.hpp>
#include <nni/testing/manual_clock.hpp>

namespace nni::testing {

/// Shared with the sleepers, which a context may destroy after the clock.
struct ManualClock::State {
  // Other threads may read the time.
  std::atomic<Duration::rep> elapsed{0};
  std::map<SteadyPoint, async::detail::WaitList> moments;
  std::size_t sleeping = 0;

  /// A registered sleeper; unregisters itself however its sleep ends.
  struct Sleeper {
    Sleeper(std::shared_ptr<State> owner, SteadyPoint until) : state(std::move(owner)), deadline(until) {
      ++state->sleeping;
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() {
      --state->sleeping;
      const auto moment = state->moments.find(deadline);
      if (moment != state->moments.end() && moment->second.empty()) state->moments.erase(moment);
    }

    std::shared_ptr<State> state;
    SteadyPoint deadline;
  };
};

NNI_INLINE ManualClock::ManualClock(TimePoint start) : start_(start), state_(std::make_shared<State>()) {}

NNI_INLINE ManualClock::~ManualClock() {
  for (auto& [deadline, sleepers] : state_->moments) sleepers.post_all(boost::asio::error::operation_aborted);
}

NNI_INLINE SteadyPoint ManualClock::steady_now() const noexcept {
  return SteadyPoint(Duration(state_->elapsed.load()));
}

NNI_INLINE std::size_t ManualClock::sleepers() const noexcept { return state_->sleeping; }

NNI_INLINE std::optional<SteadyPoint> ManualClock::next_deadline() const {
  if (state_->moments.empty()) return std::nullopt;
  return state_->moments.begin()->first;
}

NNI_INLINE awaitable<void> ManualClock::sleep_until(SteadyPoint deadline) {
  if (deadline <= steady_now()) {
    co_await boost::asio::post(boost::asio::use_awaitable);
    co_return;
  }
  const State::Sleeper sleeper(state_, deadline);
  co_await sleeper.state->moments[deadline].wait();
}

NNI_INLINE void ManualClock::settle() {
  if (context_ == nullptr) throw Error{Errc::internal, "ManualClock: attach a context before advancing the time"};
  do {
    context_->restart();
  } while (context_->poll() > 0);
}

NNI_INLINE void ManualClock::wake(SteadyPoint deadline) {
  state_->elapsed = std::max(state_->elapsed.load(), Duration(deadline.time_since_epoch()).count());
  auto moment = state_->moments.extract(deadline);
  if (!moment.empty()) moment.mapped().post_all();
}

NNI_INLINE void ManualClock::advance(Duration span) {
  if (span < Duration::zero()) throw Error{Errc::internal, "ManualClock: the time cannot go backwards"};
  settle();
  const SteadyPoint target = steady_now() + span;
  for (auto next = next_deadline(); next && *next <= target; next = next_deadline()) {
    wake(*next);
    settle();
  }
  wake(target);
  settle();
}

NNI_INLINE bool ManualClock::advance_to_next() {
  settle();
  const auto next = next_deadline();
  if (!next) return false;
  wake(*next);
  settle();
  return true;
}

NNI_INLINE void ManualClock::drive(awaitable<void> work) {
  settle();
  auto done = std::make_shared<bool>(false);
  boost::asio::co_spawn(*context_, std::move(work), [done](std::exception_ptr) { *done = true; });
  while (!*done) {
    settle();
    if (*done || advance_to_next()) continue;
    context_->restart();
    context_->run_one();
  }
}

}  // namespace nni::testing
