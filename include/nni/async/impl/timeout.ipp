#pragma once

#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>

namespace nni::async::detail {

NNI_INLINE void throw_timed_out(const std::string& what, Duration limit) {
  throw Error{Errc::timed_out, (what.empty() ? "" : what + ": ") + "no result within " + to_string(limit)};
}

}  // namespace nni::async::detail
