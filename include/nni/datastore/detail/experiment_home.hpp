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

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/detail/impl/experiment_home.ipp>
#endif
