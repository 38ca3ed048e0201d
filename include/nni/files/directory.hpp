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

/// Syncs the entries of a directory: a synced file without a durable name is lost.
///
/// Some network file systems do not support that and do not need it; that counts as success.
/// @param directory  empty: the current one
[[nodiscard]] boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory);

/// Creates a directory and its parents, and syncs their names, including that of an existing one which an earlier
/// call created but could not sync.
/// @param mode    permissions of `wanted` if it is created; its parents get 0755
/// @returns       success also if it existed before
[[nodiscard]] boost::system::error_code make_directories(
    System& system, const std::filesystem::path& wanted, mode_t mode = 0755);

/// Rejects a directory in which another user could replace files by links.
///
/// It must belong to this user or to root, and must have the sticky bit if it is world-writable. A file system that
/// assigns all files to one user, or has no permissions, is accepted.
/// @param directory  a link is followed: its name is the user's choice
/// @throws Error  with a remedy; not for a directory that does not exist
void require_own_directory(const std::filesystem::path& directory);

/// Creates a directory of an experiment and its parents durably, and checks it like
/// `require_own_directory`.
/// @param directory  may be a link, which is followed
/// @param mode       permissions of the last one; its parents get 0755. The umask of the process applies
/// @throws Error  with the directory, the reason and a remedy
void own_directory(System& system, const std::filesystem::path& directory, mode_t mode = 0755);

/// As `own_directory` for a directory inside one that `own_directory` has checked: no link is followed.
void own_subdirectory(System& system, const std::filesystem::path& directory, mode_t mode = 0755);

/// Replaces a file atomically: at every moment, even after a loss of power, its name refers either to the old file
/// or to the complete new one.
///
/// Writes `PATH.new`, syncs it, and renames it.
/// @param path     of the file; its directory exists
/// @param content  the complete new content
/// @param file     opened on the new file; unchanged on failure, unless only the name could not be synced:
///                 then it is open on the new file, and poisoned
/// @param mode     permissions of the new file
[[nodiscard]] boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode = 0644);

}  // namespace nni::files

#if NNI_HEADER_ONLY
#include <nni/files/directory_inl.hpp>
#endif
