#pragma once

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nni/files/open.hpp>
#include <nni/files/system.hpp>

namespace nni::files {

NNI_INLINE const std::shared_ptr<System>& System::real() {
  static const std::shared_ptr<System> system = std::make_shared<System>();
  return system;
}

NNI_INLINE int System::open(const std::filesystem::path& path, int flags, mode_t mode) {
  return open_own(path.c_str(), flags, mode);
}

NNI_INLINE void System::close(int file) noexcept { ::close(file); }

NNI_INLINE ssize_t System::read(int file, char* to, std::size_t size, std::uint64_t offset) {
  const ssize_t got = ::pread(file, to, size, static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

NNI_INLINE ssize_t System::write(int file, const char* from, std::size_t size, std::uint64_t offset) {
  const ssize_t got = ::pwrite(file, from, size, static_cast<off_t>(offset));
  return got >= 0 ? got : -errno;
}

NNI_INLINE int System::truncate(int file, std::uint64_t size) {
  return ::ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : -errno;
}

NNI_INLINE std::int64_t System::size(int file) {
  struct stat info{};
  return ::fstat(file, &info) == 0 ? static_cast<std::int64_t>(info.st_size) : -errno;
}

NNI_INLINE int System::sync(int file) { return ::fdatasync(file) == 0 ? 0 : -errno; }

NNI_INLINE int System::sync_directory(const std::filesystem::path& directory) {
  const int file = open_any(directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (file < 0) return file;
  const int result = ::fsync(file) == 0 ? 0 : -errno;
  ::close(file);
  return result;
}

NNI_INLINE int System::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : -errno;
}

NNI_INLINE int System::remove(const std::filesystem::path& path) { return ::unlink(path.c_str()) == 0 ? 0 : -errno; }

NNI_INLINE int System::make_directory(const std::filesystem::path& path, mode_t mode) {
  return ::mkdir(path.c_str(), mode) == 0 ? 0 : -errno;
}

}  // namespace nni::files
