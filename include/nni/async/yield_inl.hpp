#pragma once

#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/yield.hpp>

namespace nni::async {

NNI_LAZY_BODY awaitable<void> yield(boost::asio::any_io_executor executor) {
  auto turn = boost::asio::post(executor, boost::asio::use_awaitable);
  co_await std::move(turn);
}

}  // namespace nni::async
