#pragma once

#include <utility>

#include <nni/async/periodic.hpp>
#include <nni/async/race.hpp>
#include <nni/core/error.hpp>

namespace nni::async {

namespace detail {

/// Returns a number in [0, 1) from a counter. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014 (SplitMix64).
NNI_INLINE double next_fraction(std::uint64_t& state) noexcept {
  std::uint64_t bits = (state += 0x9e3779b97f4a7c15ULL);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace detail

NNI_INLINE periodic::periodic(ClockRef clock, PeriodicOptions options) : clock_(clock), options_(options) {
  ProblemList problems;
  if (options_.interval <= Duration::zero()) problems.add("interval", "must be greater than zero");
  if (!(options_.jitter >= 0.0 && options_.jitter <= 1.0)) problems.add("jitter", "must be between 0 and 1");
  problems.throw_if_any();
  woken_ = options_.at_once;
}

NNI_INLINE Duration periodic::shifted_interval() {
  if (options_.jitter == 0.0) return options_.interval;
  const double factor = 1.0 + options_.jitter * (2.0 * detail::next_fraction(options_.seed) - 1.0);
  return std::chrono::duration_cast<Duration>(options_.interval * factor);
}

NNI_INLINE awaitable<void> periodic::next() {
  if (!last_) last_ = clock_.steady_now();
  const SteadyPoint due = *last_ + shifted_interval();
  const bool late = clock_.steady_now() >= due;
  if (!woken_ && !late) {
    auto first = race(clock_.sleep_until(due), wake_.wait());
    co_await std::move(first);
  }
  // After an early or a late round the grid restarts now; otherwise the next point follows from the last, without drift.
  const bool new_grid = std::exchange(woken_, false) || late;
  last_ = new_grid ? clock_.steady_now() : due;
}

NNI_INLINE void periodic::wake() {
  woken_ = true;
  wake_.notify();
}

NNI_INLINE void periodic::set_interval(Duration interval) {
  if (interval <= Duration::zero()) throw config_error("interval", "must be greater than zero");
  options_.interval = interval;
}

}  // namespace nni::async
