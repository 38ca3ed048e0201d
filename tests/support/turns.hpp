#pragma once

/// @file
/// Lets everything that is ready run, without waiting for time to pass.

#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>

namespace nni_test {

/// Goes to the end of the executor's queue so many times.
inline nni::awaitable<void> turns(nni::Context& ctx, int count = 8) {
  for (int turn = 0; turn < count; ++turn) {
    auto work = boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
    co_await std::move(work);
  }
}

}  // namespace nni_test
