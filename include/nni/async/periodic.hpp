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
  Duration interval = std::chrono::seconds(1);  ///< between two rounds, > 0
  double jitter = 0.0;                          ///< random shift of rounds as a fraction of the interval, 0 to 1
  bool at_once = false;                         ///< start the first round without waiting
  std::uint64_t seed = 0;                       ///< seed of the random shifts
};

/// A timer for a periodic loop: rounds at an interval, or earlier on request.
///
/// Rounds keep to a grid, so the run time of the loop body does not accumulate. A body that took longer than
/// the interval gets its next round at once and starts a new grid there; missed rounds are skipped.
/// @code
/// async::periodic beat(context.clock(), options);
/// for (;;) {
///   co_await beat.next();
///   co_await poll();
/// }
/// @endcode
class periodic {
 public:
  /// @throws nni::ConfigError  if an option is out of range
  periodic(ClockRef clock, PeriodicOptions options);

  /// Suspends until the next round.
  /// @throws boost::system::system_error  `operation_aborted` when canceled
  [[nodiscard]] awaitable<void> next();

  /// Starts a round now, or at the next `next`; the grid restarts there. On the executor.
  void wake();

  /// Changes the interval from the next round on.
  /// @param interval  > 0
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
