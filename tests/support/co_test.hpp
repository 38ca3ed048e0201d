#pragma once

/// @file
/// Test cases whose body is a coroutine.

#include "support/catch.hpp"

#include <chrono>
#include <exception>
#include <functional>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/runtime.hpp>

namespace nni_test {

/// Longest time that a coroutine test may take. It only ends tests that hang, no test waits for it: long enough for a
/// sanitizer on a machine that does many other things.
inline constexpr std::chrono::seconds watchdog{90};

/// Runs a coroutine on a fresh runtime and rethrows what it throws.
/// @param body   called once
/// @param limit  the test fails when the coroutine has not returned by then
inline void run_coroutine(const std::function<nni::awaitable<void>(nni::Context&)>& body,
                          std::chrono::steady_clock::duration limit = watchdog) {
  // The outcome must outlive the runtime, which destroys coroutines that never finished.
  std::optional<std::exception_ptr> outcome;
  nni::Runtime runtime(nni::RuntimeOptions{.threads = 2});
  boost::asio::io_context& io = runtime.io();
  boost::asio::co_spawn(io, body(runtime.context()), [&outcome, &io](std::exception_ptr failure) {
    outcome = failure;
    io.stop();
  });
  io.run_for(limit);
  if (!outcome) FAIL("the coroutine did not finish in time; it waits for something that never happens");
  if (*outcome) std::rethrow_exception(*outcome);
}

}  // namespace nni_test

#define NNI_CO_TEST_CASE_(body, ...)                           \
  static ::nni::awaitable<void> body(::nni::Context&);         \
  TEST_CASE(__VA_ARGS__) { ::nni_test::run_coroutine(&body); } \
  static ::nni::awaitable<void> body([[maybe_unused]] ::nni::Context& ctx)
#define NNI_CO_TEST_NAME_2_(line) co_test_body_##line
#define NNI_CO_TEST_NAME_(line) NNI_CO_TEST_NAME_2_(line)

/// A test case whose body may `co_await`; it runs on the executor of a fresh `nni::Context& ctx`, with a watchdog.
///
/// Await into a named value, then assert: `auto got = co_await f(ctx); CHECK(got == 3);`. What is still pending
/// when the body returns is destroyed, not awaited.
#define CO_TEST_CASE(...) NNI_CO_TEST_CASE_(NNI_CO_TEST_NAME_(__LINE__), __VA_ARGS__)
