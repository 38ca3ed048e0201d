#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/detail/outcome.hpp>
#include <nni/core/time.hpp>

namespace nni::testing {

/// A clock that a test advances manually; models `Clock`.
///
/// Call `advance` or `run` from outside of the sleepers' context. Work on other
/// threads (`async::offload`) does not delay the time; a test that needs both waits for that work first.
/// @code
/// ManualClock clock;
/// Runtime runtime(RuntimeOptions{.clock = clock});
/// clock.attach(runtime.io());
/// clock.run(sleep_an_hour(runtime.context()));  // returns at once
/// @endcode
class ManualClock {
 public:
  /// @param start  initial wall time
  explicit ManualClock(TimePoint start = from_epoch_ms(1'700'000'000'000));

  /// @param context  of the sleepers
  /// @param start    initial wall time
  explicit ManualClock(boost::asio::io_context& context, TimePoint start = from_epoch_ms(1'700'000'000'000))
      : ManualClock(start) {
    attach(context);
  }

  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;
  ~ManualClock();

  /// Sets the context of the sleepers; required before the first advance, not for sleeping.
  void attach(boost::asio::io_context& context) noexcept { context_ = &context; }

  /// Returns the wall time, which advances with the steady time.
  [[nodiscard]] TimePoint now() const noexcept {
    return start_ + std::chrono::floor<std::chrono::milliseconds>(steady_now().time_since_epoch());
  }

  /// Returns the steady time.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a test has advanced the time to the deadline.
  /// @throws boost::system::system_error  `operation_aborted` when canceled; the sleeper is removed then
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);

  /// Advances the time, stopping at each deadline on the way: resumes its sleepers and runs the context until nothing
  /// is ready, so that their work happens at the right time, and new sleepers are included.
  /// @param span  >= 0
  void advance(Duration span);

  /// Advances the time to the earliest deadline and runs the resumed sleepers.
  /// @returns false if there are no sleepers
  bool advance_to_next();

  /// Runs the context until nothing is ready, without advancing the time.
  void settle();

  /// Runs an awaitable to completion; whenever nothing is ready, advances the time to the earliest deadline. Without
  /// sleepers it waits for other threads and devices.
  /// @returns its result
  /// @throws  any exception of the work
  template <class T>
  T run(awaitable<T> work) {
    auto outcome = std::make_shared<async::detail::Outcome<T>>();
    drive(async::detail::capture(outcome, std::move(work)));
    return outcome->take();
  }

  /// Returns the number of sleepers.
  [[nodiscard]] std::size_t sleepers() const noexcept;

  /// Returns the earliest deadline of a sleeper.
  [[nodiscard]] std::optional<SteadyPoint> next_deadline() const;

 private:
  struct State;

  void drive(awaitable<void> work);
  void wake(SteadyPoint deadline);

  TimePoint start_;
  boost::asio::io_context* context_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace nni::testing

#if NNI_HEADER_ONLY
#include <nni/testing/manual_clock_inl.hpp>
#endif
