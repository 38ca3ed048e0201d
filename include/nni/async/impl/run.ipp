#pragma once

#include <memory>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include <nni/async/run.hpp>
#include <nni/core/error.hpp>

namespace nni::async::detail {

NNI_INLINE void drive(boost::asio::io_context& context, awaitable<void> work) {
  auto done = std::make_shared<bool>(false);
  boost::asio::co_spawn(context, std::move(work), [done, &context](std::exception_ptr) {
    *done = true;
    context.stop();
  });
  while (!*done) {
    context.restart();
    // The coroutine itself counts as work, so the context runs dry only if somebody destroyed it.
    if (context.run() == 0 && !context.stopped())
      throw Error{Errc::internal, "run: the context ended before the work did"};
  }
  context.restart();
}

}  // namespace nni::async::detail
