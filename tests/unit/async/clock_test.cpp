#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/clock.hpp>
#include <nni/async/periodic.hpp>
#include <nni/async/run.hpp>
#include <nni/async/runtime.hpp>
#include <nni/testing/manual_clock.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using nni::awaitable;
using nni::ClockRef;
using nni::testing::ManualClock;
using nni_test::Counted;
using nni_test::settle;
using nni_test::Started;

namespace {

using Words = std::vector<std::string>;
using Seconds = std::vector<double>;

double seconds(nni::SteadyPoint at) { return std::chrono::duration<double>(at.time_since_epoch()).count(); }

awaitable<void> sleep(ClockRef clock, nni::Duration span) { co_await clock.sleep_for(span); }

awaitable<void> sleep_then_write(ClockRef clock, nni::Duration span, Words& words, std::string word) {
  co_await clock.sleep_for(span);
  words.push_back(word + " " + std::to_string(static_cast<int>(seconds(clock.steady_now()))));
}

awaitable<void> sleep_twice(ClockRef clock, Words& words) {
  co_await sleep_then_write(clock, 2s, words, "twice");
  co_await sleep_then_write(clock, 2s, words, "twice");
}

awaitable<int> sleep_then_give(ClockRef clock, nni::Duration span, int value) {
  co_await clock.sleep_for(span);
  co_return value;
}

awaitable<void> sleep_with(ClockRef clock, Counted) { co_await clock.sleep_for(1h); }

awaitable<void> write_rounds(nni::async::periodic& beat, ClockRef clock, Seconds& at) {
  for (;;) {
    co_await beat.next();
    at.push_back(seconds(clock.steady_now()));
  }
}

awaitable<void> slow_rounds(nni::async::periodic& beat, ClockRef clock, Seconds& at, nni::Duration work) {
  for (;;) {
    co_await beat.next();
    at.push_back(seconds(clock.steady_now()));
    co_await clock.sleep_for(work);
  }
}

}  // namespace

TEST_CASE("SystemClock: sleeps until the deadline, and returns for one in the past", "[async][clock]") {
  nni::SystemClock clock;
  const nni::SteadyPoint deadline = clock.steady_now() + 2ms;

  nni::async::run(clock.sleep_until(deadline));
  CHECK(clock.steady_now() >= deadline);
  nni::async::run(clock.sleep_until(deadline - 1h));
}

TEST_CASE("SystemClock: wall time is that of the system", "[async][clock]") {
  const ClockRef clock;
  const auto system = std::chrono::floor<std::chrono::minutes>(std::chrono::system_clock::now());
  CHECK(clock.now() - system < 2min);
  CHECK(clock.is_system());
}

TEST_CASE("ClockRef: a cancelled sleeper ends with the cancellation", "[async][clock]") {
  boost::asio::io_context context;
  ManualClock manual(context);
  const bool real = GENERATE(true, false);
  Started work(context, sleep(real ? ClockRef() : ClockRef(manual), 1h));
  settle(context);

  work.cancel();
  settle(context);

  CHECK(work.cancelled());
  CHECK(manual.sleepers() == 0);
  CHECK_FALSE(manual.next_deadline().has_value());
}

TEST_CASE("ManualClock: time stands still until it is moved", "[async][manual_clock]") {
  boost::asio::io_context context;
  ManualClock clock(context, nni::from_epoch_ms(5000));
  const Started work(context, sleep(clock, 10s));
  settle(context);

  clock.advance(9s);
  CHECK_FALSE(work.done());
  CHECK(clock.sleepers() == 1);
  CHECK(nni::to_epoch_ms(clock.now()) == 14000);

  clock.advance(1s);
  CHECK(work.succeeded());
  CHECK(clock.sleepers() == 0);
}

TEST_CASE("ManualClock: sleepers wake in the order of time, each at its time", "[async][manual_clock]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  Words words;
  const Started late(context, sleep_then_write(clock, 3s, words, "late"));
  const Started early(context, sleep_then_write(clock, 1s, words, "early"));
  const Started twice(context, sleep_twice(clock, words));

  clock.advance(1min);

  CHECK(words == Words{"early 1", "twice 2", "late 3", "twice 4"});
  CHECK(clock.steady_now() == nni::SteadyPoint(1min));
}

TEST_CASE("ManualClock: advance_to_next jumps from deadline to deadline", "[async][manual_clock]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  Words words;
  const Started twice(context, sleep_twice(clock, words));

  CHECK(clock.advance_to_next());
  CHECK(words == Words{"twice 2"});
  CHECK(clock.advance_to_next());
  CHECK_FALSE(clock.advance_to_next());
  CHECK(clock.steady_now() == nni::SteadyPoint(4s));
}

