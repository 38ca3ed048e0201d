#pragma once

#include <concepts>
#include <type_traits>

#include <nni/async/awaitable.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// The clocks of this machine.
class SystemClock {
 public:
  /// Returns the wall time, for records.
  [[nodiscard]] TimePoint now() const noexcept;

  /// Returns the monotonic time, for limits and waits.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a point in time; for one in the past it yields to other work once.
  /// @throws boost::system::system_error  `operation_aborted` when canceled
  NNI_LAZY [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);
};

/// A type-erased reference to a clock: two pointers, cheap to copy.
///
/// It models the concept `Clock` itself. Services read time only through it, so that a test can control time
/// (nni/testing/manual_clock.hpp) and no service is a template on its clock.
class ClockRef {
 public:
  /// Refers to the clocks of this machine.
  ClockRef() noexcept;

  /// @param clock  models `Clock` and outlives every copy of this reference
  template <class C>
    requires(!std::same_as<C, ClockRef> &&
             requires(C& c, const C& cc, SteadyPoint deadline) {
               cc.now();
               cc.steady_now();
               { c.sleep_until(deadline) } -> std::same_as<awaitable<void>>;
             })
  ClockRef(C& clock) noexcept : clock_(&clock), table_(&table_of<C>) {}

  /// Returns the wall time, for records.
  [[nodiscard]] TimePoint now() const noexcept { return table_->now(clock_); }

  /// Returns the monotonic time, for limits and waits.
  [[nodiscard]] SteadyPoint steady_now() const noexcept { return table_->steady_now(clock_); }

  /// Suspends until a point in time.
  /// @throws boost::system::system_error  `operation_aborted` when canceled
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline) const {
    return table_->sleep_until(clock_, deadline);
  }

  /// Returns true for the clocks of this machine, whose waits the executor's own timers can serve.
  [[nodiscard]] bool is_system() const noexcept { return table_ == &table_of<SystemClock>; }

  /// Suspends for a time `span` from this call.
  [[nodiscard]] awaitable<void> sleep_for(Duration span) const { return sleep_until(steady_now() + span); }

 private:
  struct Table {
    TimePoint (*now)(void*) noexcept;
    SteadyPoint (*steady_now)(void*) noexcept;
    awaitable<void> (*sleep_until)(void*, SteadyPoint);
  };

  template <class C>
  static constexpr Table table_of{
      [](void* clock) noexcept { return static_cast<const C*>(clock)->now(); },
      [](void* clock) noexcept { return static_cast<const C*>(clock)->steady_now(); },
      [](void* clock, SteadyPoint deadline) { return static_cast<C*>(clock)->sleep_until(deadline); }};

  void* clock_;
  const Table* table_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/async/clock_inl.hpp>
#endif
