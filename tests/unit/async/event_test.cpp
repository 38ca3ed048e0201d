#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/event.hpp>
#include <nni/async/run.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni_test::Counted;
using nni_test::settle;
using nni_test::Started;
using nni_test::wait_for;
using nni_test::wait_then_write;

namespace {

using Words = std::vector<std::string>;

awaitable<void> wait_with_payload(nni::async::event& event, Counted) { co_await event.wait(); }

/// Waits for an event of its own frame, which is a circle of ownership.
awaitable<void> wait_for_own_event(Counted) {
  nni::async::event mine;
  co_await mine.wait();
}

awaitable<void> count_wakes(nni::async::wakeup& wakeup, int& wakes) {
  for (;;) {
    co_await wakeup.wait();
    ++wakes;
  }
}

awaitable<void> wait_for_signal(nni::async::wakeup& wakeup) { co_await wakeup.wait(); }

awaitable<void> read_until(nni::async::wakeup& wakeup, const std::atomic<int>& produced, int all) {
  while (produced.load(std::memory_order_relaxed) < all) co_await wakeup.wait();
}

awaitable<void> ask_and_read(nni::async::wakeup& wakeup, std::atomic<int>& asked, const std::atomic<int>& produced,
                             int rounds) {
  for (int round = 1; round <= rounds; ++round) {
    asked = round;
    while (produced.load(std::memory_order_relaxed) < round) co_await wakeup.wait();
  }
}

}  // namespace

TEST_CASE("event: a notify that finds nobody waiting is forgotten", "[async][event]") {
  boost::asio::io_context context;
  nni::async::event event;

  event.notify();
  const Started waiter(context, wait_for(event));
  settle(context);

  CHECK_FALSE(waiter.done());
  event.notify();
  settle(context);
  CHECK(waiter.succeeded());
}

TEST_CASE("event: notify sends on everybody, in the order in which they came", "[async][event]") {
  boost::asio::io_context context;
  nni::async::event event;
  Words words;
  const Started first(context, wait_then_write(event, words, "first"));
  const Started second(context, wait_then_write(event, words, "second"));
  settle(context);

  event.notify();
  CHECK(words.empty());
  settle(context);

  CHECK(words == Words{"first", "second"});
  CHECK(event.idle());
}

TEST_CASE("event: notify_one sends on the one who waits longest", "[async][event]") {
  boost::asio::io_context context;
  nni::async::event event;
  Words words;
  const Started first(context, wait_then_write(event, words, "first"));
  const Started second(context, wait_then_write(event, words, "second"));
  settle(context);

  CHECK(event.notify_one());
  settle(context);
  CHECK(words == Words{"first"});

  CHECK(event.notify_one());
  CHECK_FALSE(event.notify_one());
  settle(context);
  CHECK(words == Words{"first", "second"});
}

TEST_CASE("event: a cancelled waiter ends with a cancellation and takes no notification with it", "[async][event]") {
  boost::asio::io_context context;
  nni::async::event event;
  Words words;
  Started first(context, wait_then_write(event, words, "first"));
  const Started second(context, wait_then_write(event, words, "second"));
  settle(context);

  first.cancel();
  event.notify_one();
  settle(context);

  CHECK(first.cancelled());
  CHECK(words == Words{"second"});
}

TEST_CASE("event: a waiter that is on its way is not stopped by a cancellation", "[async][event]") {
  boost::asio::io_context context;
  nni::async::event event;
  Words words;
  Started waiter(context, wait_then_write(event, words, "woken"));
  settle(context);

  event.notify();
  waiter.cancel();
  waiter.cancel();
  settle(context);

  CHECK(words == Words{"woken"});
}

TEST_CASE("event: waiters of an event that dies end with a cancellation", "[async][event]") {
  boost::asio::io_context context;
  auto event = std::make_unique<nni::async::event>();
  const Started waiter(context, wait_for(*event));
  settle(context);

  event.reset();
  settle(context);

  CHECK(waiter.cancelled());
}

TEST_CASE("event: a context that dies takes the coroutines with it that wait for events", "[async][event]") {
  int living = 0;
  nni::async::event survivor;
  {
    boost::asio::io_context context;
    const Started outside(context, wait_with_payload(survivor, Counted(living)));
    const Started inside(context, wait_for_own_event(Counted(living)));
    settle(context);
    REQUIRE(living == 2);
  }

  CHECK(living == 0);
  CHECK(survivor.idle());
  survivor.notify();
}

