#pragma once

#include <nni/datastore/common/experiment_home.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/open.hpp>

namespace nni::datastore::detail {

NNI_INLINE Error storage_error(const std::string& message, boost::system::error_code reason) {
  return Error(Errc::storage_failed, message + ": " + reason.message());
}

NNI_INLINE void sync_directory(const std::filesystem::path& directory, files::System& system) {
  if (const auto failure = files::sync_directory(system, directory))
    throw storage_error("cannot sync " + directory.string() + " to the disk", failure);
}

NNI_INLINE void make_home(const std::filesystem::path& home, files::System& system) {
  const auto make = [&system](const std::filesystem::path& directory) {
    if (const auto failure = files::make_directories(system, directory))
      throw Error(Errc::storage_failed, "cannot create the directory " + directory.string() + ": " + failure.message() +
                                            "; choose a directory that you may write");
  };
  make(home);
  files::require_own_directory(home);
  // Checked first: nothing is created in the target of a link.
  if (const auto refused = files::check_directory(home / "db", false))
    throw storage_error("the directory " + (home / "db").string() + " cannot be used", refused);
  make(home / "db");
}

NNI_INLINE void refuse_beside(const std::filesystem::path& mine, const std::string& other) {
  std::error_code ignored;
  const std::filesystem::path there = mine.parent_path() / other;
  if (std::filesystem::exists(mine, ignored) || !std::filesystem::exists(there, ignored)) return;
  throw Error(
      Errc::already_exists,
      "the experiment has its records in " + there.string() +
          "; open it with the store that wrote them, or convert them into another directory "
          "(nni-convert)");
}

}  // namespace nni::datastore::detail
