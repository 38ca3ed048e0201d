#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <nni/async/event.hpp>
#include <nni/async/lift.hpp>
#include <nni/async/run.hpp>
#include <nni/async/runtime.hpp>

#include "helpers.hpp"
#include "support/catch.hpp"

using nni::awaitable;
using nni::Runtime;
using nni_test::Counted;
using nni_test::Started;

namespace {

awaitable<std::string> greet(std::string name) {
  co_await nni_test::hop();
  co_return "hello " + name;
}

awaitable<void> fail() {
  co_await nni_test::hop();
  throw nni::Error(nni::Errc::not_found, "nothing there");
}

/// No default constructor, not copyable.
class Odd {
 public:
  explicit Odd(int value) : value_(std::make_unique<int>(value)) {}
  [[nodiscard]] int value() const { return *value_; }

 private:
  std::unique_ptr<int> value_;
};

awaitable<Odd> odd() { co_return Odd(3); }

awaitable<void> wait_forever(nni::async::event& never, Counted) { co_await never.wait(); }

awaitable<int> lifted() {
  int sum = 0;
  auto value = nni::async::lift(1);
  sum += co_await std::move(value);
  auto work = nni::async::lift(nni::async::lift(20));
  sum += co_await std::move(work);
  const auto at_once = [](int x) { return x; };
  auto answer = nni::async::lift_call(at_once, 300);
  sum += co_await std::move(answer);
  const auto later = [](int x) { return nni::async::lift(x); };
  auto promise = nni::async::lift_call(later, 4000);
  sum += co_await std::move(promise);
  const auto silent = [&sum](int x) { sum += x; };
  auto nothing = nni::async::lift_call(silent, 50000);
  co_await std::move(nothing);
  co_return sum;
}

/// Exit code of a child process that runs a function; signals count as 128 + number, as in a shell.
template <class F>
int exit_code_of(F body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("run: yields the result of an awaitable, of any movable type", "[async][run]") {
  CHECK(nni::async::run(greet("you")) == "hello you");
  CHECK(nni::async::run(odd()).value() == 3);
}

TEST_CASE("run: throws what the work throws, and the context can be used again", "[async][run]") {
  boost::asio::io_context context;
  CHECK_THROWS_WITH(nni::async::run(context, fail()), "nothing there");
  CHECK(nni::async::run(context, greet("again")) == "hello again");
}

TEST_CASE("run: other work of the context goes on, and does not hold it back", "[async][run]") {
  boost::asio::io_context context;
  nni::async::event never;
  const Started quick(context, nni_test::hop());
  const Started endless(context, nni_test::wait_for(never));

  nni::async::run(context, greet("you"));

  CHECK(quick.done());
  CHECK_FALSE(endless.done());
}

TEST_CASE("run: works where there is no io_context of ours: a context over a given executor", "[async][run]") {
  boost::asio::io_context mine(1);
  boost::asio::thread_pool pool(1);
  nni::Context context(mine.get_executor(), pool);

  CHECK(context.executor() == mine.get_executor());
  CHECK(context.shutdown_limit() == std::chrono::seconds(60));
  CHECK_FALSE(context.log().wants(nni::LogLevel::critical));
}

TEST_CASE("lift: values, awaitables and calls of either kind become awaitables", "[async][lift]") {
  CHECK(nni::async::run(lifted()) == 54321);
}

TEST_CASE("Runtime: gives its options to the context", "[async][runtime]") {
  std::string seen;
  nni::RuntimeOptions options;
  options.log = nni::Log([&seen](nni::LogLevel, std::string_view, std::string_view text) { seen = text; });
  options.shutdown_limit = std::chrono::seconds(3);
  Runtime runtime(std::move(options));

  runtime.context().log().info("test", "a line");

  CHECK(seen == "a line");
  CHECK(runtime.context().shutdown_limit() == std::chrono::seconds(3));
  CHECK(runtime.context().clock().is_system());
}

TEST_CASE("Runtime: frees coroutines that never ended", "[async][runtime]") {
  int living = 0;
  nni::async::event never;
  {
    Runtime runtime;
    const Started work(runtime.io(), wait_forever(never, Counted(living)));
    runtime.run(nni_test::hop());
    REQUIRE(living == 1);
  }
  CHECK(living == 0);
}

TEST_CASE("Runtime: the first stop signal calls the handler on the executor", "[async][runtime]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  Runtime runtime;
  nni::async::event stopped;
  int calls = 0;
  std::thread::id where;
  runtime.on_stop_signal([&] {
    ++calls;
    where = std::this_thread::get_id();
    stopped.notify();
  });
  const Started waiter(runtime.io(), nni_test::wait_for(stopped));
  nni_test::settle(runtime.io());

  std::jthread([signal] { ::kill(::getpid(), signal); }).join();
  while (!waiter.done()) {
    runtime.io().restart();
    runtime.io().run_one();
  }

  CHECK(calls == 1);
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("Runtime: only one of a process handles stop signals, and a handler can be replaced", "[async][runtime]") {
  auto first = std::make_unique<Runtime>();
  Runtime second;
  first->on_stop_signal([] {});
  first->on_stop_signal([] {});
  CHECK_THROWS_AS(second.on_stop_signal([] {}), nni::Error);

  first.reset();
  second.on_stop_signal([] {});
}

TEST_CASE("Runtime: the second stop signal ends the process even when the executor is stuck", "[async][runtime]") {
  const int code = exit_code_of([] {
    Runtime runtime;
    runtime.on_stop_signal([] {});
    ::raise(SIGINT);
    ::raise(SIGTERM);
  });
  CHECK(code == 130);
}

TEST_CASE("Runtime: one signal does not end the process", "[async][runtime]") {
  const int code = exit_code_of([] {
    Runtime runtime;
    runtime.on_stop_signal([] {});
    ::raise(SIGINT);
  });
  CHECK(code == 0);
}

TEST_CASE("Runtime: the former reaction to signals comes back", "[async][runtime]") {
  const int code = exit_code_of([] {
    std::signal(SIGTERM, SIG_DFL);
    {
      Runtime runtime;
      runtime.on_stop_signal([] {});
    }
    ::raise(SIGTERM);
  });
  CHECK(code == 128 + SIGTERM);
}
