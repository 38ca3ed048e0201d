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

  /// Opens a file of an experiment: open(2), without following a link (see `open_own`).
  /// @param path   of the file
  /// @param flags  as for open(2); files are never inherited by programs that are started
  /// @param mode   rights of a file that is made
  /// @returns      a descriptor; also a negative number that only `error_of` understands
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode);
  /// Gives the descriptor `file` back: close(2).
  virtual void close(int file) noexcept;
  /// Reads from `file` at `offset` (bytes from the start) `size` bytes at most: pread(2).
  /// @param to  receives them
  /// @returns   how many there were; 0 at the end of the file
  virtual ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset);
  /// Writes to `file` at `offset` (bytes from the start) `size` bytes at most: pwrite(2).
  /// @param from  where they are
  /// @returns     how many were written
  virtual ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset);
  /// Makes `file` as long as `size` bytes: ftruncate(2).
  virtual int truncate(int file, std::uint64_t size);

  /// Bytes in `file`: fstat(2).
  virtual std::int64_t size(int file);

  /// Brings content and size of `file` to the disk: fdatasync(2).
  virtual int sync(int file);

  /// Brings the names in a directory to the disk: fsync(2) of it.
  virtual int sync_directory(const std::filesystem::path& directory);

  /// Gives the file `from` the name `to`, in place of what had it: rename(2).
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Removes the name `path`: unlink(2).
  virtual int remove(const std::filesystem::path& path);
  /// Makes the directory `path` with the rights `mode`: mkdir(2).
  virtual int make_directory(const std::filesystem::path& path, mode_t mode);
};

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/system_inl.hpp>
#endif
