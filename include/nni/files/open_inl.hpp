#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nni/files/open.hpp>

namespace nni::files {

namespace detail {

/// Answers below the negative of this are refusals: no `errno` is that large.
inline constexpr int first_refusal = 4096;

[[nodiscard]] constexpr int answer_of(Refusal reason) noexcept { return -(first_refusal + static_cast<int>(reason)); }

class RefusalCategory final : public boost::system::error_category {
 public:
  // The id is a random constant: equal in every binary, so that codes compare across libraries.
  constexpr RefusalCategory() noexcept : error_category(0x6e6e6946'70c2d95bULL) {}

  const char* name() const noexcept override { return "nni.refusal"; }

  std::string message(int value) const override {
    switch (static_cast<Refusal>(value)) {
      case Refusal::link:
        return "it is a symbolic link, and links in an experiment's directory are not followed; remove the link, or "
               "put what it stands for in its place";
      case Refusal::not_a_file: return "it is not a regular file; move it away";
      case Refusal::several_names:
        return "it is a hard link, so that a write would change another name as well; replace it by a copy";
      case Refusal::foreign_file: return "it belongs to another user; replace it by a copy of your own";
      case Refusal::not_a_directory: return "it is not a directory; move it away";
      case Refusal::foreign_directory:
        return "it belongs to another user, who could make this program overwrite your files; copy it into a directory "
               "of your own (cp -r), or choose another one";
      case Refusal::writable_by_anybody:
        return "it is world-writable, so that any user could make this program overwrite your files; remove that "
               "permission "
               "(chmod o-w), or choose another directory";
    }
    return "refused for the unknown reason " + std::to_string(value);
  }

  boost::system::error_condition default_error_condition(int) const noexcept override {
    return make_error_condition(boost::system::errc::operation_not_permitted);
  }
};

/// Returns the owner of a file's directory, if it can be determined.
NNI_INLINE std::optional<uid_t> owner_of_directory(const char* path) noexcept {
  char above[4096];
  std::size_t size = 0;
  std::size_t end = 0;
  for (; path[size] != '\0' && size + 1 < sizeof above; ++size) {
    above[size] = path[size];
    if (path[size] == '/') end = size + 1;
  }
  if (path[size] != '\0') return std::nullopt;
  if (end == 0) above[end++] = '.';
  above[end] = '\0';
  struct stat info{};
  if (::stat(above, &info) != 0) return std::nullopt;
  return info.st_uid;
}

/// Returns the reason to reject a file; nothing if it is acceptable.
NNI_INLINE std::optional<Refusal> reason_against(const struct stat& info, const char* path, bool to_write) noexcept {
  if (S_ISLNK(info.st_mode)) return Refusal::link;
  if (!S_ISREG(info.st_mode)) return Refusal::not_a_file;
  if (!to_write) return std::nullopt;
  if (info.st_nlink > 1) return Refusal::several_names;
  // Some network file systems assign all files to one user.
  if (info.st_uid != ::geteuid() && owner_of_directory(path) != info.st_uid) return Refusal::foreign_file;
  return std::nullopt;
}

/// Returns owner and permissions that a new file of this process gets in a directory.
NNI_INLINE std::optional<struct stat> new_file_in(const std::filesystem::path& directory) {
  const std::string name = (directory / (".nni-rights-" + std::to_string(::getpid()))).string();
  const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return std::nullopt;
  struct stat info{};
  const bool known = ::fstat(file, &info) == 0;
  ::unlink(name.c_str());
  ::close(file);
  if (!known) return std::nullopt;
  return info;
}

NNI_INLINE std::optional<Refusal> reason_against(const struct stat& info, const std::filesystem::path& directory) {
  if (S_ISLNK(info.st_mode)) return Refusal::link;
  if (!S_ISDIR(info.st_mode)) return Refusal::not_a_directory;
  std::optional<Refusal> reason;
  if (info.st_uid != ::geteuid() && info.st_uid != 0)
    reason = Refusal::foreign_directory;
  else if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0)
    reason = Refusal::writable_by_anybody;
  if (!reason) return std::nullopt;
  // On a file system that does not distinguish users, owners and permissions mean nothing.
  const std::optional<struct stat> made = new_file_in(directory);
  const bool says_nothing =
      made && (reason == Refusal::foreign_directory
                   ? made->st_uid == info.st_uid && made->st_uid != ::geteuid()
                   : (made->st_mode & S_IWOTH) != 0);
  if (says_nothing) return std::nullopt;
  return reason;
}

}  // namespace detail

NNI_INLINE const boost::system::error_category& refusal_category() noexcept {
  static const detail::RefusalCategory category;
  return category;
}

NNI_INLINE boost::system::error_code error_of(std::int64_t answer) noexcept {
  if (answer >= 0) return {};
  if (answer <= -detail::first_refusal) return {static_cast<int>(-answer - detail::first_refusal), refusal_category()};
  return {static_cast<int>(-answer), boost::system::system_category()};
}

NNI_INLINE int open_own(const char* path, int flags, mode_t mode) noexcept {
  const int file = ::open(path, (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode);
  if (file < 0) {
    if (errno == ELOOP) return detail::answer_of(Refusal::link);
    if (errno == ENXIO) return detail::answer_of(Refusal::not_a_file);  // a FIFO without a reader, or a socket
    return -errno;
  }
  const auto give_up = [file](int answer) {
    ::close(file);
    return answer;
  };
  struct stat info{};
  if (::fstat(file, &info) != 0) return give_up(-errno);
  const bool to_write = (flags & O_ACCMODE) != O_RDONLY;
  if (const auto reason = detail::reason_against(info, path, to_write)) return give_up(detail::answer_of(*reason));
  // O_NONBLOCK was for the open only: a child that inherits the file must not get it.
  if (::fcntl(file, F_SETFL, flags & O_APPEND) != 0) return give_up(-errno);
  if ((flags & O_TRUNC) != 0 && info.st_size != 0 && ::ftruncate(file, 0) != 0) return give_up(-errno);
  return file;
}

NNI_INLINE int make_own(const char* path, mode_t mode) noexcept {
  for (int attempt = 0;; ++attempt) {
    const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file >= 0) return file;
    if (errno != EEXIST || attempt == 2) return -errno;
    if (::unlink(path) != 0 && errno != ENOENT) return -errno;
  }
}

NNI_INLINE int open_any(const char* path, int flags) noexcept {
  const int file = ::open(path, flags | O_CLOEXEC);
  return file >= 0 ? file : -errno;
}

NNI_INLINE boost::system::error_code check_own(const std::filesystem::path& file, bool to_write) noexcept {
  struct stat info{};
  if (::lstat(file.c_str(), &info) != 0) return errno == ENOENT ? boost::system::error_code() : error_of(-errno);
  if (const auto reason = detail::reason_against(info, file.c_str(), to_write))
    return error_of(detail::answer_of(*reason));
  return {};
}

NNI_INLINE boost::system::error_code read_and_close(
    int descriptor, std::size_t most, bool from_end, std::string& text) {
  text.clear();
  if (descriptor < 0) return error_of(descriptor);
  struct stat info{};
  boost::system::error_code failure;
  if (::fstat(descriptor, &info) != 0) failure = error_of(-errno);
  const auto size = static_cast<std::size_t>(std::max<off_t>(info.st_size, 0));
  if (!failure && from_end && size > most && ::lseek(descriptor, static_cast<off_t>(size - most), SEEK_SET) < 0)
    failure = error_of(-errno);
  char part[16 * 1024];
  while (!failure && text.size() < most) {
    const ssize_t got = ::read(descriptor, part, std::min(sizeof part, most - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failure = error_of(-errno);
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return failure;
}

NNI_INLINE boost::system::error_code check_directory(const std::filesystem::path& directory, bool follow) {
  struct stat info{};
  const int failed = follow ? ::stat(directory.c_str(), &info) : ::lstat(directory.c_str(), &info);
  if (failed != 0) return errno == ENOENT ? boost::system::error_code() : error_of(-errno);
  if (const auto reason = detail::reason_against(info, directory)) return error_of(detail::answer_of(*reason));
  return {};
}

}  // namespace nni::files
