#pragma once

#include <concepts>

#include <nni/concepts/common.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// A source of time.
///
/// Everything that waits or measures takes time from a clock, so that a test can hold it still.
///
/// A model promises:
///  1. `now` is wall time: fit for records, may step, never used for limits;
///  2. `steady_now` never goes back, and it advances as `sleep_until` does;
///  3. `sleep_until` does not return before `steady_now() >= deadline`, and returns for a deadline in the past;
///  4. sleepers with different deadlines wake in the order of their deadlines;
///  5. a cancelled sleeper ends with `operation_aborted` and leaves nothing behind;
///  6. all members are called on one executor; `now` and `steady_now` may be called from any thread.
///
/// @tparam C  clock type
/// @see nni::SystemClock, nni::ClockRef, nni::testing::ManualClock
template <class C>
concept Clock = requires(C& c, const C& cc, SteadyPoint deadline) {
  { cc.now() } noexcept -> std::same_as<TimePoint>;
  { cc.steady_now() } noexcept -> std::same_as<SteadyPoint>;
  { c.sleep_until(deadline) } -> AwaitableOf<void>;
};

}  // namespace nni
