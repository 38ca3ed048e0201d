// The clocks of the library and the smallest one model the concept; without any one of its obligations it does not.

#include <string>
#include <type_traits>

#include <nni/async/clock.hpp>
#include <nni/concepts/clock.hpp>
#include <nni/testing/manual_clock.hpp>

namespace {

using namespace nni;

static_assert(Clock<SystemClock>);
static_assert(Clock<ClockRef>);
static_assert(Clock<testing::ManualClock>);

struct Smallest {
  TimePoint now() const noexcept;
  SteadyPoint steady_now() const noexcept;
  awaitable<void> sleep_until(SteadyPoint);
};
static_assert(Clock<Smallest>);
static_assert(std::is_constructible_v<ClockRef, Smallest&>);

struct NoWallTime : Smallest {
  void now() const = delete;
};
struct WallTimeMayThrow : Smallest {
  TimePoint now() const;
};
struct NoSteadyTime : Smallest {
  void steady_now() const = delete;
};
struct SteadyTimeMayThrow : Smallest {
  SteadyPoint steady_now() const;
};
struct NeverSleeps : Smallest {
  void sleep_until(SteadyPoint) = delete;
};
struct Blocks : Smallest {
  void sleep_until(SteadyPoint);
};
static_assert(!Clock<NoWallTime>);
static_assert(!Clock<WallTimeMayThrow>);
static_assert(!Clock<NoSteadyTime>);
static_assert(!Clock<SteadyTimeMayThrow>);
static_assert(!Clock<NeverSleeps>);
static_assert(!Clock<Blocks>);
static_assert(!std::is_constructible_v<ClockRef, Blocks&>);
static_assert(!std::is_constructible_v<ClockRef, int&>);

// What crosses coroutines must not be an aggregate with something to destroy.
struct Options {
  int* number = nullptr;
};
struct Named {
  std::string name = {};
};
class Message {
 public:
  Message() = default;
  std::string name;
};
static_assert(CoroutineSafe<int> && CoroutineSafe<std::string> && CoroutineSafe<Options> && CoroutineSafe<Message>);
static_assert(!CoroutineSafe<Named>);

static_assert(AwaitableOf<awaitable<int>, int> && !AwaitableOf<int, int> && !AwaitableOf<awaitable<long>, int>);
static_assert(ValueOrAwaitable<int, int> && ValueOrAwaitable<awaitable<int>, int> && !ValueOrAwaitable<long, int>);

}  // namespace
