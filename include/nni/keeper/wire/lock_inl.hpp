#pragma once

#include <cerrno>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/process/identity.hpp>

namespace nni::keeper {

NNI_INLINE Lock::~Lock() {
  if (file_ >= 0) ::close(file_);
}

NNI_INLINE Lock::Before Lock::acquire(const std::filesystem::path& path) {
  const auto fail = [&path](int error, const char* problem) {
    return Error(files::error_of(-error), "the lock " + path.string() + " " + problem);
  };
  const int file = files::open_own(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0) throw fail(-file, "cannot be opened");
  std::string content(256, '\0');
  const bool taken = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  const int reason = errno;
  const ssize_t size = ::pread(file, content.data(), content.size(), 0);
  content.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::string owner = content.substr(0, content.find(' '));
  if (taken) {
    ::close(file);
    if (reason != EWOULDBLOCK) throw fail(reason, "cannot be taken");
    throw Error(
        Errc::in_use, "the trials of " + path.parent_path().parent_path().string() + " are looked after by process " +
                          (owner.empty() ? std::string("that is just starting or ending") : owner));
  }
  file_ = file;

  Before before = Before::orderly;
  if (!content.empty())
    before = content.find(process::boot_id()) == std::string::npos ? Before::rebooted : Before::killed;
  const std::string own = std::to_string(::getpid()) + " " + process::boot_id() + "\n";
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, own.data(), own.size(), 0) != static_cast<ssize_t>(own.size()))
    throw fail(errno, "cannot be written");
  return before;
}

NNI_INLINE std::optional<pid_t> Lock::holder(const std::filesystem::path& path) {
  const int file = files::open_own(path.c_str(), O_RDONLY);
  if (file < 0) return std::nullopt;
  // A keeper that starts at this very moment takes this for another one, and is started again by its manager.
  const bool held = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  char content[32] = {};
  const ssize_t size = held ? ::pread(file, content, sizeof content - 1, 0) : 0;
  ::close(file);
  if (!held) return std::nullopt;
  return size > 0 ? static_cast<pid_t>(std::strtol(content, nullptr, 10)) : pid_t{0};
}

NNI_INLINE void Lock::release() noexcept {
  if (file_ < 0) return;
  (void)!::ftruncate(file_, 0);
  ::close(std::exchange(file_, -1));
}

}  // namespace nni::keeper
