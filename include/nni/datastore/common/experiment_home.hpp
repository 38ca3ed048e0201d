#pragma once

#include <filesystem>
#include <string>

#include <boost/system/error_code.hpp>

#include <nni/core/error.hpp>
#include <nni/core/macros.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore::detail {

/// Returns the error of a store whose files the system refuses.
/// @param message  a sentence without its end, for instance "cannot write /a/b"
[[nodiscard]] Error storage_error(const std::string& message, boost::system::error_code reason);

/// Syncs the names in a directory to the disk.
/// @throws Error  `Errc::storage_failed`
void sync_directory(const std::filesystem::path& directory, files::System& system = *files::System::real());

/// Creates the experiment's directory and `db` in it, so that their names survive a loss of power.
/// @throws Error  `Errc::storage_failed`, also where another user may put links in the place of files
void make_home(const std::filesystem::path& home, files::System& system = *files::System::real());

/// Refuses to create an experiment beside the records of another kind of store, which it would hide.
/// @param mine    file of this store; nothing is refused when it exists
/// @param other   file name of the other kind
/// @throws Error  `Errc::already_exists`, saying what to do
void refuse_beside(const std::filesystem::path& mine, const std::string& other);

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/experiment_home_inl.hpp>
#endif
