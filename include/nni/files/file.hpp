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

/// How a file is opened.
enum class Access : std::uint8_t {
  read,     ///< it exists, and is only read
  write,    ///< it exists, and is read and written
  create,   ///< read and written; made when it is missing
  replace,  ///< read and written; emptied when it exists
  fresh     ///< read and written; it does not exist, and is made
};

/// A file whose owner has to know what became of each byte.
///
/// Reads and writes go on until everything is done or something fails, whatever pieces the kernel makes of them.
/// A write that failed may have left a part in the file: its owner writes the same bytes again, or cuts them off.
///
/// After a `sync` that failed, the file is *poisoned*. The kernel reports such a failure once and may count the bytes
/// as clean from then on, so a later sync that succeeds would prove nothing: each one fails with the first error.
/// What such a file holds can become durable only in another file, or when its owner has written it once more
/// (`lift_poison`).
///
/// Blocking. `sync` may run beside a read or a write on another thread; everything else comes one after the other.
class File {
 public:
  File() = default;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File() { close(); }

  /// Opens a file; one that was open is closed first.
  /// @param path    of the file; its directory exists
  /// @param access  what is wanted, and whether it may be made
  /// @param system  makes the calls, now and later
  /// @param mode    rights of a file that is made here, as for chmod(2)
  /// @returns     success, or the reason for which it is not open
  [[nodiscard]] boost::system::error_code open(const std::filesystem::path& path, Access access,
                                               std::shared_ptr<System> system = System::real(), mode_t mode = 0644);

  /// Closes the file, whose poison is forgotten; nothing is synced. Does nothing when none is open.
  void close() noexcept;

  /// True while a file is open.
  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }

  /// Reads up to the end of the file.
  /// @param to      receives the bytes
  /// @param size    bytes wanted
  /// @param offset  bytes from the start of the file
  /// @param got     set to the number of bytes that there were; less than `size` at the end
  [[nodiscard]] boost::system::error_code read(
      char* to, std::size_t size, std::uint64_t offset, std::size_t& got) const;

  /// Reads the whole file into `content`, which is replaced.
  [[nodiscard]] boost::system::error_code read_all(std::string& content) const;

  /// Hands bytes to the kernel: they survive the end of this process.
  /// @param bytes   all of them are written, or an error is returned
  /// @param offset  bytes from the start of the file
  [[nodiscard]] boost::system::error_code write(std::string_view bytes, std::uint64_t offset);

  /// Cuts the file off at `size` bytes, or fills it up with zeros.
  [[nodiscard]] boost::system::error_code truncate(std::uint64_t size);

  /// The size of the file, in `bytes`.
  [[nodiscard]] boost::system::error_code size(std::uint64_t& bytes) const;

  /// Brings everything that was written before the call to the disk.
  [[nodiscard]] boost::system::error_code sync();

  /// The error of the first `sync` that failed; success while none has.
  [[nodiscard]] boost::system::error_code poison() const noexcept;

  /// Takes it as poisoned, for an owner who knows that a name of this file did not reach the disk.
  void set_poison(boost::system::error_code failure) noexcept;

  /// Lets syncs mean something again, for an owner who has just written once more all bytes that were not on the disk
  /// for certain: the next sync covers them. Nothing else uses the file meanwhile.
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
