#pragma once

#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/storage/detail/file_watcher.hpp>

namespace nni::storage::detail {

class FileWatcher::Core : public std::enable_shared_from_this<FileWatcher::Core> {
 public:
  explicit Core(const boost::asio::any_io_executor& executor) : notices_(executor) {
    const int descriptor = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (descriptor < 0)
      throw Error(Errc::unsupported, "storage: cannot watch files (inotify: " + std::string(std::strerror(errno)) +
                                         "); see fs.inotify.max_user_instances");
    notices_.assign(descriptor);
  }

  NNI_LAZY awaitable<void> changed(std::string file) {
    const std::shared_ptr<Core> keep = shared_from_this();
    if (!watches_.contains(file)) {
      begin(file);
      co_return;
    }
    const std::shared_ptr<Watch> watch = watches_.at(file);
    try {
      while (!watch->changed && !closed_) {
        auto notice = watch->arrived.wait();
        co_await std::move(notice);
      }
    } catch (...) {
      end(file);
      throw;
    }
    if (closed_) throw Error(Errc::closed, "storage: the file watcher is closed");
    watch->changed = false;
    // A moved or removed file is looked up again.
    if (watch->gone) end(file);
  }

  void close() {
    closed_ = true;
    notices_.close();
    for (auto& [file, watch] : watches_) watch->arrived.notify();
    files_.clear();
  }

 private:
  struct Watch {
    int number = -1;
    bool changed = false;
    bool gone = false;
    async::event arrived;
  };

  void begin(const std::string& file) {
    if (closed_) throw Error(Errc::closed, "storage: the file watcher is closed");
    struct statfs system{};
    if (::statfs(file.c_str(), &system) != 0) fail(file);
    // NFS, SMB, CIFS, SMB2, FUSE, 9P, CEPH, AFS: inotify does not report writes of other machines there.
    constexpr std::array<unsigned long, 8> shared{
        0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400, 0x5346414f};
    for (const unsigned long type : shared)
      if (static_cast<unsigned long>(system.f_type) == type)
        throw Error(Errc::unsupported, "storage: \"" + file + "\" lies on a file system that other machines write to");
    const int number = ::inotify_add_watch(
        notices_.native_handle(), file.c_str(), IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVE_SELF | IN_DELETE_SELF);
    if (number < 0) fail(file);
    const auto watch = std::make_shared<Watch>();
    watch->number = number;
    watches_[file] = watch;
    files_[number] = watch;
    listen();
  }

  void end(const std::string& file) {
    const auto found = watches_.find(file);
    if (found == watches_.end()) return;
    if (!closed_ && !found->second->gone) ::inotify_rm_watch(notices_.native_handle(), found->second->number);
    files_.erase(found->second->number);
    watches_.erase(found);
  }

  [[noreturn]] static void fail(const std::string& file) {
    if (errno == ENOENT) throw Error(Errc::not_found, "storage: cannot watch \"" + file + "\": there is no such file");
    throw Error(
        Errc::unsupported,
        "storage: cannot watch \"" + file + "\" (" + std::strerror(errno) + "); see fs.inotify.max_user_watches");
  }

  void listen() {
    if (std::exchange(listening_, true)) return;
    notices_.async_wait(
        boost::asio::posix::descriptor_base::wait_read,
        [self = shared_from_this()](const boost::system::error_code& failure) {
          self->listening_ = false;
          if (failure || self->closed_) return;
          self->read();
          if (!self->files_.empty()) self->listen();
        });
  }

  void read() {
    alignas(inotify_event) std::array<char, 16 * 1024> bytes;
    while (true) {
      const ssize_t size = ::read(notices_.native_handle(), bytes.data(), bytes.size());
      if (size <= 0) return;  // EAGAIN: no more events
      for (ssize_t at = 0; at < size;) {
        inotify_event notice{};
        std::memcpy(&notice, bytes.data() + at, sizeof notice);
        at += static_cast<ssize_t>(sizeof notice) + static_cast<ssize_t>(notice.len);
        take(notice);
      }
    }
  }

  void take(const inotify_event& notice) {
    if ((notice.mask & IN_Q_OVERFLOW) != 0) {
      // The kernel dropped events: all watches report a change.
      for (auto& [number, watch] : files_) tell(*watch);
      return;
    }
    const auto found = files_.find(notice.wd);
    if (found == files_.end()) return;
    const std::shared_ptr<Watch> watch = found->second;
    if ((notice.mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF)) != 0) watch->gone = true;
    tell(*watch);
  }

  static void tell(Watch& watch) {
    watch.changed = true;
    watch.arrived.notify();
  }

  boost::asio::posix::stream_descriptor notices_;
  std::unordered_map<std::string, std::shared_ptr<Watch>> watches_;
  std::unordered_map<int, std::shared_ptr<Watch>> files_;  // by watch descriptor
  bool listening_ = false;
  bool closed_ = false;
};

NNI_INLINE FileWatcher::FileWatcher(boost::asio::any_io_executor executor)
    : core_(std::make_shared<Core>(std::move(executor))) {}

NNI_INLINE FileWatcher::~FileWatcher() { core_->close(); }

NNI_LAZY_BODY awaitable<void> FileWatcher::changed(std::filesystem::path file) { return core_->changed(file.string()); }

NNI_INLINE void FileWatcher::close() { core_->close(); }

}  // namespace nni::storage::detail
