#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/files/file.hpp>
#include <nni/storage/detail/file_watcher.hpp>
#include <nni/storage/local_directory.hpp>

namespace nni::storage {

namespace detail {

NNI_INLINE Error file_error(const std::error_code& code, const std::string& action, const std::filesystem::path& path) {
  if (code == std::errc::no_such_file_or_directory)
    return Error(Errc::not_found, "storage: cannot " + action + " \"" + path.string() + "\": there is no such file");
  const std::string text = "storage: cannot " + action + " \"" + path.string() + "\"";
  // With the system's code, which distinguishes a full disk from a path that will never work.
  if (is_transient_errno(code.value()))
    return Error(boost::system::error_code(code.value(), boost::system::system_category()), text);
  return Error(Errc::storage_failed, text + ": " + code.message());
}

// Unique for every copy of every process, so that concurrent copies to one destination do not collide.
NNI_INLINE std::string name_of_copy(const std::filesystem::path& to) {
  static std::atomic<std::uint64_t> copies = 0;
  return ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(copies++) + "-" + to.filename().string();
}

// Rejects a path that leaves the storage through a link.
// @param follow  also checks the last name, whose target is read
NNI_INLINE std::filesystem::path inside(
    const std::filesystem::path& root, const std::filesystem::path& path, bool follow) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::path top = fs::weakly_canonical(root, failure);
  fs::path found;
  if (!failure) found = fs::weakly_canonical(follow ? path : path.parent_path(), failure);
  if (failure) throw file_error(failure, "find", path);
  const fs::path relative = found.lexically_relative(top);
  if (relative.empty() || *relative.begin() == "..")
    throw Error(Errc::storage_failed,
                "storage: \"" + path.string() +
                    "\" leaves the storage through a link; remove the link, or give a path without it");
  return follow ? found : found / path.filename();
}

// Like `create_directories`, with permissions that do not depend on the umask of the process alone.
NNI_INLINE void make_parents(const std::filesystem::path& directory, std::error_code& failure) {
  if (directory.empty() || std::filesystem::is_directory(directory, failure)) return;
  failure.clear();
  make_parents(directory.parent_path(), failure);
  if (!failure && ::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
    failure.assign(errno, std::system_category());
}

// Atomic: copied beside the destination, then renamed over it.
NNI_LAZY NNI_INLINE void copy_whole(const std::filesystem::path& from, const std::filesystem::path& to,
                                    std::filesystem::copy_options links = std::filesystem::copy_options::none) {
  namespace fs = std::filesystem;
  std::error_code failure;
  make_parents(to.parent_path(), failure);
  if (failure) throw file_error(failure, "make the directory of", to);
  const fs::path beside = to.parent_path() / name_of_copy(to);
  fs::copy(from, beside, fs::copy_options::recursive | links, failure);
  if (failure) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw file_error(failure, "copy", from);
  }
  // A directory cannot be renamed over a non-empty one, and a concurrent copy may create one in between.
  static std::mutex renaming;
  const std::lock_guard one(renaming);
  if (fs::is_directory(to)) fs::remove_all(to, failure);
  fs::rename(beside, to, failure);
  if (!failure) return;
  std::error_code ignored;
  fs::remove_all(beside, ignored);
  throw file_error(failure, "write", to);
}

NNI_LAZY NNI_INLINE std::string read_part(const std::filesystem::path& path, std::uint64_t offset, std::size_t length) {
  std::error_code failure;
  const std::uint64_t size = std::filesystem::file_size(path, failure);
  if (failure) throw file_error(failure, "read", path);
  if (offset >= size) return {};
  files::File file;
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(length, size - offset)), '\0');
  std::size_t got = 0;
  boost::system::error_code unread = file.open(path, files::Access::read);
  if (!unread) unread = file.read(text.data(), text.size(), offset, got);
  if (unread) throw Error(Errc::storage_failed, "storage: cannot read \"" + path.string() + "\": " + unread.message());
  text.resize(got);
  return text;
}

