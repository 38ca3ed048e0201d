#pragma once

#include <cerrno>
#include <utility>
#include <vector>

#include <nni/files/directory.hpp>

namespace nni::files {

NNI_INLINE boost::system::error_code sync_directory(System& system, const std::filesystem::path& directory) {
  const int answer = system.sync_directory(directory.empty() ? std::filesystem::path(".") : directory);
  if (answer >= 0 || answer == -EINVAL) return {};
  return {-answer, boost::system::system_category()};
}

NNI_INLINE boost::system::error_code make_directories(System& system, const std::filesystem::path& wanted) {
  std::error_code failure;
  std::vector<std::filesystem::path> missing;
  std::filesystem::path at = std::filesystem::absolute(wanted).lexically_normal();
  for (; !at.empty() && !std::filesystem::exists(at, failure) && !failure; at = at.parent_path()) {
    if (at.has_filename()) missing.push_back(at);
    if (at == at.parent_path()) break;
  }
  if (failure) return {failure.value(), boost::system::system_category()};
  if (!at.has_filename()) at = at.parent_path();
  // Whoever made the last of those that exist may have ended before its name was on the disk. Where that cannot be
  // looked at, it was not made by us.
  if (at.has_filename()) {
    const auto unsynced = sync_directory(system, at.parent_path());
    const bool is_foreign =
        unsynced == boost::system::errc::permission_denied ||
        unsynced == boost::system::errc::operation_not_permitted ||
        unsynced == boost::system::errc::read_only_file_system;
    if (unsynced && !is_foreign) return unsynced;
  }
  for (; !missing.empty(); missing.pop_back()) {
    const int answer = system.make_directory(missing.back(), 0777);
    if (answer < 0 && answer != -EEXIST) return {-answer, boost::system::system_category()};
    if (const auto unsynced = sync_directory(system, missing.back().parent_path())) return unsynced;
  }
  return {};
}

NNI_INLINE boost::system::error_code replace_file(
    const std::shared_ptr<System>& system, const std::filesystem::path& path, std::string_view content, File& file,
    mode_t mode) {
  const std::filesystem::path fresh = path.string() + ".new";
  File next;
  if (const auto failure = next.open(fresh, Access::replace, system, mode)) return failure;
  boost::system::error_code failure = next.write(content, 0);
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
