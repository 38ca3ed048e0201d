// The test macros themselves.
#include "support/co_test.hpp"

#include <stdexcept>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

nni::awaitable<int> answer(boost::asio::any_io_executor executor) {
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
  co_return 42;
}

nni::awaitable<void> throws(nni::Context&) {
  throw std::runtime_error("seen by the caller");
  co_return;
}

nni::awaitable<void> waits_for_ever(nni::Context&) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
  timer.expires_at(boost::asio::steady_timer::time_point::max());
  co_await timer.async_wait(boost::asio::use_awaitable);
}

}  // namespace

CO_TEST_CASE("co_test: the body is a coroutine that may await", "[support]") {
  const int got = co_await answer(ctx.executor());
  CHECK(got == 42);
}

TEST_CASE("co_test: what the body throws reaches the test", "[support]") {
  CHECK_THROWS_WITH(nni_test::run_coroutine(&throws), "seen by the caller");
}

// [!shouldfail] turns the failure, which is the behaviour under test, into a pass.
TEST_CASE("co_test: a body that never returns fails the test", "[support][!shouldfail]") {
  nni_test::run_coroutine(&waits_for_ever, std::chrono::milliseconds(1));
}
