#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <nni/async/offload.hpp>
#include <nni/async/run.hpp>
#include <nni/async/runtime.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni_test::Counted;
using nni_test::Started;

namespace {

/// Blocks a thread until a test opens it.
class Gate {
 public:
  void open() { promise_.set_value(); }
  void pass() { opened_.wait(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

awaitable<std::string> text_from_pool(boost::asio::thread_pool& pool) {
  auto text = std::make_unique<std::string>(100, 'x');
  auto work = nni::async::offload(pool, [text = std::move(text)] { return *text; });
  co_return co_await std::move(work);
}

awaitable<std::unique_ptr<int>> pointer_from_pool(boost::asio::thread_pool& pool) {
  auto work = nni::async::offload(pool, [] { return std::make_unique<int>(7); });
  co_return co_await std::move(work);
}

awaitable<void> failing_call(boost::asio::thread_pool& pool) {
  auto work = nni::async::offload(pool, [] { throw nni::Error(nni::Errc::storage_failed, "disk is gone"); });
  co_await std::move(work);
}

awaitable<void> call(boost::asio::thread_pool& pool, std::function<void()> body) {
  co_await nni::async::offload(pool, std::move(body));
}

awaitable<void> call_with_hook(boost::asio::thread_pool& pool, std::function<void()> body, std::function<void()> hook) {
  co_await nni::async::offload(pool, std::move(body), std::move(hook));
}

awaitable<void> call_then_count(boost::asio::thread_pool& pool, std::function<void()> body, int& ended) {
  co_await nni::async::offload(pool, std::move(body));
  ++ended;
}

awaitable<void> use_context(nni::Context& context, std::thread::id& where) {
  auto work = nni::async::offload(context, [] { return std::this_thread::get_id(); });
  where = co_await std::move(work);
}

awaitable<void> call_on(boost::asio::any_io_executor lane, std::function<void()> body) {
  co_await nni::async::offload(lane, std::move(body));
}

awaitable<void> hold(boost::asio::thread_pool& pool, Gate& gate, Counted) {
  co_await nni::async::offload(pool, [&gate] { gate.pass(); });
}

/// Runs a context until a coroutine has ended; other threads have a part in it.
void finish(boost::asio::io_context& context, const Started& work) {
  while (!work.done()) {
    context.restart();
    context.run_one();
  }
}

}  // namespace

TEST_CASE("offload: a result comes back, of any movable type", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);

  CHECK(nni::async::run(context, text_from_pool(pool)) == std::string(100, 'x'));
  CHECK(*nni::async::run(context, pointer_from_pool(pool)) == 7);
}

TEST_CASE("offload: an exception comes back as it was thrown", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);

  CHECK_THROWS_AS(nni::async::run(context, failing_call(pool)), nni::Error);
  CHECK_THROWS_WITH(nni::async::run(context, failing_call(pool)), "disk is gone");
}

TEST_CASE("offload: the callable runs on the pool, the coroutine does not", "[async][offload][threads]") {
  nni::Runtime runtime;
  std::thread::id where;

  runtime.run(use_context(runtime.context(), where));

  CHECK(where != std::thread::id());
  CHECK(where != std::this_thread::get_id());
}

TEST_CASE("offload: the executor goes on while a call blocks", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);
  Gate gate;
  const Started blocked(context, call(pool, [&gate] { gate.pass(); }));
  const Started other(context, nni_test::hop());

  finish(context, other);
  CHECK(other.succeeded());
  CHECK_FALSE(blocked.done());

  gate.open();
  finish(context, blocked);
  CHECK(blocked.succeeded());
}

TEST_CASE("offload: a call that is cancelled before its turn never runs", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);
  Gate gate;
  bool ran = false;
  int hooks = 0;
  const Started first(context, call(pool, [&gate] { gate.pass(); }));
  Started second(context, call_with_hook(pool, [&ran] { ran = true; }, [&hooks] { ++hooks; }));
  nni_test::settle(context);

  second.cancel();
  gate.open();
  finish(context, first);
  finish(context, second);

  CHECK(second.cancelled());
  CHECK_FALSE(ran);
  CHECK(hooks == 0);
}

TEST_CASE("offload: the hook makes a running call return, once, and the call is waited for",
          "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);
  Gate begun;
  Gate stop;
  int hooks = 0;
  std::atomic<bool> returned{false};
  Started work(
      context,
      call_with_hook(
          pool,
          [&] {
            begun.open();
            stop.pass();
            returned = true;
          },
          [&] {
            if (hooks++ == 0) stop.open();
          }));
  nni_test::settle(context);
  begun.pass();

  work.cancel();
  work.cancel();
  finish(context, work);

  CHECK(returned);
  CHECK(hooks == 1);
}

TEST_CASE("offload: a cancelled call without a hook is waited for", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(1);
  Gate begun;
  Gate gate;
  int ended = 0;
  Started work(
      context,
      call_then_count(
          pool,
          [&] {
            begun.open();
            gate.pass();
          },
          ended));
  nni_test::settle(context);
  begun.pass();

  work.cancel();
  nni_test::settle(context);
  CHECK_FALSE(work.done());

  gate.open();
  finish(context, work);
  CHECK(ended == 1);
}

TEST_CASE("offload: calls on a strand of the pool do not overlap", "[async][offload][threads]") {
  boost::asio::io_context context(1);
  boost::asio::thread_pool pool(4);
  const boost::asio::any_io_executor lane = boost::asio::make_strand(pool.get_executor());
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  const std::function<void()> body = [&] {
    if (inside.fetch_add(1) != 0) overlapped = true;
    std::this_thread::yield();
    inside.fetch_sub(1);
  };

  std::vector<Started> all;
  for (int i = 0; i < 200; ++i) all.emplace_back(context, call_on(lane, body));
  for (const Started& one : all) finish(context, one);

  CHECK_FALSE(overlapped);
}

TEST_CASE("offload: a runtime that dies waits for running calls and frees the coroutines",
          "[async][offload][threads]") {
  int living = 0;
  Gate gate;
  {
    nni::Runtime runtime(nni::RuntimeOptions{.threads = 1});
    const Started running(runtime.io(), hold(runtime.context().pool(), gate, Counted(living)));
    const Started queued(runtime.io(), hold(runtime.context().pool(), gate, Counted(living)));
    nni_test::settle(runtime.io());
    REQUIRE(living == 2);
    gate.open();
  }
  CHECK(living == 0);
}
