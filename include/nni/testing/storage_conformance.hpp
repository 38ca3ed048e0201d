#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/runtime.hpp>
#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/mount.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// Inputs of the suite for storages.
struct StorageSetup {
  std::filesystem::path scratch{};  ///< local directory for files to upload; empty: a temporary one
  std::size_t large = 1 << 20;      ///< size in bytes of the file that is replaced during reads
};

namespace detail {

template <Storage S>
class StorageSuite {
 public:
  StorageSuite(const std::function<S()>& make, StorageSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {}

  void run() {
    const bool temporary = setup_.scratch.empty();
    if (temporary)
      setup_.scratch = std::filesystem::temp_directory_path() / ("nni-conformance-" + ExperimentId::random().value);
    std::filesystem::create_directories(setup_.scratch);
    one(1, "files", &StorageSuite::files);
    one(1, "directories", &StorageSuite::directories);
    one(1, "a failed upload", &StorageSuite::failed_upload);
    one(1, "replacing", &StorageSuite::replaces_whole);
    one(2, "reading", &StorageSuite::reads);
    one(3, "listing", &StorageSuite::lists);
    one(4, "removing", &StorageSuite::removes);
    one(5, "leaving the root", &StorageSuite::keeps_inside);
    if constexpr (std::same_as<typename S::mount_type, HostPath>) one(6, "mount", &StorageSuite::mounts);
    if (temporary) std::filesystem::remove_all(setup_.scratch);
  }

 private:
  void one(int promise, const char* name, awaitable<void> (StorageSuite::*body)(S&, Context&)) {
    report_.run_case(promise, name, [this, body] {
      S storage = make_();
      Runtime runtime;
      runtime.run(async::with_timeout(guarded(storage, runtime.context(), body), std::chrono::seconds(60)));
    });
  }

  // Each case has a separate directory in the storage, which is removed afterwards.
  awaitable<void> guarded(S& storage, Context& context, awaitable<void> (StorageSuite::*body)(S&, Context&)) {
    auto opening = storage.open(context);
    co_await std::move(opening);
    std::exception_ptr failure;
    try {
      auto work = (this->*body)(storage, context);
      co_await std::move(work);
    } catch (...) {
      failure = std::current_exception();
    }
    auto clearing = storage.remove(RemotePath("conformance"));
    co_await std::move(clearing);
    auto closing = storage.close();
    co_await std::move(closing);
    if (failure) std::rethrow_exception(failure);
  }

  std::filesystem::path local(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = setup_.scratch / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return path;
  }

  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  static RemotePath remote(const std::string& name) { return RemotePath("conformance/" + name); }

  static awaitable<void> send(S& storage, std::filesystem::path from, std::string name) {
    auto sending = storage.upload(std::move(from), remote(name));
    co_await std::move(sending);
  }

  static awaitable<std::string> whole(S& storage, std::string name) {
    auto reading = storage.read(remote(name), 0, std::size_t{1} << 24);
    co_return co_await std::move(reading);
  }

  template <class T>
  static awaitable<boost::system::error_code> code_of(awaitable<T> work) {
    boost::system::error_code code;
    try {
      co_await std::move(work);
    } catch (const boost::system::system_error& error) {
      code = error.code();
    }
    co_return code;
  }

  awaitable<void> files(S& storage, Context&) {
    std::string text(200'000, '\0');
    for (std::size_t at = 0; at < text.size(); ++at) text[at] = static_cast<char>(at * 31 % 256);
    auto sending = send(storage, local("binary", text), "deep/down/binary");
    co_await std::move(sending);
    auto reading = whole(storage, "deep/down/binary");
    const std::string back = co_await std::move(reading);
    report_.check(1, "a file comes back byte for byte", back == text, std::to_string(back.size()) + " bytes");
    const std::filesystem::path target = setup_.scratch / "back" / "binary";
    std::filesystem::create_directories(target.parent_path());
    auto fetching = storage.download(remote("deep/down/binary"), target);
    co_await std::move(fetching);
    report_.check(1, "and can be downloaded", content(target) == text);
    auto again = send(storage, local("binary", "short"), "deep/down/binary");
    co_await std::move(again);
    auto reading_again = whole(storage, "deep/down/binary");
    const std::string replaced = co_await std::move(reading_again);
    report_.check(1, "a second upload takes the place of the first", replaced == "short", replaced.substr(0, 40));
  }

  awaitable<void> directories(S& storage, Context&) {
    local("tree/one.txt", "1");
    local("tree/below/two.txt", "2");
    auto sending = send(storage, setup_.scratch / "tree", "tree");
    co_await std::move(sending);
    auto reading = whole(storage, "tree/below/two.txt");
    const std::string two = co_await std::move(reading);
    report_.check(1, "a directory is uploaded with everything in it", two == "2", two);
    const std::filesystem::path target = setup_.scratch / "tree-back";
    auto fetching = storage.download(remote("tree"), target);
    co_await std::move(fetching);
    report_.check(1, "and can be downloaded as a directory",
                  content(target / "one.txt") == "1" && content(target / "below" / "two.txt") == "2");
  }

  awaitable<void> failed_upload(S& storage, Context&) {
    auto sending = send(storage, local("kept", "kept"), "kept");
    co_await std::move(sending);
    auto failing = code_of(send(storage, setup_.scratch / "there-is-no-such-file", "kept"));
    const bool refused = Errc::not_found == co_await std::move(failing);
    report_.check(1, "uploading a file that does not exist is Errc::not_found", refused);
    auto reading = whole(storage, "kept");
    const std::string back = co_await std::move(reading);
    report_.check(1, "an upload that fails leaves the destination as it was", back == "kept", back);
  }

  // Reads a file repeatedly while it is replaced.
  awaitable<void> replaces_whole(S& storage, Context& context) {
    auto first = send(storage, local("large", std::string(setup_.large, 'a')), "large");
    co_await std::move(first);
    bool replaced = false;
    bool torn = false;
    async::task_group group(context);
    for (int reader = 0; reader < 2; ++reader) group.spawn(watch(storage, replaced, torn));
    auto second = send(storage, local("large", std::string(setup_.large, 'b')), "large");
    std::exception_ptr failure;
    try {
      co_await std::move(second);
    } catch (...) {
      failure = std::current_exception();
    }
    replaced = true;
    auto all = group.join();
    co_await std::move(all);
    if (failure) std::rethrow_exception(failure);
    report_.check(1, "a read during a replacement returns the old or the new file, complete", !torn);
  }

  awaitable<void> watch(S& storage, const bool& replaced, bool& torn) {
    const auto executor = co_await boost::asio::this_coro::executor;
    while (!replaced) {
      auto reading = whole(storage, "large");
      const std::string seen = co_await std::move(reading);
      if (seen.size() != setup_.large || seen.front() != seen.back()) torn = true;
      // A storage that never suspends would block the upload.
      auto turn = boost::asio::post(executor, boost::asio::use_awaitable);
      co_await std::move(turn);
    }
  }

  awaitable<void> reads(S& storage, Context&) {
    auto sending = send(storage, local("ten", "0123456789"), "ten");
    co_await std::move(sending);
    std::string seen;
    for (const auto& [offset, length] : {std::pair{2, 3}, {8, 100}, {10, 5}, {1000, 5}, {0, 0}}) {
      auto reading = storage.read(remote("ten"), static_cast<std::uint64_t>(offset), static_cast<std::size_t>(length));
      seen += co_await std::move(reading);
      seen += "|";
    }
    report_.check(2, "a read past the end returns what exists, an empty string at the end", seen == "234|89||||", seen);
    auto missing = code_of(storage.read(remote("nothing"), 0, 1));
    const bool refused = Errc::not_found == co_await std::move(missing);
    report_.check(2, "reading a file that does not exist is Errc::not_found", refused);
    auto fetching = code_of(storage.download(remote("nothing"), setup_.scratch / "nothing"));
    const bool refused_too = Errc::not_found == co_await std::move(fetching);
    report_.check(2, "and so is downloading it", refused_too);
  }

  awaitable<void> lists(S& storage, Context&) {
    for (const char* name : {"list/b", "list/a", "list/c/inside", "list/10", "list/9"}) {
      auto sending = send(storage, local("listed", "four"), name);
      co_await std::move(sending);
    }
    auto listing = storage.list(remote("list"));
    const std::vector<FileInfo> entries = co_await std::move(listing);
    std::string seen;
    for (const FileInfo& entry : entries) {
      seen += entry.name;
      seen += entry.directory ? "/ " : ":" + std::to_string(entry.size) + " ";
    }
    report_.check(3, "a directory is listed in the order of names, with sizes", seen == "10:4 9:4 a:4 b:4 c/ ", seen);
    auto missing = code_of(storage.list(remote("no-directory")));
    const bool refused = Errc::not_found == co_await std::move(missing);
    report_.check(3, "listing a directory that does not exist is Errc::not_found", refused);
  }

  awaitable<void> removes(S& storage, Context&) {
    for (const char* name : {"gone/one", "gone/below/two", "gone-not"}) {
      auto sending = send(storage, local("removed", "text"), name);
      co_await std::move(sending);
    }
    auto nothing = code_of(storage.remove(remote("never-was")));
    const bool accepted = !co_await std::move(nothing);
    report_.check(4, "removing what does not exist succeeds", accepted);
    auto removing = storage.remove(remote("gone"));
    co_await std::move(removing);
    auto below = code_of(whole(storage, "gone/below/two"));
    const bool empty = Errc::not_found == co_await std::move(below);
    report_.check(4, "a directory is removed with everything in it", empty);
    auto beside = code_of(whole(storage, "gone-not"));
    const bool kept = !co_await std::move(beside);
    report_.check(4, "and nothing else", kept);
  }

  awaitable<void> keeps_inside(S& storage, Context&) {
    const std::filesystem::path file = local("outside", "text");
    std::string leaving;
    for (const char* name : {"..", "../outside", "a/../../outside", "/etc/passwd"}) {
      const RemotePath path{std::string(name)};
      auto sending = code_of(storage.upload(file, path));
      if (Errc::storage_failed != co_await std::move(sending)) leaving += "upload to " + path.value + "; ";
      auto fetching = code_of(storage.download(path, setup_.scratch / "fetched"));
      if (Errc::storage_failed != co_await std::move(fetching)) leaving += "download of " + path.value + "; ";
      auto reading = code_of(storage.read(path, 0, 1));
      if (Errc::storage_failed != co_await std::move(reading)) leaving += "read of " + path.value + "; ";
      auto listing = code_of(storage.list(path));
      if (Errc::storage_failed != co_await std::move(listing)) leaving += "list of " + path.value + "; ";
    }
    report_.check(5, "a path that leaves the root is Errc::storage_failed", leaving.empty(), leaving);
  }

  awaitable<void> mounts(S& storage, Context&) {
    auto sending = send(storage, local("mounted", "seen"), "mounted");
    co_await std::move(sending);
    const HostPath place = storage.mount(TrialId{1});
    report_.check(6, "a trial finds the files below the path that mount gives",
                  content(place.path / "conformance" / "mounted") == "seen", place.path.string());
  }

  const std::function<S()>& make_;
  StorageSetup setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Storage` for any storage.
///
/// It uses the directory `conformance` of the storage and removes it after each case. The checks carry the
/// numbers of the promises.
///
/// @param make   returns a storage that is not open, always at the same place
/// @param setup  local files and sizes
/// @returns      the results of all checks
template <Storage S>
[[nodiscard]] ConformanceReport check_storage(const std::function<S()>& make, StorageSetup setup = {}) {
  ConformanceReport report;
  detail::StorageSuite<S>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing
