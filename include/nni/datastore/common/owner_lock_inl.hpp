#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <boost/json.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/common/owner_lock.hpp>
#include <nni/files/open.hpp>

namespace nni::datastore::detail {

/// Returns the first line that a descriptor reads, at most 4 KiB, and closes it.
NNI_INLINE std::string first_line(int descriptor) {
  std::string text;
  static_cast<void>(files::read_and_close(descriptor, 4096, false, text));
  return text.substr(0, text.find('\n'));
}
NNI_INLINE std::string first_line(const char* file) { return first_line(files::open_any(file, O_RDONLY)); }

/// Returns the start time of this process: the kernel counts ticks since the boot of the machine.
NNI_INLINE TimePoint process_start() {
  std::string line = first_line("/proc/self/stat");
  // The name in parentheses may contain blanks and parentheses itself; the start is the 20th field after it.
  line.erase(0, line.rfind(')') + 1);
  std::istringstream fields(line);
  std::string field;
  for (int skipped = 0; skipped < 20; ++skipped) fields >> field;
  const long long ticks = std::atoll(field.c_str());

  std::string machine;
  static_cast<void>(
      files::read_and_close(files::open_any("/proc/stat", O_RDONLY), std::size_t{1} << 24, false, machine));
  const std::size_t boot = machine.find("\nbtime ");
  const long long booted = boot == std::string::npos ? 0 : std::atoll(machine.c_str() + boot + 7);
  return from_epoch_ms(booted * 1000 + ticks * 1000 / ::sysconf(_SC_CLK_TCK));
}

NNI_INLINE Owner Owner::current() {
  Owner owner;
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) owner.host = name;
  owner.boot_id = first_line("/proc/sys/kernel/random/boot_id");
  owner.pid = ::getpid();
  owner.program = first_line("/proc/self/comm");
  owner.since = process_start();
  return owner;
}

NNI_INLINE std::string owner_text(const Owner& owner) {
  json::object text;
  text["program"] = owner.program;
  text["pid"] = owner.pid;
  text["host"] = owner.host;
  text["boot_id"] = owner.boot_id;
  text["since"] = to_epoch_ms(owner.since);
  return to_json_text(json::value(std::move(text))) + "\n";
}

/// Describes the owner of a lock, for people. The file may be empty when its owner has just created it.
NNI_INLINE std::string describe_owner(const std::filesystem::path& file) {
  boost::system::error_code failure;
  const json::value parsed = parse_json(first_line(files::open_own(file.c_str(), O_RDONLY)), failure);
  const json::object* members = failure ? nullptr : parsed.if_object();
  const auto text = [members](std::string_view key) {
    const json::value* value = members != nullptr ? members->if_contains(key) : nullptr;
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string("?");
  };
  const auto number = [members](std::string_view key) -> long long {
    const json::value* value = members != nullptr ? members->if_contains(key) : nullptr;
    return value != nullptr && value->is_int64() ? value->get_int64() : 0;
  };
  if (members == nullptr) return "another process";
  return text("program") + " (process " + std::to_string(number("pid")) + " on " + text("host") + ", since " +
         to_local_string(from_epoch_ms(number("since"))) + ")";
}

NNI_INLINE Error cannot_lock(const std::filesystem::path& path, const char* what, boost::system::error_code reason) {
  return Error(Errc::storage_failed,
               std::string(what) + " " + path.string() + ": " + reason.message() +
                   (reason.category() == files::refusal_category() ? "" : "; choose a directory that you may write"));
}

NNI_INLINE OwnerLock::OwnerLock(const std::filesystem::path& directory) : path_(directory / "owner") {
  for (;;) {
    const int file = files::open_own(path_.c_str(), O_RDWR | O_CREAT, 0644);
    if (file < 0) throw cannot_lock(path_, "cannot open", files::error_of(file));
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      const bool held = errno == EWOULDBLOCK;
      const Error other = cannot_lock(path_, "cannot lock", files::error_of(-errno));
      ::close(file);
      if (!held) throw other;
      throw Error(
          Errc::in_use, "experiment " + directory.filename().string() + " is in use by " + describe_owner(path_) +
                            "; stop that process first, or open the experiment read-only");
    }
    // The last owner removes the file while it still holds the lock: the locked file may be unlinked by now.
    struct stat locked{};
    struct stat named{};
    if (::fstat(file, &locked) == 0 && ::lstat(path_.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
        locked.st_dev == named.st_dev) {
      file_ = file;
      break;
    }
    ::close(file);
  }
  const std::string text = owner_text(Owner::current());
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    const Error failure = cannot_lock(path_, "cannot write", files::error_of(-errno));
    ::unlink(path_.c_str());
    ::close(std::exchange(file_, -1));
    throw failure;
  }
}

NNI_INLINE OwnerLock::OwnerLock(OwnerLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

NNI_INLINE OwnerLock& OwnerLock::operator=(OwnerLock&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

NNI_INLINE OwnerLock::~OwnerLock() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace nni::datastore::detail
