#include <chrono>
#include <string>
#include <vector>

#include <boost/asio/error.hpp>
#include <boost/asio/experimental/channel_error.hpp>
#include <boost/asio/io_context.hpp>

#include <nni/async/cancellation.hpp>
#include <nni/async/run.hpp>
#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni::async::event;
using nni::async::is_cancellation;
using nni_test::settle;
using nni_test::Started;
using nni_test::wait_for;

namespace {

using Words = std::vector<std::string>;

awaitable<void> shielded(event& go, Words& words) {
  auto last = nni::async::shield(wait_for(go));
  co_await std::move(last);
  words.push_back("shielded");
  co_await nni_test::hop();
  words.push_back("never here");
}

awaitable<void> clean_up_by_hand(event& go, event& cleaned, Words& words) {
  std::exception_ptr failure;
  try {
    co_await go.wait();
  } catch (...) {
    failure = std::current_exception();
  }
  co_await nni::async::ignore_cancellation();
  auto last = nni::async::shield(nni_test::wait_then_write(cleaned, words, "cleaned"));
  co_await std::move(last);
  if (failure != nullptr) std::rethrow_exception(failure);
}

awaitable<void> clean_up_with_children(event& go, event& cleaned, Words& words) {
  try {
    co_await go.wait();
  } catch (...) {
  }
  co_await nni::async::ignore_cancellation();

  auto race = nni::async::race(wait_for(cleaned), wait_for(go));
  co_await std::move(race);
  words.push_back("race");
  auto limited = nni::async::with_timeout(wait_for(cleaned), std::chrono::hours(1));
  co_await std::move(limited);
  words.push_back("limit");
  auto executor = co_await boost::asio::this_coro::executor;
  nni::async::task_group group(executor);
  group.spawn(nni_test::wait_then_write(cleaned, words, "group"));
  co_await group.join();
}

awaitable<void> finish(event& go, event& cleaned, Words& words, std::string failure) {
  auto work = failure.empty() ? wait_for(go) : nni_test::wait_then_fail(go, failure);
  auto both = nni::async::finally(std::move(work), nni_test::wait_then_write(cleaned, words, "cleaned"));
  co_await std::move(both);
  words.push_back("returned");
  co_await nni_test::hop();
  words.push_back("went on");
}

awaitable<int> give(int value) { co_return value; }

awaitable<void> fail(std::string message) {
  co_await nni_test::hop();
  throw nni::Error(nni::Errc::internal, std::move(message));
}

awaitable<int> shielded_value() {
  auto work = nni::async::shield(give(7));
  co_return co_await std::move(work);
}

awaitable<int> finished_value() {
  auto work = nni::async::finally(give(7), nni_test::hop());
  co_return co_await std::move(work);
}

awaitable<int> value_with_failing_clean_up() {
  auto work = nni::async::finally(give(7), fail("clean-up failed"));
  co_return co_await std::move(work);
}

awaitable<void> failure_with_failing_clean_up() {
  auto work = nni::async::finally(fail("work failed"), fail("clean-up failed"));
  co_await std::move(work);
}

}  // namespace

TEST_CASE("is_cancellation: knows every code that stands for it, and no other", "[async][cancellation]") {
  CHECK(is_cancellation(boost::asio::error::operation_aborted));
  CHECK(is_cancellation(boost::asio::experimental::error::channel_cancelled));
  CHECK(is_cancellation(make_error_code(boost::system::errc::operation_canceled)));
  CHECK_FALSE(is_cancellation(boost::system::error_code()));
  CHECK_FALSE(is_cancellation(boost::asio::experimental::error::channel_closed));
  CHECK_FALSE(is_cancellation(make_error_code(nni::Errc::timed_out)));
}