TEST_CASE("event: works on a second context after the first has died", "[async][event]") {
  nni::async::event event;
  for (int round = 0; round < 3; ++round) {
    boost::asio::io_context context;
    const Started waiter(context, wait_for(event));
    settle(context);
    event.notify();
    settle(context);
    CHECK(waiter.succeeded());
  }
}

TEST_CASE("wakeup: signals that nobody has consumed coalesce", "[async][wakeup]") {
  boost::asio::io_context context;
  nni::async::wakeup wakeup(context.get_executor());
  int wakes = 0;
  for (int i = 0; i < 100; ++i) wakeup.notify();

  Started reader(context, count_wakes(wakeup, wakes));
  settle(context);
  CHECK(wakes == 1);

  for (int i = 0; i < 100; ++i) wakeup.notify();
  settle(context);
  CHECK(wakes == 2);

  reader.cancel();
  settle(context);
  CHECK(reader.cancelled());
}

TEST_CASE("wakeup: consume takes a signal without waiting", "[async][wakeup]") {
  boost::asio::io_context context;
  nni::async::wakeup wakeup(context.get_executor());

  CHECK_FALSE(wakeup.consume());
  wakeup.notify();
  CHECK(wakeup.consume());
  CHECK_FALSE(wakeup.consume());
}

TEST_CASE("wakeup: a signal for a waiter that was cancelled is kept for the next one", "[async][wakeup]") {
  boost::asio::io_context context;
  nni::async::wakeup wakeup(context.get_executor());
  Started cancelled(context, wait_for_signal(wakeup));
  settle(context);

  wakeup.notify();
  cancelled.cancel();
  settle(context);
  REQUIRE(cancelled.cancelled());

  const Started next(context, wait_for_signal(wakeup));
  settle(context);
  CHECK(next.succeeded());
}

TEST_CASE("wakeup: whoever waits is woken, also beside one that found the signal itself", "[async][wakeup]") {
  boost::asio::io_context context;
  nni::async::wakeup wakeup(context.get_executor());
  const Started first(context, wait_for_signal(wakeup));
  settle(context);

  wakeup.notify();
  const Started thief(context, wait_for_signal(wakeup));
  settle(context);
  wakeup.notify();
  settle(context);

  CHECK(first.succeeded());
  CHECK(thief.succeeded());
}

TEST_CASE("wakeup: several waiters are woken together", "[async][wakeup]") {
  boost::asio::io_context context;
  nni::async::wakeup wakeup(context.get_executor());
  const Started first(context, wait_for_signal(wakeup));
  const Started second(context, wait_for_signal(wakeup));
  settle(context);

  wakeup.notify();
  settle(context);

  CHECK(first.succeeded());
  CHECK(second.succeeded());
}

TEST_CASE("wakeup: it may die while a signal is under way", "[async][wakeup]") {
  boost::asio::io_context context;
  auto wakeup = std::make_unique<nni::async::wakeup>(context.get_executor());
  const Started waiter(context, wait_for_signal(*wakeup));
  settle(context);

  wakeup->notify();
  wakeup.reset();
  settle(context);

  CHECK(waiter.cancelled());
}

TEST_CASE("wakeup: no signal of other threads is lost", "[async][wakeup][threads]") {
  constexpr int each = 100'000;
  boost::asio::io_context context(1);
  nni::async::wakeup wakeup(context.get_executor());
  std::atomic<int> produced{0};
  const auto produce = [&] {
    for (int i = 0; i < each; ++i) {
      produced.fetch_add(1, std::memory_order_relaxed);
      wakeup.notify();
    }
  };

  std::jthread left(produce);
  std::jthread right(produce);
  nni::async::run(context, read_until(wakeup, produced, 2 * each));

  CHECK(produced == 2 * each);
}

TEST_CASE("wakeup: no moment is wrong for a signal, however close to the wait", "[async][wakeup][threads]") {
  constexpr int rounds = 20'000;
  boost::asio::io_context context(1);
  nni::async::wakeup wakeup(context.get_executor());
  std::atomic<int> asked{0};
  std::atomic<int> produced{0};
  std::jthread producer([&] {
    std::atomic<int> delay{0};
    for (int round = 1; round <= rounds; ++round) {
      while (asked.load() < round) std::this_thread::yield();
      // Sweeps the signal over the time in which the reader goes to sleep.
      for (delay = round % 200; delay > 0; --delay) {
      }
      produced.store(round, std::memory_order_relaxed);
      wakeup.notify();
    }
  });

  nni::async::run(context, ask_and_read(wakeup, asked, produced, rounds));

  CHECK(produced == rounds);
}
