#pragma once

#include <cstdint>
#include <optional>

#include <nni/async/awaitable.hpp>
#include <nni/async/clock.hpp>
#include <nni/async/event.hpp>
#include <nni/core/time.hpp>

namespace nni::async {

/// Settings of `periodic`.
struct PeriodicOptions {
  Duration interval = std::chrono::seconds(1);  ///< from one round to the next, more than zero
  double jitter = 0.0;                          ///< share of the interval, 0 to 1, by which rounds are moved at random
  bool at_once = false;                         ///< the first round comes without waiting
  std::uint64_t seed = 0;                       ///< of the random shifts
};

/// The beat of a loop: rounds at an interval, and earlier when somebody asks.
///
/// Rounds keep to a grid, so the time that the loop itself takes does not add up. A loop that took longer than
/// the interval gets its next round at once and starts a new grid there; missed rounds are not made up for.
/// @code
/// async::periodic beat(context.clock(), options);
/// for (;;) {
///   co_await beat.next();
///   co_await poll();
/// }
/// @endcode
class periodic {
 public:
  /// @param clock    measures the interval
  /// @param options  interval and jitter
  /// @throws nni::ConfigError  when an option is out of range
  periodic(ClockRef clock, PeriodicOptions options);

  /// Suspends until the next round.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled
  [[nodiscard]] awaitable<void> next();

  /// Starts a round now, or at the next `next`; the grid starts anew there. On the executor.
  void wake();

  /// Changes the interval from the next round on.
  /// @param interval  more than zero
  void set_interval(Duration interval);

 private:
  Duration shifted_interval();

  ClockRef clock_;
  PeriodicOptions options_;
  std::optional<SteadyPoint> last_;
  bool woken_ = false;
  event wake_;
};

}  // namespace nni::async

#if NNI_HEADER_ONLY
#include <nni/async/periodic_inl.hpp>
#endif
