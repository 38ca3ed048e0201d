#pragma once

#include <filesystem>
#include <string>

#include <boost/system/error_code.hpp>

#include <nni/core/error.hpp>
#include <nni/core/macros.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore::detail {

/// The error of a store whose files the system refuses.
/// @param what  a sentence without its end, for instance "cannot write /a/b"
[[nodiscard]] Error storage_error(const std::string& what, boost::system::error_code reason);

/// Brings the names in a directory to the disk.
/// @throws Error  `Errc::storage_failed`
void sync_directory(const std::filesystem::path& directory, files::System& system = *files::System::real());

/// Makes a directory, with those above it, so that their names survive a loss of power.
/// @throws Error  `Errc::storage_failed`
void make_directories(const std::filesystem::path& wanted, files::System& system = *files::System::real());

/// Makes the experiment's directory and `db` in it, so that their names survive a loss of power.
/// @throws Error  `Errc::storage_failed`, also where another user may put links in the place of files
void make_home(const std::filesystem::path& home, files::System& system = *files::System::real());

/// Refuses to begin an experiment anew beside the records of another kind of store, which it would hide.
/// @param mine    file of this store; nothing is refused when it exists
/// @param other   file name of the other kind
/// @throws Error  `Errc::already_exists`, saying what to do
void refuse_beside(const std::filesystem::path& mine, const std::string& other);

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/experiment_home_inl.hpp>
#endif
