#pragma once

#include <memory>
#include <utility>

#include <nni/async/detail/child.hpp>
#include <nni/async/run.hpp>
#include <nni/core/error.hpp>

namespace nni::async::detail {

NNI_LAZY_BODY void drive(boost::asio::io_context& context, awaitable<void> work) {
  auto done = std::make_shared<bool>(false);
  spawn(context.get_executor(), std::move(work), Completion([done, &context](const std::exception_ptr&) {
          *done = true;
          context.stop();
        }));
  while (!*done) {
    context.restart();
    context.run();
    // The completion shares the flag. If it was destroyed without being called, the coroutine can no longer end.
    if (!*done && done.use_count() == 1) throw Error{Errc::internal, "run: the work was destroyed before its end"};
  }
  context.restart();
}

}  // namespace nni::async::detail
