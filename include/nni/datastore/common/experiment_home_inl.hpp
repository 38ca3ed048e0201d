#pragma once

#include <nni/datastore/common/experiment_home.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/open.hpp>

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

NNI_INLINE void make_home(const std::filesystem::path& home, files::System& system) {
  make_directories(home, system);
  files::require_own_directory(home);
  // Before it is made: nothing is made in what a link stands for.
  if (const auto refused = files::check_directory(home / "db", false))
    throw storage_error("the directory " + (home / "db").string() + " cannot be used", refused);
  make_directories(home / "db", system);
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
