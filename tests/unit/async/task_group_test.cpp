#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include <nni/async/run.hpp>
#include <nni/async/runtime.hpp>
#include <nni/async/task_group.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"
#include "support/co_test.hpp"

using nni::awaitable;
using nni::async::event;
using nni::async::task_group;
using nni_test::Counted;
using nni_test::settle;
using nni_test::Started;
using nni_test::wait_for;
using nni_test::wait_then_fail;
using nni_test::wait_then_write;

namespace {

using Words = std::vector<std::string>;

awaitable<void> write(Words& words, std::string word) {
  words.push_back(std::move(word));
  co_return;
}

/// Needs a while to stop once it is cancelled.
awaitable<void> stop_slowly(event& never, event& stopped, Words& words) {
  try {
    co_await never.wait();
  } catch (...) {
    words.push_back("cancelled");
  }
  co_await nni::async::ignore_cancellation();
  co_await stopped.wait();
  words.push_back("stopped");
}

awaitable<void> spawn_another(task_group& group, event& go, Words& words) {
  co_await go.wait();
  group.spawn(wait_then_write(go, words, "grandchild"));
  words.push_back("child");
}

awaitable<void> cancel_own_group(task_group& group, event& never, Words& words) {
  group.cancel();
  words.push_back("cancelling");
  co_await never.wait();
  words.push_back("never here");
}

awaitable<void> fail_at_once(std::string message) {
  throw nni::Error(nni::Errc::internal, std::move(message));
  co_return;
}

awaitable<void> hold(event& never, Counted) { co_await never.wait(); }

awaitable<void> group_that_waits(event& never, Counted payload) {
  auto executor = co_await boost::asio::this_coro::executor;
  task_group group(executor);
  group.spawn(hold(never, payload));
  co_await group.join();
}

awaitable<void> scoped(event& go, event& never, Words& words, bool fail) {
  auto body = [&](task_group& group) -> awaitable<void> {
    group.spawn(stop_slowly(never, go, words));
    if (fail) throw nni::Error(nni::Errc::internal, "body failed");
    co_await never.wait();
  };
  auto all = nni::async::with_task_group(body);
  co_await std::move(all);
}

}  // namespace

TEST_CASE("task_group: join waits for all children", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event go;
  Words words;
  group.spawn(wait_then_write(go, words, "one"));
  group.spawn(wait_then_write(go, words, "two"));
  const Started joiner(context, group.join());
  settle(context);
  CHECK(group.size() == 2);
  CHECK_FALSE(joiner.done());

  go.notify();
  settle(context);

  CHECK(joiner.succeeded());
  CHECK(group.empty());
  CHECK(words == Words{"one", "two"});
}

CO_TEST_CASE("task_group: on the executor a child runs up to its first suspension at once", "[async][task_group]") {
  auto executor = co_await boost::asio::this_coro::executor;
  task_group group(executor);
  Words words;

  group.spawn(write(words, "child"));
  words.push_back("parent");
  co_await group.join();

  CHECK(words == Words{"child", "parent"});
}

TEST_CASE("task_group: joining an empty group returns at once", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  nni::async::run(context, group.join());
  CHECK(group.empty());
}

TEST_CASE("task_group: the first failure cancels the siblings, is thrown by join, and waits for them",
          "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event go;
  event never;
  event stopped;
  Words words;
  group.spawn(stop_slowly(never, stopped, words));
  group.spawn(wait_then_fail(go, "first"));
  const Started joiner(context, group.join());
  settle(context);

  go.notify();
  settle(context);
  CHECK(group.cancelled());
  CHECK_FALSE(joiner.done());
  CHECK(words == Words{"cancelled"});

  stopped.notify();
  settle(context);
  CHECK(joiner.failure() == "first");
  CHECK(words == Words{"cancelled", "stopped"});
}

TEST_CASE("task_group: of two failures join throws the first", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event go;
  group.spawn(wait_then_fail(go, "first"));
  group.spawn(wait_then_fail(go, "second"));
  const Started joiner(context, group.join());
  settle(context);

  go.notify();
  settle(context);

  CHECK(joiner.failure() == "first");
}

TEST_CASE("task_group: a failure before join is thrown by it", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  group.spawn(fail_at_once("early"));
  settle(context);

  CHECK_THROWS_WITH(nni::async::run(context, group.join()), "early");
}

TEST_CASE("task_group: cancelled children end quietly", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event never;
  group.spawn(wait_for(never));
  group.spawn(wait_for(never));
  settle(context);

  group.cancel();
  nni::async::run(context, group.join());

  CHECK(group.empty());
}

TEST_CASE("task_group: a child that is cancelled before it has started never runs, and is joined",
          "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  Words words;
  group.spawn(write(words, "never here"));

  group.cancel();
  nni::async::run(context, group.join());

  CHECK(words.empty());
  CHECK(group.empty());
}

TEST_CASE("task_group: a cancelled group takes no children until it was joined", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  Words words;
  group.cancel();

  CHECK_FALSE(group.spawn(write(words, "refused")));
  nni::async::run(context, group.join());
  CHECK(words.empty());

  CHECK(group.spawn(write(words, "taken")));
  nni::async::run(context, group.join());
  CHECK(words == Words{"taken"});
}

TEST_CASE("task_group: a cancelled joiner cancels the children, waits for them, and ends with the cancellation",
          "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event never;
  event stopped;
  Words words;
  group.spawn(stop_slowly(never, stopped, words));
  Started joiner(context, group.join());
  settle(context);

  joiner.cancel();
  settle(context);
  CHECK(words == Words{"cancelled"});
  CHECK_FALSE(joiner.done());

  stopped.notify();
  settle(context);
  CHECK(words == Words{"cancelled", "stopped"});
  CHECK(joiner.cancelled());
}

TEST_CASE("task_group: join also waits for children that children spawn", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event go;
  Words words;
  group.spawn(spawn_another(group, go, words));
  const Started joiner(context, group.join());
  settle(context);

  go.notify();
  settle(context);
  CHECK_FALSE(joiner.done());

  go.notify();
  settle(context);
  CHECK(joiner.succeeded());
  CHECK(words == Words{"child", "grandchild"});
}

TEST_CASE("task_group: a child may cancel its own group", "[async][task_group]") {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  event never;
  Words words;
  group.spawn(wait_for(never));
  group.spawn(cancel_own_group(group, never, words));

  nni::async::run(context, group.join());

  CHECK(words == Words{"cancelling"});
}

TEST_CASE("task_group: a context that dies frees groups and children in any order", "[async][task_group]") {
  int living = 0;
  event never;
  {
    boost::asio::io_context context;
    const Started work(context, group_that_waits(never, Counted(living)));
    settle(context);
    REQUIRE(living > 0);
  }
  CHECK(living == 0);
}

TEST_CASE("with_task_group: a body that fails cancels the children and waits for them", "[async][task_group]") {
  boost::asio::io_context context;
  event go;
  event never;
  Words words;
  const Started work(context, scoped(go, never, words, true));
  settle(context);
  CHECK_FALSE(work.done());

  go.notify();
  settle(context);

  CHECK(work.failure() == "body failed");
  CHECK(words == Words{"cancelled", "stopped"});
}

TEST_CASE("with_task_group: a cancelled caller leaves no child behind", "[async][task_group]") {
  boost::asio::io_context context;
  event go;
  event never;
  Words words;
  Started work(context, scoped(go, never, words, false));
  settle(context);

  work.cancel();
  settle(context);
  CHECK_FALSE(work.done());
  go.notify();
  settle(context);

  CHECK(work.cancelled());
  CHECK(words == Words{"cancelled", "stopped"});
}
