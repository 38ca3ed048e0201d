#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/race.hpp>
#include <nni/async/run.hpp>
#include <nni/async/timeout.hpp>
#include <nni/testing/manual_clock.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using nni::awaitable;
using nni::ClockRef;
using nni::async::event;
using nni_test::Counted;
using nni_test::settle;
using nni_test::Started;
using nni_test::wait_for;
using nni_test::wait_then_fail;

namespace {

using Words = std::vector<std::string>;

awaitable<int> wait_then_give(event& go, int value) {
  co_await go.wait();
  co_return value;
}

awaitable<int> give(int value) { co_return value; }

awaitable<void> touch(bool& touched) {
  touched = true;
  co_return;
}

/// Hears of its cancellation, and yields a value nevertheless when it may.
awaitable<int> give_in_spite(event& never, event& late, int value) {
  try {
    co_await never.wait();
  } catch (...) {
  }
  co_await nni::async::ignore_cancellation();
  co_await late.wait();
  co_return value;
}

awaitable<void> stop_slowly(event& never, event& late) {
  try {
    co_await never.wait();
  } catch (...) {
  }
  co_await nni::async::ignore_cancellation();
  co_await late.wait();
}

awaitable<void> fail_slowly(event& never, event& late) {
  co_await stop_slowly(never, late);
  throw nni::Error(nni::Errc::connection_lost, "connection closed by the hook");
}

template <class A, class B>
awaitable<void> index_of_winner(std::size_t& winner, awaitable<A> first, awaitable<B> second) {
  auto both = nni::async::race(std::move(first), std::move(second));
  const auto result = co_await std::move(both);
  winner = result.index();
}

template <class T>
awaitable<void> limited(ClockRef clock, awaitable<T> work) {
  auto call = nni::async::with_timeout(clock, std::move(work), 10s, "reading");
  co_await std::move(call);
}

awaitable<int> limited_value(ClockRef clock, awaitable<int> work) {
  auto call = nni::async::with_timeout(clock, std::move(work), 10s);
  co_return co_await std::move(call);
}

awaitable<void> limited_on_real_time(awaitable<void> work, nni::Duration limit) {
  auto call = nni::async::with_timeout(std::move(work), limit);
  co_await std::move(call);
}

awaitable<void> hold(event& never, Counted) { co_await never.wait(); }

}  // namespace

TEST_CASE("race: the first to end wins, the other one is cancelled", "[async][race]") {
  boost::asio::io_context context;
  event left;
  event right;
  std::size_t winner = 9;
  const Started racer(context, index_of_winner(winner, wait_for(left), wait_then_give(right, 3)));
  settle(context);

  right.notify();
  settle(context);

  CHECK(racer.succeeded());
  CHECK(winner == 1);
  CHECK(left.idle());
}

TEST_CASE("race: it returns only after the loser has ended", "[async][race]") {
  boost::asio::io_context context;
  event go;
  event never;
  event late;
  std::size_t winner = 9;
  const Started racer(context, index_of_winner(winner, stop_slowly(never, late), wait_for(go)));
  settle(context);

  go.notify();
  settle(context);
  CHECK_FALSE(racer.done());

  late.notify();
  settle(context);
  CHECK(racer.succeeded());
  CHECK(winner == 1);
}

TEST_CASE("race: a failure decides as well, at once", "[async][race]") {
  boost::asio::io_context context;
  event go;
  event never;
  std::size_t winner = 9;
  const Started racer(context, index_of_winner(winner, wait_for(never), wait_then_fail(go, "broken")));
  settle(context);

  go.notify();
  settle(context);

  CHECK(racer.failure() == "broken");
  CHECK(never.idle());
}

TEST_CASE("race: when the first is done at once, the second does not start", "[async][race]") {
  boost::asio::io_context context;
  std::size_t winner = 9;
  bool started = false;

  nni::async::run(context, index_of_winner(winner, give(1), touch(started)));

  CHECK(winner == 0);
  CHECK_FALSE(started);
}

TEST_CASE("race: a cancelled caller cancels both and waits for them", "[async][race]") {
  boost::asio::io_context context;
  event never;
  event late;
  std::size_t winner = 9;
  Started racer(context, index_of_winner(winner, wait_for(never), stop_slowly(never, late)));
  settle(context);

  racer.cancel();
  settle(context);
  CHECK_FALSE(racer.done());
  late.notify();
  settle(context);

  // The second ended without an exception, so there is something to return; the caller hears of its cancellation
  // at its next await.
  CHECK(racer.succeeded());
  CHECK(winner == 1);
}

