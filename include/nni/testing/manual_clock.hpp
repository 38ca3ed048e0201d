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

/// A clock whose time stands still until a test moves it; models `Clock`.
///
/// The time is moved from outside of the context that the sleepers run on, by `advance` or `run`. Work on other
/// threads (`async::offload`) does not hold the time back; a test that needs both waits for that work first.
/// @code
/// ManualClock clock;
/// Runtime runtime(RuntimeOptions{.clock = clock});
/// clock.attach(runtime.io());
/// clock.run(sleep_an_hour(runtime.context()));  // returns at once
/// @endcode
class ManualClock {
 public:
  /// @param start  wall time at the beginning
  explicit ManualClock(TimePoint start = from_epoch_ms(1'700'000'000'000));

  /// @param context  where the sleepers run
  /// @param start    wall time at the beginning
  explicit ManualClock(boost::asio::io_context& context, TimePoint start = from_epoch_ms(1'700'000'000'000))
      : ManualClock(start) {
    attach(context);
  }

  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;
  ~ManualClock();

  /// Says where the sleepers run; needed before the time is moved, not for sleeping.
  void attach(boost::asio::io_context& context) noexcept { context_ = &context; }

  /// Wall time: it moves with the steady time.
  [[nodiscard]] TimePoint now() const noexcept {
    return start_ + std::chrono::floor<std::chrono::milliseconds>(steady_now().time_since_epoch());
  }

  /// Steady time.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a test has moved the time to the deadline.
  /// @throws boost::system::system_error  `operation_aborted` when cancelled; no sleeper is left then
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);

  /// Moves the time, stopping at each deadline on the way: wakes its sleepers and runs the context until nothing
  /// is ready, so that what they do happens at their time, and new sleepers take part.
  /// @param span  zero or more
  void advance(Duration span);

  /// Moves the time to the earliest deadline and runs what it wakes.
  /// @returns false when nobody sleeps
  bool advance_to_next();

  /// Runs the context until nothing is ready; the time stands still.
  void settle();

  /// Runs an awaitable to completion; whenever nothing is ready, the time jumps to the earliest deadline. While
  /// nobody sleeps it waits for other threads and devices.
  /// @returns its result
  /// @throws  what the work throws
  template <class T>
  T run(awaitable<T> work) {
    auto outcome = std::make_shared<async::detail::Outcome<T>>();
    drive(async::detail::capture(outcome, std::move(work)));
    return outcome->take();
  }

  /// Coroutines that sleep now.
  [[nodiscard]] std::size_t sleepers() const noexcept;

  /// The earliest deadline of a sleeper.
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
