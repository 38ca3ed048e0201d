#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/mailbox.hpp>
#include <nni/async/race.hpp>
#include <nni/async/run.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni::async::mailbox;
using nni_test::settle;
using nni_test::Started;

namespace {

using Box = mailbox<std::unique_ptr<int>>;
using Numbers = std::vector<int>;

awaitable<void> send_all(Box& box, Numbers numbers) {
  for (const int number : numbers) {
    auto value = std::make_unique<int>(number);
    auto sent = box.send(std::move(value));
    co_await std::move(sent);
  }
}

awaitable<void> receive_all(Box& box, Numbers& numbers) {
  for (;;) {
    const auto value = co_await box.receive();
    if (!value) break;
    numbers.push_back(**value);
  }
}

awaitable<void> receive_one(Box& box, Numbers& numbers) {
  const auto value = co_await box.receive();
  if (value) numbers.push_back(**value);
}

awaitable<void> race_with(Box& box, nni::async::event& other, Numbers& numbers, std::size_t& winner) {
  auto both = nni::async::race(box.receive(), nni_test::wait_for(other));
  auto result = co_await std::move(both);
  winner = result.index();
  if (winner == 0) numbers.push_back(**std::get<0>(result));
}

void put(Box& box, int number) { REQUIRE(box.try_send(std::make_unique<int>(number))); }

}  // namespace

TEST_CASE("mailbox: values come out in the order in which they went in", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(10);
  Numbers got;
  const Started sender(context, send_all(box, {1, 2, 3}));
  const Started receiver(context, receive_all(box, got));
  settle(context);

  CHECK(sender.succeeded());
  CHECK(got == Numbers{1, 2, 3});
}

TEST_CASE("mailbox: a full one makes the sender wait", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(2);
  const Started sender(context, send_all(box, {1, 2, 3}));
  settle(context);
  CHECK(box.full());
  CHECK_FALSE(sender.done());
  auto rejected = std::make_unique<int>(9);
  CHECK_FALSE(box.try_send(std::move(rejected)));
  CHECK(rejected != nullptr);

  CHECK(**box.try_receive() == 1);
  settle(context);

  CHECK(sender.succeeded());
  CHECK(box.size() == 2);
}

TEST_CASE("mailbox: a receive that finds a value does not suspend", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(2);
  Numbers got;
  put(box, 1);
  const Started receiver(context, receive_one(box, got));

  context.poll_one();

  CHECK(got == Numbers{1});
}

TEST_CASE("mailbox: after close receivers drain it and then get nothing", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(10);
  Numbers got;
  put(box, 1);
  put(box, 2);
  box.close();
  CHECK_FALSE(box.try_send(std::make_unique<int>(3)));

  const Started receiver(context, receive_all(box, got));
  settle(context);

  CHECK(receiver.succeeded());
  CHECK(got == Numbers{1, 2});
}

TEST_CASE("mailbox: close ends receivers that wait and fails senders that wait", "[async][mailbox]") {
  boost::asio::io_context context;
  Box empty(1);
  Box full(1);
  Numbers got;
  put(full, 1);
  const Started receiver(context, receive_all(empty, got));
  const Started sender(context, send_all(full, {2}));
  settle(context);

  empty.close();
  full.close();
  settle(context);

  CHECK(receiver.succeeded());
  CHECK(sender.failure() == "mailbox: closed; it accepts no further values");
  CHECK(**full.try_receive() == 1);
  CHECK_FALSE(full.try_receive().has_value());
}

TEST_CASE("mailbox: a cancelled receiver takes nothing", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(1);
  Numbers got;
  Started receiver(context, receive_one(box, got));
  settle(context);

  SECTION("cancelled while it waits") {
    receiver.cancel();
    put(box, 1);
  }
  SECTION("cancelled when a value has woken it, before it ran") {
    put(box, 1);
    receiver.cancel();
  }
  settle(context);

  CHECK(receiver.cancelled());
  CHECK(got.empty());
  CHECK(**box.try_receive() == 1);
}

TEST_CASE("mailbox: a receiver that is cancelled too late wakes the next one", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(1);
  Numbers got;
  Started first(context, receive_one(box, got));
  const Started second(context, receive_one(box, got));
  settle(context);

  put(box, 1);
  first.cancel();
  settle(context);

  CHECK(first.cancelled());
  CHECK(second.succeeded());
  CHECK(got == Numbers{1});
}

TEST_CASE("mailbox: a sender that is cancelled too late leaves its room to the next one", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(1);
  put(box, 1);
  Started first(context, send_all(box, {2}));
  const Started second(context, send_all(box, {3}));
  settle(context);

  CHECK(**box.try_receive() == 1);
  first.cancel();
  settle(context);

  CHECK(first.cancelled());
  CHECK(second.succeeded());
  CHECK(**box.try_receive() == 3);
}

TEST_CASE("mailbox: a receive that loses a race takes no value with it", "[async][mailbox]") {
  boost::asio::io_context context;
  Box box(1);
  nni::async::event other;
  Numbers got;
  std::size_t winner = 9;
  const Started racer(context, race_with(box, other, got, winner));
  settle(context);

  SECTION("when the other one wins in the same round") {
    other.notify();
    put(box, 1);
    settle(context);
    CHECK(winner == 1);
    CHECK(got.empty());
    CHECK(**box.try_receive() == 1);
  }
  SECTION("and when it wins itself, the value is the result") {
    put(box, 1);
    other.notify();
    settle(context);
    CHECK(winner == 0);
    CHECK(got == Numbers{1});
  }
}

TEST_CASE("mailbox: whatever is cancelled whenever, each value arrives once", "[async][mailbox]") {
  constexpr int values = 2'000;
  const unsigned seed = GENERATE(1U, 2U, 3U);
  std::minstd_rand dice(seed);
  boost::asio::io_context context;
  Box box(3);
  Numbers all(values);
  std::iota(all.begin(), all.end(), 0);
  Numbers got;
  const Started sender(context, send_all(box, all));

  std::vector<Started> receivers;
  for (int round = 0; got.size() < values && round < 100 * values; ++round) {
    switch (dice() % 8) {
      case 0: receivers.emplace_back(context, receive_one(box, got)); break;
      case 1:
        if (!receivers.empty()) receivers[dice() % receivers.size()].cancel();
        break;
      default: context.restart(); context.poll_one();
    }
    std::erase_if(receivers, [](const Started& receiver) { return receiver.done(); });
  }

  CAPTURE(seed);
  CHECK(got == all);
  settle(context);
  CHECK(sender.succeeded());
}

TEST_CASE("mailbox: one without capacity is refused", "[async][mailbox]") { CHECK_THROWS_AS(Box(0), nni::Error); }
