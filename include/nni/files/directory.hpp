#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string_view>

#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>
#include <nni/files/file.hpp>
#include <nni/files/system.hpp>

namespace nni::files {

/// Brings the names in a directory to the disk: bytes that were synced are worth nothing in a file without a name.
///
/// Some network file systems cannot do that and need not; that counts as success.
/// @param system     makes the calls
/// @param directory  empty: the current one
[[nodiscard]] boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory);

/// Makes a directory and those above it, so that their names survive a loss of power: also that of one which another
/// call has made and could not sync.
/// @param system  makes the calls
/// @param wanted  the directory
/// @param mode    rights of `wanted` when it is made; those above it get 0755
/// @returns       success also when it existed before
[[nodiscard]] boost::system::error_code make_directories(
    System& system, const std::filesystem::path& wanted, mode_t mode = 0755);

/// Refuses a directory in which another user may put links in the place of files.
///
/// It belongs to this user or to root, and if everybody may write to it, it has the sticky bit. A file system that
/// gives all files to one user, or keeps no rights, is taken as it is.
/// @param directory  a link is followed: its name is the user's choice
/// @throws Error  saying what to do; nothing when there is no such directory
void require_own_directory(const std::filesystem::path& directory);

/// Makes a directory of an experiment, with those above it, so that their names survive a loss of power; checks it as
/// `require_own_directory` does.
/// @param system     makes the calls
/// @param directory  may be a link, which is followed
/// @param mode       rights of the last one; those above it get 0755. The mask of the process takes rights away as usual
/// @throws Error  saying which directory, why not, and what to do
void own_directory(System& system, const std::filesystem::path& directory, mode_t mode = 0755);

/// The same as `own_directory` for a directory inside one that `own_directory` has checked: no link is followed.
void own_subdirectory(System& system, const std::filesystem::path& directory, mode_t mode = 0755);

/// Gives a file new content so that at every moment, also after a loss of power, its name means either the old file
/// or the whole new one.
///
/// The content goes into `PATH.new`, is synced, and takes the name.
/// @param system   makes the calls
/// @param path     of the file; its directory exists
/// @param content  all that the file holds then
/// @param file  is open on the new file afterwards; untouched on failure, unless only the name could not be synced:
///              then it is open on the new file, and poisoned
/// @param mode  rights of the new file
[[nodiscard]] boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode = 0644);

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/directory_inl.hpp>
#endif