TEST_CASE("race: a cancelled caller of two that give up ends with the cancellation", "[async][race]") {
  boost::asio::io_context context;
  event never;
  std::size_t winner = 9;
  Started racer(context, index_of_winner(winner, wait_for(never), wait_for(never)));
  settle(context);

  racer.cancel();
  settle(context);

  CHECK(racer.cancelled());
}

TEST_CASE("race: a context that dies frees all three coroutines", "[async][race]") {
  int living = 0;
  event never;
  std::size_t winner = 9;
  {
    boost::asio::io_context context;
    const Started racer(context, index_of_winner(winner, hold(never, Counted(living)), hold(never, Counted(living))));
    settle(context);
    REQUIRE(living == 2);
  }
  CHECK(living == 0);
}

TEST_CASE("with_timeout: a result within the limit is returned, and no sleeper is left", "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event go;
  int value = 0;
  const Started work(context, nni_test::store(value, limited_value(clock, wait_then_give(go, 7))));
  settle(context);
  CHECK(clock.sleepers() == 1);

  clock.advance(9s);
  go.notify();
  settle(context);

  CHECK(work.succeeded());
  CHECK(value == 7);
  CHECK(clock.sleepers() == 0);
}

TEST_CASE("with_timeout: a failure within the limit is thrown at once", "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event go;
  const Started work(context, limited(clock, wait_then_fail(go, "broken")));
  settle(context);

  go.notify();
  settle(context);

  CHECK(work.failure() == "broken");
  CHECK(clock.steady_now() == nni::SteadyPoint());
}

TEST_CASE("with_timeout: at the limit the work is cancelled and the error names what took too long",
          "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event never;
  const Started work(context, limited(clock, wait_for(never)));

  clock.advance(10s - 1ns);
  CHECK_FALSE(work.done());
  clock.advance(1ns);

  CHECK(work.failure() == "reading: no result within 10.0s");
  CHECK(never.idle());
}

TEST_CASE("with_timeout: it returns only after the work has ended", "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event never;
  event late;
  const Started quiet(context, limited(clock, stop_slowly(never, late)));
  const Started loud(context, limited(clock, fail_slowly(never, late)));

  clock.advance(20s);
  CHECK_FALSE(quiet.done());
  CHECK_FALSE(loud.done());
  late.notify();
  settle(context);

  // Whatever the work says after the limit, the limit is the reason.
  CHECK(quiet.failure() == "reading: no result within 10.0s");
  CHECK(loud.failure() == "reading: no result within 10.0s");
}

TEST_CASE("with_timeout: a value that comes after the limit is returned, not thrown away", "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event never;
  event late;
  int value = 0;
  const Started work(context, nni_test::store(value, limited_value(clock, give_in_spite(never, late, 7))));

  clock.advance(20s);
  late.notify();
  settle(context);

  CHECK(work.succeeded());
  CHECK(value == 7);
}

TEST_CASE("with_timeout: a cancelled caller hears of its cancellation, not of a limit", "[async][timeout]") {
  boost::asio::io_context context;
  nni::testing::ManualClock clock(context);
  event never;
  event late;
  Started prompt(context, limited(clock, wait_for(never)));
  Started slow(context, limited(clock, fail_slowly(never, late)));
  settle(context);

  prompt.cancel();
  settle(context);
  CHECK(prompt.cancelled());
  CHECK(clock.sleepers() == 1);

  slow.cancel();
  clock.advance(20s);
  late.notify();
  settle(context);
  CHECK(slow.failure() == "connection closed by the hook");
  CHECK(clock.sleepers() == 0);
}

TEST_CASE("with_timeout: real time ends work that never would", "[async][timeout]") {
  boost::asio::io_context context;
  event never;
  CHECK_THROWS_WITH(nni::async::run(context, limited_on_real_time(wait_for(never), 1ms)), "no result within 1ms");
  CHECK_THROWS_AS(nni::async::run(context, limited_on_real_time(wait_for(never), -1s)), nni::Error);
}

TEST_CASE("with_timeout: real time is not waited for", "[async][timeout]") {
  boost::asio::io_context context;
  nni::async::run(context, limited_on_real_time(nni_test::hop(), 24h));
  settle(context);
  CHECK(context.poll() == 0);
}

TEST_CASE("with_timeout: a real limit that is reached after a cancellation is not the reason", "[async][timeout]") {
  boost::asio::io_context context;
  event never;
  event late;
  Started work(context, limited_on_real_time(fail_slowly(never, late), 0s));
  context.poll_one();
  work.cancel();
  settle(context);
  CHECK_FALSE(work.done());
  late.notify();
  settle(context);

  CHECK(work.failure() == "connection closed by the hook");
}
