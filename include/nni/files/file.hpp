#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>
#include <nni/files/system.hpp>

namespace nni::files {

/// Mode of opening a file.
enum class Access : std::uint8_t {
  read,     ///< an existing file, read-only
  write,    ///< an existing file, for reading and writing
  create,   ///< for reading and writing; created if missing
  replace,  ///< for reading and writing; truncated if it exists
  fresh     ///< for reading and writing; must not exist
};

/// A file for durable data, with an error code for every operation.
///
/// Reads and writes continue until they are complete or fail; there are no short reads and writes.
/// A failed write may have left a part in the file: the owner writes the same bytes again, or truncates the file.
///
/// After a failed `sync`, the file is *poisoned*. The kernel reports such a failure once and may mark the pages
/// as clean from then on, so a later successful sync would prove nothing: each one fails with the first error.
/// The content can become durable only in another file, or after the owner has written it again
/// (`lift_poison`).
///
/// Blocking. `sync` may run concurrently with a read or a write on another thread; all other calls are serialized.
class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  /// Opens a file; closes the one that was open before.
  /// @param path    of the file; its directory exists
  /// @param access  access mode, and whether the file may be created
  /// @param system  system calls, now and later
  /// @param mode    permissions of a file that is created, as for chmod(2)
  /// @returns       success, or the reason why it is not open
  [[nodiscard]] boost::system::error_code open(const std::filesystem::path& path, Access access,
                                               std::shared_ptr<System> system = System::real(), mode_t mode = 0644);

  /// Closes the file and clears its poison; does not sync. Does nothing if no file is open.
  void close() noexcept;

  /// Returns true while a file is open.
  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }

  /// Reads up to the end of the file.
  /// @param to      receives the bytes
  /// @param size    maximum number of bytes
  /// @param offset  bytes from the start of the file
  /// @param got     set to the number of bytes read; less than `size` only at the end
  [[nodiscard]] boost::system::error_code read(
      char* to, std::size_t size, std::uint64_t offset, std::size_t& got) const;

  /// Reads the whole file and replaces `content` with it.
  [[nodiscard]] boost::system::error_code read_all(std::string& content) const;

  /// Writes bytes to the kernel: they survive the end of this process.
  /// @param bytes   written completely, or an error is returned
  /// @param offset  bytes from the start of the file
  [[nodiscard]] boost::system::error_code write(std::string_view bytes, std::uint64_t offset);

  /// Truncates the file to `size` bytes, or extends it with zeros.
  [[nodiscard]] boost::system::error_code truncate(std::uint64_t size);

  /// Determines the size of the file in `bytes`.
  [[nodiscard]] boost::system::error_code size(std::uint64_t& bytes) const;

  /// Syncs everything that was written before the call to the disk.
  [[nodiscard]] boost::system::error_code sync();

  /// Returns the error of the first failed `sync`; success if there was none.
  [[nodiscard]] boost::system::error_code poison() const noexcept;

  /// Poisons the file, for an owner who knows that a name of this file was not synced.
  void set_poison(boost::system::error_code failure) noexcept;

  /// Clears the poison, for an owner who has just rewritten all bytes that may not be on the disk:
  /// the next sync covers them. No concurrent calls.
  void lift_poison() noexcept { poison_ = 0; }

 private:
  std::shared_ptr<System> system_;
  int file_ = -1;
  std::atomic<int> poison_ = 0;
};

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/file_inl.hpp>
#endif
