#pragma once

/// @file
/// The one place that opens files, and says whether links are followed (`scripts/check_layers.py` finds other calls).
///
/// The files of an experiment have names that are known in advance, and their directory may come from somebody else: an
/// archive, or a scratch directory that several users share. A link in it would turn a write to `owner` or to
/// `trial.stdout` into one to a file of the reader's home. So the names below an experiment's directory are opened
/// with `open_own`, which follows no link, after `own_directory` has made sure that nobody else may change them.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>

namespace nni::files {

/// A reason for which a name is not used, though the system would permit it.
enum class Refusal : std::uint8_t {
  link = 1,            ///< a symbolic link
  not_a_file,          ///< a FIFO, a device, a socket
  several_names,       ///< a hard link: a write would reach another name as well
  foreign_file,        ///< a file of another user
  not_a_directory,     ///< something else in the place of a directory
  foreign_directory,   ///< a directory of another user
  writable_by_anybody  ///< a directory in which every user may rename files
};

/// Category of `Refusal`; its messages say what to do.
[[nodiscard]] const boost::system::error_category& refusal_category() noexcept;

/// Converts an answer of this page, or of `System`: success unless it is negative.
[[nodiscard]] boost::system::error_code error_of(std::int64_t answer) noexcept;

/// Opens a file of an experiment. No link is followed, nothing but a regular file is opened, and no FIFO blocks the
/// call. A file to write has one name only, and belongs to this user or to the owner of its directory.
///
/// It is never inherited by programs that are started.
/// @param path   of the file
/// @param flags  as for open(2); with O_TRUNC the file is emptied after it was checked
/// @param mode   rights of a file that is made
/// @returns      a descriptor; or the negated `errno`; or a negative number that only `error_of` understands
[[nodiscard]] int open_own(const char* path, int flags, mode_t mode = 0644) noexcept;

/// Makes a file; one that has the name loses it. What the name stood for is not touched, wherever that is.
///
/// System calls only, so that a child process may call it before it executes its program.
/// @param path  of the file
/// @param mode  its rights
/// @returns     a descriptor for writing; or the negated `errno`
[[nodiscard]] int make_own(const char* path, mode_t mode = 0644) noexcept;

/// Opens what the user or the system names: /proc, /dev/null, an argument of a program. Links are followed.
/// @param path   of the file
/// @param flags  as for open(2), without O_CREAT
/// @returns      a descriptor that is never inherited; or the negated `errno`
[[nodiscard]] int open_any(const char* path, int flags) noexcept;

/// Why a directory of an experiment is not used, as `own_directory` (nni/files/directory.hpp) explains.
/// @param directory  need not exist
/// @param follow     also the directory that a link stands for
/// @returns          success also when there is no such directory
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
/// @param text        receives them
[[nodiscard]] boost::system::error_code read_and_close(
    int descriptor, std::size_t most, bool from_end, std::string& text);

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/open_inl.hpp>
#endif