TEST_CASE("ManualClock: run jumps over every wait", "[async][manual_clock]") {
  ManualClock clock;
  nni::Runtime runtime(nni::RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());

  CHECK(clock.run(sleep_then_give(runtime.context().clock(), 100h, 7)) == 7);
  CHECK(clock.steady_now() == nni::SteadyPoint(100h));
}

TEST_CASE("ManualClock: a deadline in the past lets others go first and returns", "[async][manual_clock]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  const Started work(context, sleep(clock, -1s));
  settle(context);
  CHECK(work.succeeded());
}

TEST_CASE("ManualClock: clock and context may die in either order", "[async][manual_clock]") {
  int living = 0;
  SECTION("the context first") {
    ManualClock clock;
    {
      boost::asio::io_context context;
      const Started work(context, sleep_with(clock, Counted(living)));
      settle(context);
      REQUIRE(living == 1);
    }
    CHECK(clock.sleepers() == 0);
  }
  SECTION("the clock first") {
    boost::asio::io_context context;
    auto clock = std::make_unique<ManualClock>(context);
    const Started work(context, sleep_with(*clock, Counted(living)));
    settle(context);
    clock.reset();
    settle(context);
    CHECK(work.cancelled());
  }
  CHECK(living == 0);
}

TEST_CASE("ManualClock: wrong use is refused", "[async][manual_clock]") {
  boost::asio::io_context context;
  ManualClock attached(context);
  ManualClock loose;
  CHECK_THROWS_AS(attached.advance(-1s), nni::Error);
  CHECK_THROWS_AS(loose.advance(1s), nni::Error);
}

TEST_CASE("periodic: rounds keep to a grid, whatever the loop takes", "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s});
  Seconds at;
  Started loop(context, slow_rounds(beat, clock, at, 3s));

  clock.advance(35s);

  CHECK(at == Seconds{10, 20, 30});
  loop.cancel();
  settle(context);
  CHECK(loop.cancelled());
  CHECK(clock.sleepers() == 0);
}

TEST_CASE("periodic: a loop that is too slow gets its next round at once, and none is made up for",
          "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s});
  Seconds at;
  Started loop(context, slow_rounds(beat, clock, at, 25s));

  clock.advance(90s);

  CHECK(at == Seconds{10, 35, 60, 85});
  loop.cancel();
  settle(context);
}

TEST_CASE("periodic: wake starts a round now, and the grid there", "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s});
  Seconds at;
  Started loop(context, write_rounds(beat, clock, at));

  clock.advance(14s);
  beat.wake();
  clock.advance(16s);

  CHECK(at == Seconds{10, 14, 24});
  loop.cancel();
  settle(context);
}

TEST_CASE("periodic: a wake while the loop works starts the next round without waiting", "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s});
  Seconds at;
  Started loop(context, slow_rounds(beat, clock, at, 3s));

  clock.advance(11s);
  beat.wake();
  clock.advance(12s);

  CHECK(at == Seconds{10, 13, 23});
  loop.cancel();
  settle(context);
}

TEST_CASE("periodic: the first round may come at once, and the interval may change", "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s, .at_once = true});
  Seconds at;
  Started loop(context, write_rounds(beat, clock, at));

  clock.advance(10s);
  beat.set_interval(5s);
  clock.advance(15s);

  // The round of 20 s was planned before the change.
  CHECK(at == Seconds{0, 10, 20, 25});
  loop.cancel();
  settle(context);
}

TEST_CASE("periodic: jitter moves rounds within its share of the interval", "[async][periodic]") {
  boost::asio::io_context context;
  ManualClock clock(context);
  nni::async::periodic beat(clock, {.interval = 10s, .jitter = 0.2, .seed = 7});
  Seconds at;
  Started loop(context, write_rounds(beat, clock, at));

  clock.advance(1000s);
  loop.cancel();
  settle(context);

  REQUIRE(at.size() > 80);
  double shortest = 100.0;
  double longest = 0.0;
  for (std::size_t i = 1; i < at.size(); ++i) {
    shortest = std::min(shortest, at[i] - at[i - 1]);
    longest = std::max(longest, at[i] - at[i - 1]);
  }
  CHECK(shortest >= 8.0);
  CHECK(shortest < 9.0);
  CHECK(longest <= 12.0);
  CHECK(longest > 11.0);
}

TEST_CASE("periodic: options out of range are refused, all at once", "[async][periodic]") {
  CHECK_THROWS_WITH(nni::async::periodic(ClockRef(), {.interval = 0s, .jitter = 2.0}),
                    "interval: must be greater than zero; jitter: must be between 0 and 1");
}
