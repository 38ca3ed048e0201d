#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>

namespace nni {

namespace detail {

/// The state of the signal handler: the number of signals so far and a pipe that wakes the executor.
struct StopSignalState {
  std::atomic<int> pipe{-1};
  std::atomic<int> seen{0};
};
static_assert(std::atomic<int>::is_always_lock_free);

NNI_INLINE StopSignalState& stop_signal_state() noexcept {
  static constinit StopSignalState state;
  return state;
}

extern "C" inline void nni_on_stop_signal(int) {
  StopSignalState& state = stop_signal_state();
  // A handler interrupts arbitrary code, so it must leave errno unchanged.
  const int error_before = errno;
  if (state.seen.fetch_add(1) > 0) ::_exit(130);  // 128 + SIGINT, as shells report it
  const char byte = 0;
  [[maybe_unused]] const auto written = ::write(state.pipe.load(), &byte, 1);
  errno = error_before;
}

}  // namespace detail

class Runtime::StopSignals {
 public:
  StopSignals(boost::asio::io_context& io, std::function<void()> handler) : wake_(io) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
      throw Error{
          boost::system::error_code(errno, boost::system::system_category()), "cannot create a pipe for stop signals"};
    wake_.assign(ends[0]);
    write_end_ = ends[1];

    int none = -1;
    if (!detail::stop_signal_state().pipe.compare_exchange_strong(none, write_end_)) {
      ::close(write_end_);
      throw Error{Errc::in_use,
                  "another experiment or runtime of this process already handles SIGINT and SIGTERM; set "
                  ".handle_signals = false in the options of one of them"};
    }
    detail::stop_signal_state().seen = 0;

    struct sigaction action{};
    action.sa_handler = &detail::nni_on_stop_signal;
    action.sa_flags = SA_RESTART;  // blocking calls of the user's threads must not fail with EINTR
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &interrupt_before_);
    ::sigaction(SIGTERM, &action, &terminate_before_);

    wake_.async_wait(
        boost::asio::posix::stream_descriptor::wait_read,
        [handler = std::move(handler)](boost::system::error_code failure) {
          if (!failure) handler();
        });
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  ~StopSignals() {
    ::sigaction(SIGINT, &interrupt_before_, nullptr);
    ::sigaction(SIGTERM, &terminate_before_, nullptr);
    detail::stop_signal_state().pipe = -1;
    ::close(write_end_);
  }

 private:
  boost::asio::posix::stream_descriptor wake_;
  int write_end_ = -1;
  struct sigaction interrupt_before_{};
  struct sigaction terminate_before_{};
};

namespace detail {

NNI_INLINE std::size_t pool_size(std::size_t wanted) noexcept {
  if (wanted > 0) return wanted;
  // Blocking calls mostly wait for disks and networks: a few threads suffice, but a single one would serialize them.
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 2, 8);
}

}  // namespace detail

NNI_INLINE Runtime::Runtime(RuntimeOptions options) : io_(1), pool_(detail::pool_size(options.threads)) {
  ContextOptions settings;
  settings.log = std::move(options.log);
  settings.clock = options.clock;
  settings.shutdown_limit = options.shutdown_limit;
  context_.emplace(io_.get_executor(), pool_, std::move(settings));
}

NNI_INLINE Runtime::~Runtime() = default;

NNI_INLINE void Runtime::on_stop_signal(std::function<void()> handler) {
  signals_.reset();
  signals_ = std::make_unique<StopSignals>(io_, std::move(handler));
}

NNI_INLINE void Runtime::restore_signals() noexcept { signals_.reset(); }

}  // namespace nni
