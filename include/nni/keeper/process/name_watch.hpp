#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <utility>

#include <sys/inotify.h>
#include <unistd.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace nni::keeper::detail {

/// Calls back when names in a directory appear, vanish or change their files. Belongs to one executor.
class NameWatch {
 public:
  explicit NameWatch(const boost::asio::any_io_executor& executor) : events_(executor) {}

  /// Starts to watch.
  /// @param changed  called once for any number of changes, from the executor, until `close`
  /// @returns        false where the system cannot watch, for instance because its limit is reached
  bool open(const std::filesystem::path& directory, std::function<void()> changed) {
    const int file = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file < 0) return false;
    constexpr auto mask = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;
    if (::inotify_add_watch(file, directory.c_str(), mask) < 0) {
      ::close(file);
      return false;
    }
    events_.assign(file);
    changed_ = std::move(changed);
    wait();
    return true;
  }

  /// Stops watching.
  void close() {
    boost::system::error_code ignored;
    events_.close(ignored);
  }

 private:
  void wait() {
    events_.async_wait(
        boost::asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& failure) {
          if (failure) return;
          std::array<char, 4096> buffer;
          while (::read(events_.native_handle(), buffer.data(), buffer.size()) > 0) {
          }
          changed_();
          if (events_.is_open()) wait();
        });
  }

  boost::asio::posix::stream_descriptor events_;
  std::function<void()> changed_;
};

}  // namespace nni::keeper::detail
