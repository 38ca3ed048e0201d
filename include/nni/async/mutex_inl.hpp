#pragma once

#include <nni/async/mutex.hpp>

namespace nni::async {

NNI_INLINE awaitable<mutex::guard> mutex::lock() {
  if (locked_) co_await waiters_.wait();
  locked_ = true;
  co_return guard(*this);
}

}  // namespace nni::async
