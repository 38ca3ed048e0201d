#pragma once

/// @file
/// Test cases whose body is a coroutine.

#include "support/catch.hpp"

#include <chrono>
#include <exception>
#include <functional>
#include <optional>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace nni_test {

/// Longest time that a coroutine test may take. It only ends tests that hang, no test waits for it;
/// programs that are slowed down by a sanitizer get more.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds watchdog{20};
#else
inline constexpr std::chrono::seconds watchdog{5};
#endif

/// Runs a coroutine on a fresh single-threaded context and rethrows what it throws.
/// @param body   called once
/// @param limit  the test fails when the coroutine has not returned by then
inline void run_coroutine(const std::function<boost::asio::awaitable<void>()>& body,
                          std::chrono::steady_clock::duration limit = watchdog) {
  // The outcome must outlive the context, whose destructor destroys coroutines that never finished.
  std::optional<std::exception_ptr> outcome;
  boost::asio::io_context context(1);
  boost::asio::co_spawn(context, body(), [&outcome](std::exception_ptr failure) { outcome = failure; });
  context.run_for(limit);
  if (!outcome) FAIL("the coroutine did not finish; it waits for something that never happens");
  if (*outcome) std::rethrow_exception(*outcome);
}

}  // namespace nni_test

#define NNI_CO_TEST_CASE_(body, ...)                           \
  static boost::asio::awaitable<void> body();                  \
  TEST_CASE(__VA_ARGS__) { ::nni_test::run_coroutine(&body); } \
  static boost::asio::awaitable<void> body()
#define NNI_CO_TEST_NAME_2_(line) co_test_body_##line
#define NNI_CO_TEST_NAME_(line) NNI_CO_TEST_NAME_2_(line)

/// A test case whose body may `co_await`; it runs on a fresh context with a watchdog.
///
/// Await into a named value, then assert: `auto got = co_await f(); CHECK(got == 3);`.
#define CO_TEST_CASE(...) NNI_CO_TEST_CASE_(NNI_CO_TEST_NAME_(__LINE__), __VA_ARGS__)
