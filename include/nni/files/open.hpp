#pragma once

/// @file
/// The only place that opens files, and decides whether links are followed (`scripts/check_layers.py` finds other calls).
///
/// The files of an experiment have predictable names, and their directory may be untrusted: unpacked from an
/// archive, or a scratch directory of several users. A link in it would redirect a write to `owner` or to
/// `trial.stdout` to a file in the user's home. Therefore names below an experiment's directory are opened
/// with `open_own`, which follows no link, after `own_directory` has verified that nobody else can change them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>

namespace nni::files {

/// A reason to reject a file or directory that the system would open.
enum class Refusal : std::uint8_t {
  link = 1,            ///< a symbolic link
  not_a_file,          ///< a FIFO, a device, a socket
  several_names,       ///< a hard link: a write would change another name as well
  foreign_file,        ///< a file of another user
  not_a_directory,     ///< a file in place of a directory
  foreign_directory,   ///< a directory of another user
  writable_by_anybody  ///< a world-writable directory without the sticky bit
};

/// Returns the category of `Refusal`; its messages include a remedy.
[[nodiscard]] const boost::system::error_category& refusal_category() noexcept;

/// Converts a result of these functions or of `System` into an error code: success unless it is negative.
[[nodiscard]] boost::system::error_code error_of(std::int64_t answer) noexcept;

/// Opens a file of an experiment: a regular file only, without following links or blocking on a FIFO.
/// A file to write must have a single name, and belong to this user or to the owner of its directory.
///
/// The descriptor is not inherited by child programs.
/// @param flags  as for open(2); with O_TRUNC the file is truncated after the checks
/// @param mode   permissions of a file that is created
/// @returns      a descriptor; or the negated `errno`; or a negative number for `error_of`
[[nodiscard]] int open_own(const char* path, int flags, mode_t mode = 0644) noexcept;

/// Creates a file; an existing name is removed first, and the target of a link is not touched.
///
/// Async-signal-safe, so that a child process may call it before it executes its program.
/// @param mode  its permissions
/// @returns     a descriptor for writing; or the negated `errno`
[[nodiscard]] int make_own(const char* path, mode_t mode = 0644) noexcept;

/// Opens a file that the user or the system named: /proc, /dev/null, an argument of a program. Follows links.
/// @param flags  as for open(2), without O_CREAT
/// @returns      a descriptor that is not inherited; or the negated `errno`
[[nodiscard]] int open_any(const char* path, int flags) noexcept;

/// Checks a directory of an experiment by the rules of `own_directory` (nni/files/directory.hpp).
/// @param directory  need not exist
/// @param follow     accept a link to a directory
/// @returns          success also if there is no such directory
[[nodiscard]] boost::system::error_code check_directory(const std::filesystem::path& directory, bool follow);

/// Why `open_own` would not open a file, for libraries that open files themselves.
/// @param file      need not exist
/// @param to_write  as the flags of `open_own` say
/// @returns         success also when there is no such file
[[nodiscard]] boost::system::error_code check_own(const std::filesystem::path& file, bool to_write) noexcept;

/// Reads a part of a file, and closes it.
/// @param descriptor  is closed; a negative answer of this page is returned as an error
/// @param most        bytes at most
/// @param from_end    the last bytes rather than the first ones
[[nodiscard]] boost::system::error_code read_and_close(
    int descriptor, std::size_t most, bool from_end, std::string& text);

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/open_inl.hpp>
#endif
