#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/mutex.hpp>
#include <nni/async/race.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni::async::event;
using nni::async::mutex;
using nni_test::settle;
using nni_test::Started;

namespace {

using Words = std::vector<std::string>;

awaitable<void> enter(mutex& door, event& leave, Words& words, std::string name) {
  const mutex::guard held = co_await door.lock();
  words.push_back(name + " in");
  co_await leave.wait();
  words.push_back(name + " out");
}

awaitable<void> lock_or(mutex& door, event& other, std::size_t& winner) {
  auto both = nni::async::race(door.lock(), nni_test::wait_for(other));
  const auto result = co_await std::move(both);
  winner = result.index();
}

}  // namespace

TEST_CASE("mutex: one at a time, across suspensions, in the order of arrival", "[async][mutex]") {
  boost::asio::io_context context;
  mutex door;
  event leave;
  Words words;
  const Started a(context, enter(door, leave, words, "a"));
  const Started b(context, enter(door, leave, words, "b"));
  const Started c(context, enter(door, leave, words, "c"));
  settle(context);
  CHECK(words == Words{"a in"});

  for (int i = 0; i < 3; ++i) {
    leave.notify();
    settle(context);
  }

  CHECK(words == Words{"a in", "a out", "b in", "b out", "c in", "c out"});
  CHECK_FALSE(door.locked());
}

TEST_CASE("mutex: nobody overtakes the one who was let in and has not run yet", "[async][mutex]") {
  boost::asio::io_context context;
  mutex door;
  event leave;
  Words words;
  mutex::guard mine = door.try_lock();
  const Started waiting(context, enter(door, leave, words, "waiting"));
  settle(context);

  mine.unlock();
  CHECK_FALSE(mine.owns());
  CHECK_FALSE(door.try_lock().owns());
  settle(context);

  CHECK(words == Words{"waiting in"});
}

TEST_CASE("mutex: who is cancelled while waiting leaves the queue", "[async][mutex]") {
  boost::asio::io_context context;
  mutex door;
  event leave;
  Words words;
  mutex::guard mine = door.try_lock();
  Started first(context, enter(door, leave, words, "first"));
  const Started second(context, enter(door, leave, words, "second"));
  settle(context);

  SECTION("in time") {
    first.cancel();
    mine.unlock();
  }
  SECTION("or when it was let in already: then it passes the mutex on") {
    mine.unlock();
    first.cancel();
  }
  settle(context);
  leave.notify();
  settle(context);

  CHECK(first.cancelled());
  CHECK(second.succeeded());
  CHECK_FALSE(door.locked());
}

TEST_CASE("mutex: a lock that loses a race is given back", "[async][mutex]") {
  boost::asio::io_context context;
  mutex door;
  event other;
  std::size_t winner = 9;
  mutex::guard mine = door.try_lock();
  const Started racer(context, lock_or(door, other, winner));
  settle(context);

  other.notify();
  mine.unlock();
  settle(context);

  CHECK(winner == 1);
  CHECK_FALSE(door.locked());
}

TEST_CASE("mutex: a guard may outlive it", "[async][mutex]") {
  mutex::guard survivor;
  {
    mutex door;
    mutex::guard first = door.try_lock();
    survivor = std::move(first);
  }
  CHECK_FALSE(survivor.owns());
}

TEST_CASE("mutex: a guard can be moved, and unlocks once", "[async][mutex]") {
  mutex door;
  mutex::guard first = door.try_lock();
  mutex::guard second = std::move(first);
  CHECK(second.owns());
  second = mutex::guard();
  CHECK_FALSE(door.locked());
}
