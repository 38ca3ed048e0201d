#pragma once

#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>

namespace nni::async::detail {

NNI_INLINE Alarm::Alarm(const boost::asio::any_io_executor& executor, Race& race, std::size_t index,
                        SteadyPoint deadline)
    : race_(std::make_shared<Race*>(&race)), timer_(executor, deadline) {
  timer_.async_wait([target = race_, index](boost::system::error_code failure) {
    // Counts as giving up: after a cancellation, a limit that is reached later does not decide the race.
    if (!failure && *target != nullptr) (*target)->ended(index, true);
  });
}

NNI_INLINE void throw_timed_out(const std::string& operation, Duration limit) {
  throw Error{Errc::timed_out, (operation.empty() ? "" : operation + ": ") + "no result within " + to_string(limit)};
}

}  // namespace nni::async::detail
