#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/storage/detail/file_watcher.hpp>
#include <nni/storage/local_directory.hpp>

namespace nni::storage {

namespace detail {

NNI_INLINE Error file_error(const std::error_code& code, const std::string& what, const std::filesystem::path& path) {
  if (code == std::errc::no_such_file_or_directory)
    return Error(Errc::not_found, "storage: cannot " + what + " \"" + path.string() + "\": there is no such file");
  return Error(Errc::storage_failed, "storage: cannot " + what + " \"" + path.string() + "\": " + code.message());
}

// Distinct for every copy of every process, so that those to one destination do not meet.
NNI_INLINE std::string name_of_copy(const std::filesystem::path& to) {
  static std::atomic<std::uint64_t> copies = 0;
  return ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(copies++) + "-" + to.filename().string();
}

// Complete or not at all: copied beside the destination, then renamed over it.
NNI_LAZY NNI_INLINE void copy_whole(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (to.has_parent_path()) fs::create_directories(to.parent_path(), failure);
  if (failure) throw file_error(failure, "make the directory of", to);
  const fs::path beside = to.parent_path() / name_of_copy(to);
  fs::copy(from, beside, fs::copy_options::recursive, failure);
  if (failure) {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
    throw file_error(failure, "copy", from);
  }
  // A directory cannot be renamed over one that holds files, and another copy may put one there in between.
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
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(length, size - offset)), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw file_error(std::make_error_code(std::errc::io_error), "read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
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
    if (failure) continue;  // it went away meanwhile
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

NNI_LAZY_BODY awaitable<void> LocalDirectory::open(Context& context) {
  context_ = &context;
  co_return;
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::upload(std::filesystem::path local, RemotePath remote) {
  const std::filesystem::path to = resolve(remote);
  auto work = async::offload(*context_, [from = std::move(local), to] { detail::copy_whole(from, to); });
  co_await std::move(work);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::download(RemotePath remote, std::filesystem::path local) {
  const std::filesystem::path from = resolve(remote);
  auto work = async::offload(*context_, [from, to = std::move(local)] { detail::copy_whole(from, to); });
  co_await std::move(work);
}

NNI_LAZY_BODY awaitable<std::string> LocalDirectory::read(RemotePath remote, std::uint64_t offset, std::size_t length) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path, offset, length] { return detail::read_part(path, offset, length); });
  co_return co_await std::move(work);
}

NNI_LAZY_BODY awaitable<std::vector<FileInfo>> LocalDirectory::list(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path] { return detail::list_directory(path); });
  co_return co_await std::move(work);
}

NNI_LAZY_BODY awaitable<void> LocalDirectory::remove(RemotePath remote) {
  const std::filesystem::path path = resolve(remote);
  auto work = async::offload(*context_, [path] {
    std::error_code failure;
    std::filesystem::remove_all(path, failure);
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
