#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include <nni/core/macros.hpp>

namespace nni::files {

/// The calls of the operating system that durable files are made of.
///
/// This class makes them; a test derives from it to write down what happens or to let single calls fail. Every
/// object of the library that keeps durable files takes one, so nothing is global.
///
/// Each member is one call and answers as the kernel does: 0 or a count, or the negated `errno`. They may be called
/// from several threads.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// The system as it is; shared by everybody who names no other.
  [[nodiscard]] static const std::shared_ptr<System>& real();

  /// @param flags  as for open(2); files are never inherited by programs that are started
  /// @returns      a descriptor
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode);
  virtual void close(int file) noexcept;
  virtual ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset);
  virtual ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset);
  virtual int truncate(int file, std::uint64_t size);

  /// Bytes in the file.
  virtual std::int64_t size(int file);

  /// Brings content and size to the disk (fdatasync).
  virtual int sync(int file);

  /// Brings the names in a directory to the disk.
  virtual int sync_directory(const std::filesystem::path& directory);

  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int remove(const std::filesystem::path& path);
  virtual int make_directory(const std::filesystem::path& path, mode_t mode);
};

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/impl/system.ipp>
#endif
