#pragma once

#include <cerrno>
#include <utility>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/open.hpp>

namespace nni::files {

namespace detail {

NNI_INLINE void make_or_throw(System& system, const std::filesystem::path& directory, mode_t mode) {
  if (const auto failure = make_directories(system, directory, mode))
    throw Error(failure, "the directory \"" + directory.string() +
                             "\" cannot be created; choose another path, or make its parent writable");
}

[[nodiscard]] NNI_INLINE Error unusable(const std::filesystem::path& directory, boost::system::error_code reason) {
  return Error(
      Errc::storage_failed, "the directory \"" + directory.string() + "\" cannot be used: " + reason.message());
}

}  // namespace detail

NNI_INLINE boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory) {
  const int answer = system.sync_directory(directory.empty() ? std::filesystem::path(".") : directory);
  // EINVAL: the file system does not support it, as `fsync(2)` documents.
  if (answer >= 0 || answer == -EINVAL) return {};
  return {-answer, boost::system::system_category()};
}

NNI_INLINE boost::system::error_code make_directories(
    System& system, const std::filesystem::path& wanted, mode_t mode) {
  std::error_code failure;
  std::vector<std::filesystem::path> missing;
  std::filesystem::path at = std::filesystem::absolute(wanted).lexically_normal();
  for (; !at.empty() && !std::filesystem::exists(at, failure) && !failure; at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  if (failure) return {failure.value(), boost::system::system_category()};
  if (!at.has_filename()) at = at.parent_path();
  // The process that created the last existing one may have ended before its name was synced. A parent that cannot be
  // opened was not created by this library.
  if (at.has_filename()) {
    const auto unsynced = sync_directory(system, at.parent_path());
    const bool is_foreign =
        unsynced == boost::system::errc::permission_denied ||
        unsynced == boost::system::errc::operation_not_permitted ||
        unsynced == boost::system::errc::read_only_file_system;
    if (unsynced && !is_foreign) return unsynced;
  }
  for (; !missing.empty(); missing.pop_back()) {
    const int answer = system.make_directory(missing.back(), missing.size() == 1 ? mode : 0755);
    // Another process may create the same directory concurrently; both sync it.
    if (answer < 0 && answer != -EEXIST) return {-answer, boost::system::system_category()};
    if (const auto unsynced = sync_directory(system, missing.back().parent_path())) return unsynced;
  }
  return {};
}

NNI_INLINE void require_own_directory(const std::filesystem::path& directory) {
  if (const auto failure = check_directory(directory, true)) throw detail::unusable(directory, failure);
}

NNI_INLINE void own_directory(System& system, const std::filesystem::path& directory, mode_t mode) {
  detail::make_or_throw(system, directory, mode);
  require_own_directory(directory);
}

NNI_INLINE void own_subdirectory(System& system, const std::filesystem::path& directory, mode_t mode) {
  // Checked before it is created too: nothing must be created in the target of a link.
  boost::system::error_code failure = check_directory(directory, false);
  if (!failure) {
    detail::make_or_throw(system, directory, mode);
    failure = check_directory(directory, false);
  }
  if (failure) throw detail::unusable(directory, failure);
}

NNI_INLINE boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode) {
  const std::filesystem::path fresh = path.string() + ".new";
  File next;
  boost::system::error_code failure = next.open(fresh, Access::fresh, system, mode);
  // Left by a crash, or planted by somebody else: removed rather than written to.
  if (failure == boost::system::errc::file_exists) {
    system->remove(fresh);
    failure = next.open(fresh, Access::fresh, system, mode);
  }
  if (failure) return failure;
  failure = next.write(content, 0);
  if (!failure) failure = next.sync();
  if (!failure) {
    const int answer = system->rename(fresh, path);
    if (answer < 0) failure.assign(-answer, boost::system::system_category());
  }
  if (failure) {
    next.close();
    system->remove(fresh);
    return failure;
  }
  file = std::move(next);
  failure = sync_directory(*system, path.parent_path());
  if (failure) file.set_poison(failure);
  return failure;
}

}  // namespace nni::files
