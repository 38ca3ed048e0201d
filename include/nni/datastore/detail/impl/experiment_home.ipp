#pragma once

#include <nni/datastore/detail/experiment_home.hpp>
#include <nni/files/directory.hpp>

namespace nni::datastore::detail {

NNI_INLINE Error storage_error(const std::string& what, boost::system::error_code reason) {
  return Error(Errc::storage_failed, what + ": " + reason.message());
}

NNI_INLINE void sync_directory(const std::filesystem::path& directory, files::System& system) {
  if (const auto failure = files::sync_directory(system, directory))
    throw storage_error("cannot bring " + directory.string() + " to the disk", failure);
}

NNI_INLINE void make_directories(const std::filesystem::path& wanted, files::System& system) {
  if (const auto failure = files::make_directories(system, wanted))
    throw Error(Errc::storage_failed, "cannot make the directory " + wanted.string() + ": " + failure.message() +
                                          "; choose a directory that you may write");
}

}  // namespace nni::datastore::detail