TEST_CASE("is_cancellation: looks into exceptions", "[async][cancellation]") {
  const auto aborted = boost::system::system_error(boost::asio::error::operation_aborted);
  CHECK(is_cancellation(std::make_exception_ptr(aborted)));
  CHECK_FALSE(is_cancellation(std::make_exception_ptr(nni::Error(nni::Errc::internal, "no"))));
  CHECK_FALSE(is_cancellation(std::make_exception_ptr(7)));
  CHECK_FALSE(is_cancellation(std::exception_ptr()));
}

TEST_CASE("shield: cancellation does not reach the work, and is heard afterwards", "[async][cancellation]") {
  boost::asio::io_context context;
  event go;
  Words words;
  Started work(context, shielded(go, words));
  settle(context);

  work.cancel();
  work.cancel();
  settle(context);
  CHECK_FALSE(work.done());

  go.notify();
  settle(context);
  CHECK(words == Words{"shielded"});
  CHECK(work.cancelled());
}

TEST_CASE("shield: after ignore_cancellation a cancelled coroutine can clean up", "[async][cancellation]") {
  boost::asio::io_context context;
  event go;
  event cleaned;
  Words words;
  Started work(context, clean_up_by_hand(go, cleaned, words));
  settle(context);

  work.cancel();
  settle(context);
  work.cancel();
  settle(context);
  CHECK_FALSE(work.done());
  cleaned.notify();
  settle(context);

  CHECK(words == Words{"cleaned"});
  CHECK(work.cancelled());
}

TEST_CASE("ignore_cancellation: races, groups and limits of a clean-up work as if nothing had happened",
          "[async][cancellation]") {
  boost::asio::io_context context;
  event go;
  event cleaned;
  Words words;
  Started work(context, clean_up_with_children(go, cleaned, words));
  settle(context);

  work.cancel();
  settle(context);
  CHECK_FALSE(work.done());
  for (int i = 0; i < 3; ++i) {
    cleaned.notify();
    settle(context);
  }

  CHECK(work.succeeded());
  CHECK(words == Words{"race", "limit", "group"});
}

TEST_CASE("shield: results and failures pass", "[async][cancellation]") {
  CHECK(nni::async::run(shielded_value()) == 7);
  CHECK_THROWS_WITH(nni::async::run(nni::async::shield(fail("broken"))), "broken");
}

TEST_CASE("finally: the clean-up runs however the work ends", "[async][cancellation]") {
  boost::asio::io_context context;
  event go;
  event cleaned;
  Words words;

  SECTION("by itself") {
    const Started work(context, finish(go, cleaned, words, ""));
    settle(context);
    go.notify();
    settle(context);
    cleaned.notify();
    settle(context);
    CHECK(words == Words{"cleaned", "returned", "went on"});
  }
  SECTION("by a failure") {
    const Started work(context, finish(go, cleaned, words, "broken"));
    settle(context);
    go.notify();
    settle(context);
    cleaned.notify();
    settle(context);
    CHECK(work.failure() == "broken");
    CHECK(words == Words{"cleaned"});
  }
  SECTION("by a cancellation, and a second one does not reach the clean-up") {
    Started work(context, finish(go, cleaned, words, ""));
    settle(context);
    work.cancel();
    settle(context);
    work.cancel();
    settle(context);
    CHECK_FALSE(work.done());
    cleaned.notify();
    settle(context);
    CHECK(work.cancelled());
    CHECK(words == Words{"cleaned"});
  }
  SECTION("a cancellation that arrives during the clean-up is heard afterwards") {
    Started work(context, finish(go, cleaned, words, ""));
    settle(context);
    go.notify();
    settle(context);
    work.cancel();
    cleaned.notify();
    settle(context);
    CHECK(words == Words{"cleaned", "returned"});
    CHECK(work.cancelled());
  }
}

TEST_CASE("finally: the work's result or failure counts, then that of the clean-up", "[async][cancellation]") {
  CHECK(nni::async::run(finished_value()) == 7);
  CHECK_THROWS_WITH(nni::async::run(value_with_failing_clean_up()), "clean-up failed");
  CHECK_THROWS_WITH(nni::async::run(failure_with_failing_clean_up()), "work failed");
}
