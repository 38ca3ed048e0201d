#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/core/error.hpp>
#include <nni/process/pidfd.hpp>
#include <nni/process/reaper.hpp>

namespace nni::process {

namespace detail {

/// Before a free descriptor is looked for again.
inline constexpr std::chrono::milliseconds descriptor_pause{100};

NNI_INLINE Exit exit_of(const siginfo_t& info) noexcept {
  Exit result;
  result.pid = info.si_pid;
  result.how = info.si_code == CLD_EXITED ? Exit::How::exited : Exit::How::signalled;
  result.code = info.si_status;
  return result;
}

/// waitid that is not disturbed by signals; true when a child answers.
NNI_INLINE bool wait_without_blocking(idtype_t type, id_t id, siginfo_t& info, int flags) noexcept {
  for (;;) {
    info = siginfo_t{};
    const int result = ::waitid(type, id, &info, WEXITED | WNOHANG | flags);
    if (result == 0) return info.si_pid != 0;
    if (errno != EINTR) return false;
  }
}

}  // namespace detail

class Reaper::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(boost::asio::any_io_executor executor, Scope scope, Handler handler)
      : executor_(std::move(executor)),
        scope_(scope),
        handler_(std::move(handler)),
        descriptor_(executor_),
        timer_(executor_) {}

  ~Core() { stop(); }

  void open() {
    const int file = scope_ == Scope::everything ? open_signals() : ::epoll_create1(EPOLL_CLOEXEC);
    if (file < 0)
      throw Error(boost::system::error_code(errno, boost::system::system_category()),
                  "the ends of child processes cannot be observed");
    descriptor_.assign(file);
    wait();
  }

  void stop() noexcept {
    stopped_ = true;
    for (const int file : pidfds_) ::close(file);
    pidfds_.clear();
    boost::system::error_code ignored;
    descriptor_.close(ignored);
    if (signals_) signals_->cancel(ignored);
    timer_.cancel();
  }

  void watch(pid_t child) {
    if (scope_ == Scope::everything) return;
    const int file = open_pidfd(child);
    if (file < 0 && (errno == EMFILE || errno == ENFILE)) return watch_later(child);
    if (file < 0) return watch_by_signal(child);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(child) << 32 | static_cast<std::uint32_t>(file);
    if (::epoll_ctl(descriptor_.native_handle(), EPOLL_CTL_ADD, file, &event) != 0) {
      ::close(file);
      return watch_by_signal(child);
    }
    pidfds_.insert(file);
  }

 private:
  static int open_signals() {
    sigset_t set;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    return ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  void wait() {
    descriptor_.async_wait(
        boost::asio::posix::descriptor_base::wait_read,
        [self = shared_from_this()](const boost::system::error_code& failure) {
          if (failure || self->stopped_) return;
          if (self->scope_ == Scope::everything)
            self->reap_everything();
          else
            self->reap_watched();
          if (!self->stopped_) self->wait();
        });
  }

  void reap_everything() {
    // Signals of one kind are merged: one read takes all, and only then does the loop below look for children.
    std::array<signalfd_siginfo, 4> drained;
    while (::read(descriptor_.native_handle(), drained.data(), sizeof drained) > 0) {
    }
    siginfo_t info;
    while (!stopped_ && detail::wait_without_blocking(P_ALL, 0, info, WNOWAIT)) {
      handler_(detail::exit_of(info));
      detail::wait_without_blocking(P_PID, static_cast<id_t>(info.si_pid), info, 0);
    }
  }

  void reap_watched() {
    std::array<epoll_event, 64> ready;
    for (;;) {
      const int count = ::epoll_wait(descriptor_.native_handle(), ready.data(), static_cast<int>(ready.size()), 0);
      for (int at = 0; at < count && !stopped_; ++at) {
        const std::uint64_t key = ready[static_cast<std::size_t>(at)].data.u64;
        const int file = static_cast<int>(key & 0xffffffffU);
        reap(static_cast<pid_t>(key >> 32));
        pidfds_.erase(file);
        ::close(file);
      }
      if (count < static_cast<int>(ready.size()) || stopped_) return;
    }
  }

  /// A child that is known to have ended, or whose status somebody else took.
  void reap(pid_t child) {
    siginfo_t info;
    if (detail::wait_without_blocking(P_PID, static_cast<id_t>(child), info, WNOWAIT)) {
      handler_(detail::exit_of(info));
      detail::wait_without_blocking(P_PID, static_cast<id_t>(child), info, 0);
    } else {
      handler_(Exit{child, Exit::How::unknown, 0});
    }
  }

  // Without a free descriptor nothing signals an end, so each child is looked at until there is one.
  void watch_later(pid_t child) {
    unwatched_.push_back(child);
    if (unwatched_.size() > 1) return;
    timer_.expires_after(detail::descriptor_pause);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& failure) {
      if (failure || self->stopped_) return;
      for (const pid_t one : std::exchange(self->unwatched_, {})) {
        if (self->stopped_) return;
        if (has_ended(one))
          self->reap(one);
        else
          self->watch(one);
      }
    });
  }

  /// Also when somebody else took its status.
  static bool has_ended(pid_t child) noexcept {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
    return result == 0 ? info.si_pid != 0 : errno == ECHILD;
  }

  // Kernels before 5.3 and some tools have no pidfd: SIGCHLD and a look at each child replace it.
  void watch_by_signal(pid_t child) {
    by_signal_.insert(child);
    if (!signals_) {
      signals_.emplace(executor_, SIGCHLD);
      wait_for_signal();
    }
    // It may have ended before anybody listened.
    boost::asio::post(executor_, [self = shared_from_this()] { self->look_at_each(); });
  }

  void wait_for_signal() {
    signals_->async_wait([self = shared_from_this()](const boost::system::error_code& failure, int) {
      if (failure || self->stopped_) return;
      self->look_at_each();
      if (!self->stopped_) self->wait_for_signal();
    });
  }

  void look_at_each() {
    const std::vector<pid_t> children(by_signal_.begin(), by_signal_.end());
    for (const pid_t child : children) {
      if (stopped_) return;
      if (!has_ended(child)) continue;
      by_signal_.erase(child);
      reap(child);
    }
  }

  boost::asio::any_io_executor executor_;
  Scope scope_;
  Handler handler_;
  boost::asio::posix::stream_descriptor descriptor_;
  std::set<int> pidfds_;
  std::optional<boost::asio::signal_set> signals_;
  std::set<pid_t> by_signal_;
  std::vector<pid_t> unwatched_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
};

NNI_INLINE Reaper::Reaper(boost::asio::any_io_executor executor, Scope scope, Handler handler)
    : core_(std::make_shared<Core>(std::move(executor), scope, std::move(handler))) {
  core_->open();
}

NNI_INLINE Reaper::~Reaper() { core_->stop(); }

NNI_INLINE void Reaper::watch(pid_t child) { core_->watch(child); }

}  // namespace nni::process
