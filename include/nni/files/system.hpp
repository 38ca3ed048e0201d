#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include <nni/core/macros.hpp>

namespace nni::files {

/// The system calls behind durable files.
///
/// A test derives from this class to record calls or to make single calls fail. Every
/// object of the library with durable files takes one, so nothing is global.
///
/// Each member is one system call and returns 0 or a count, or the negated `errno`. Thread-safe.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// Returns the real system, the shared default.
  [[nodiscard]] static const std::shared_ptr<System>& real();

  /// Opens a file of an experiment: open(2), without following a link (see `open_own`).
  /// @param flags  as for open(2); descriptors are not inherited by child programs
  /// @param mode   permissions of a file that is created
  /// @returns      a descriptor; or a negative number for `error_of`
  virtual int open(const std::filesystem::path& path, int flags, mode_t mode);
  /// Closes the descriptor `file`: close(2).
  virtual void close(int file) noexcept;
  /// Reads from `file` at `offset` (bytes from the start) up to `size` bytes: pread(2).
  /// @param to  receives them
  /// @returns   the number of bytes; 0 at the end of the file
  virtual ssize_t read(int file, char* to, std::size_t size, std::uint64_t offset);
  /// Writes to `file` at `offset` (bytes from the start) up to `size` bytes: pwrite(2).
  /// @param from  the bytes
  /// @returns     the number of written bytes
  virtual ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset);
  /// Sets the length of `file` to `size` bytes: ftruncate(2).
  virtual int truncate(int file, std::uint64_t size);

  /// Returns the length of `file` in bytes: fstat(2).
  virtual std::int64_t size(int file);

  /// Syncs content and length of `file` to the disk: fdatasync(2).
  virtual int sync(int file);

  /// Syncs the entries of a directory to the disk: fsync(2) of it.
  virtual int sync_directory(const std::filesystem::path& directory);

  /// Renames `from` to `to`, replacing an existing file: rename(2).
  virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
  /// Removes the name `path`: unlink(2).
  virtual int remove(const std::filesystem::path& path);
  /// Creates the directory `path` with the permissions `mode`: mkdir(2).
  virtual int make_directory(const std::filesystem::path& path, mode_t mode);
};

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/system_inl.hpp>
#endif