NNI_LAZY NNI_INLINE std::vector<FileInfo> list_directory(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  std::vector<FileInfo> entries;
  fs::directory_iterator entry(path, failure);
  if (failure) throw file_error(failure, "list", path);
  for (; entry != fs::directory_iterator(); entry.increment(failure)) {
    if (failure) throw file_error(failure, "list", path);
    FileInfo info;
    info.name = entry->path().filename().string();
    info.directory = entry->is_directory(failure);
    if (!info.directory) info.size = entry->file_size(failure);
    if (failure) continue;  // removed meanwhile
    const auto written = std::chrono::file_clock::to_sys(entry->last_write_time(failure));
    info.modified = std::chrono::time_point_cast<std::chrono::milliseconds>(written);
    entries.push_back(std::move(info));
  }
  std::sort(entries.begin(), entries.end(), [](const FileInfo& a, const FileInfo& b) { return a.name < b.name; });
  return entries;
}

}  // namespace detail

NNI_INLINE std::filesystem::path LocalDirectory::resolve(const RemotePath& remote) const {
  const std::filesystem::path relative = std::filesystem::path(remote.value).lexically_normal();
  if (relative.is_absolute() || (!relative.empty() && *relative.begin() == ".."))
    throw Error(
        Errc::storage_failed, "storage: \"" + remote.value + "\" leaves the storage; give a path below its root");
  return root_ / relative;
}

NNI_INLINE std::filesystem::path LocalDirectory::resolve_below(const RemotePath& remote) const {
  const std::filesystem::path path = resolve(remote).lexically_normal();
  const std::filesystem::path top = (root_ / "").lexically_normal();
  if ((path / "").lexically_normal() == top)
    throw Error(
        Errc::storage_failed,
        "storage: \"" + remote.value +
            "\" is the root of the storage, which is never replaced or removed; give a path "
            "below it");
  return path.has_filename() ? path : path.parent_path();
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::open(Context& context) {
  context_ = &context;
  co_return;
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::upload(std::filesystem::path local, RemotePath remote) {
  const std::filesystem::path to = resolve_below(remote);
  auto work = async::offload(*context_, [from = std::move(local), to, root = root_] {
    detail::copy_whole(from, detail::inside(root, to, false));
  });
  co_await std::move(work);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::download(RemotePath remote, std::filesystem::path local) {
  const std::filesystem::path from = resolve(remote);
  // Links in it are copied as links: their targets may lie outside.
  auto work = async::offload(*context_, [from, to = std::move(local), root = root_] {
    detail::copy_whole(detail::inside(root, from, true), to, std::filesystem::copy_options::copy_symlinks);
  });
  co_await std::move(work);
}

NNI_LAZY_BODY awaitable<std::string> LocalDirectory::read(RemotePath remote, std::uint64_t offset, std::size_t length) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path, offset, length, root = root_] {
    return detail::read_part(detail::inside(root, path, true), offset, length);
  });
  co_return co_await std::move(work);
}

NNI_LAZY_BODY awaitable<std::vector<FileInfo>> LocalDirectory::list(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(
      *context_, [path, root = root_] { return detail::list_directory(detail::inside(root, path, true)); });
  co_return co_await std::move(work);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::remove(RemotePath remote) {
  const std::filesystem::path path = resolve_below(remote);
  auto work = async::offload(*context_, [path, root = root_] {
    std::error_code failure;
    std::filesystem::remove_all(detail::inside(root, path, false), failure);
    if (failure) throw detail::file_error(failure, "remove", path);
  });
  co_await std::move(work);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::changed(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  if (!watcher_) watcher_ = std::make_shared<detail::FileWatcher>(context_->executor());
  return watcher_->changed(path);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::close() {
  if (watcher_) watcher_->close();
  watcher_.reset();
  co_return;
}

}  // namespace nni::storage
