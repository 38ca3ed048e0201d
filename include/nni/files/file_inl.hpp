#pragma once

#include <cerrno>
#include <utility>

#include <fcntl.h>

#include <nni/files/file.hpp>
#include <nni/files/open.hpp>

namespace nni::files {

NNI_INLINE File::File(File&& other) noexcept
    : system_(std::move(other.system_)), file_(std::exchange(other.file_, -1)), poison_(other.poison_.exchange(0)) {}

NNI_INLINE File& File::operator=(File&& other) noexcept {
  if (this == &other) return *this;
  close();
  system_ = std::move(other.system_);
  file_ = std::exchange(other.file_, -1);
  poison_ = other.poison_.exchange(0);
  return *this;
}

NNI_INLINE boost::system::error_code File::open(
    const std::filesystem::path& path, Access access, std::shared_ptr<System> system, mode_t mode) {
  close();
  system_ = std::move(system);
  int flags = access == Access::read ? O_RDONLY : O_RDWR;
  if (access == Access::create) flags |= O_CREAT;
  if (access == Access::replace) flags |= O_CREAT | O_TRUNC;
  if (access == Access::fresh) flags |= O_CREAT | O_EXCL;
  int file = 0;
  do file = system_->open(path, flags, mode);
  while (file == -EINTR);
  if (file < 0) return error_of(file);
  file_ = file;
  return {};
}

NNI_INLINE void File::close() noexcept {
  if (file_ >= 0) system_->close(std::exchange(file_, -1));
  poison_ = 0;
}

NNI_INLINE boost::system::error_code File::read(
    char* to, std::size_t size, std::uint64_t offset, std::size_t& got) const {
  got = 0;
  while (got < size) {
    const ssize_t part = system_->read(file_, to + got, size - got, offset + got);
    if (part == -EINTR) continue;
    if (part < 0) return error_of(part);
    if (part == 0) break;  // end of the file
    got += static_cast<std::size_t>(part);
  }
  return {};
}

NNI_INLINE boost::system::error_code File::read_all(std::string& content) const {
  std::uint64_t bytes = 0;
  if (const auto failure = size(bytes)) return failure;
  content.resize(static_cast<std::size_t>(bytes));
  std::size_t got = 0;
  const auto failure = read(content.data(), content.size(), 0, got);
  content.resize(got);  // the file may have been truncated since `size`
  return failure;
}

NNI_INLINE boost::system::error_code File::write(std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t part = system_->write(file_, bytes.data(), bytes.size(), offset);
    if (part == -EINTR) continue;
    if (part < 0) return error_of(part);
    // POSIX permits a write of nothing without an error; a loop would never end.
    if (part == 0) return error_of(-ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(part));
    offset += static_cast<std::uint64_t>(part);
  }
  return {};
}

NNI_INLINE boost::system::error_code File::truncate(std::uint64_t size) {
  int answer = 0;
  do answer = system_->truncate(file_, size);
  while (answer == -EINTR);
  return error_of(answer);
}

NNI_INLINE boost::system::error_code File::size(std::uint64_t& bytes) const {
  const std::int64_t answer = system_->size(file_);
  if (answer >= 0) bytes = static_cast<std::uint64_t>(answer);
  return error_of(answer);
}

NNI_INLINE boost::system::error_code File::sync() {
  if (const auto before = poison()) return before;
  int answer = 0;
  do answer = system_->sync(file_);
  while (answer == -EINTR);
  if (answer < 0) set_poison(error_of(answer));
  return poison();  // another thread may have failed before
}

NNI_INLINE boost::system::error_code File::poison() const noexcept {
  return error_of(-static_cast<std::int64_t>(poison_.load()));
}

NNI_INLINE void File::set_poison(boost::system::error_code failure) noexcept {
  // Only the first error is kept: later ones may be consequences of it.
  int clean = 0;
  poison_.compare_exchange_strong(clean, failure.value());
}

}  // namespace nni::files
