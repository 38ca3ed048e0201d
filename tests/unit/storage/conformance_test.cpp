#include "support/catch.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include <nni/async/offload.hpp>
#include <nni/async/runtime.hpp>
#include <nni/async/task_group.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/testing/storage_conformance.hpp>

#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

enum class Fault { torn_upload, strict_read, unsorted, strict_remove, open_root, wrong_mount };

// A directory of this machine that breaks one promise.
class Broken {
 public:
  using role = role::storage;
  using mount_type = HostPath;

  Broken(std::filesystem::path root, Fault fault) : real_({.root = std::move(root)}), fault_(fault) {}

  awaitable<void> open(Context& context) {
    context_ = &context;
    return real_.open(context);
  }
  awaitable<void> upload(std::filesystem::path local, RemotePath remote) {
    const std::filesystem::path to = real_.root() / remote.value;
    if (fault_ == Fault::torn_upload && std::filesystem::exists(to) && std::filesystem::is_regular_file(local))
      return in_two_parts(std::move(local), to);
    return real_.upload(std::move(local), std::move(remote));
  }
  awaitable<void> download(RemotePath remote, std::filesystem::path local) {
    return real_.download(std::move(remote), std::move(local));
  }
  awaitable<std::string> read(RemotePath remote, std::uint64_t offset, std::size_t length) {
    auto reading = real_.read(remote, offset, length);
    std::string text = co_await std::move(reading);
    if (fault_ == Fault::strict_read && text.size() < length) throw Error(Errc::storage_failed, "short read");
    co_return text;
  }
  awaitable<std::vector<FileInfo>> list(RemotePath remote) {
    if (fault_ == Fault::open_root && remote.value == "..") co_return std::vector<FileInfo>();
    auto listing = real_.list(std::move(remote));
    std::vector<FileInfo> entries = co_await std::move(listing);
    if (fault_ == Fault::unsorted) std::reverse(entries.begin(), entries.end());
    co_return entries;
  }
  awaitable<void> remove(RemotePath remote) {
    const bool missing = !std::filesystem::exists(real_.root() / remote.value);
    if (fault_ == Fault::strict_remove && missing) throw Error(Errc::not_found, "there is nothing to remove");
    return real_.remove(std::move(remote));
  }
  HostPath mount(TrialId) const { return HostPath(fault_ == Fault::wrong_mount ? "/nowhere" : real_.root()); }
  awaitable<void> close() { return real_.close(); }

 private:
  // Truncates, lets others look, and writes the rest.
  awaitable<void> in_two_parts(std::filesystem::path from, std::filesystem::path to) {
    std::ifstream source(from, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(source), {});
    std::ofstream(to, std::ios::binary | std::ios::trunc) << text.substr(0, text.size() / 2);
    for (int turn = 0; turn < 100; ++turn) {
      auto nothing = async::offload(*context_, [] {});
      co_await std::move(nothing);
    }
    std::ofstream(to, std::ios::binary | std::ios::trunc) << text;
  }

  storage::LocalDirectory real_;
  Fault fault_;
  Context* context_ = nullptr;
};
static_assert(Storage<Broken>);

std::string seen_of(Fault fault) {
  const nni_test::TemporaryDirectory place;
  return testing::check_storage<Broken>([&place, fault] { return Broken(place.path(), fault); }).to_string();
}

}  // namespace

TEST_CASE("a local directory keeps the promises of a storage", "[storage][conformance]") {
  const nni_test::TemporaryDirectory place;

  const testing::ConformanceReport report = testing::check_storage<storage::LocalDirectory>([&place] {
    return storage::LocalDirectory{{.root = place.path()}};
  });

  INFO(report.to_string());
  CHECK(report.passed());
  CHECK(report.checks().size() > 15);
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("storage: copies to one path at the same time leave one of them whole", "[storage]") {
  const nni_test::TemporaryDirectory place;
  constexpr int copies = 8;
  for (int copy = 0; copy < copies; ++copy) {
    const std::filesystem::path from = place.path() / "from" / std::to_string(copy);
    std::filesystem::create_directories(from);
    for (int file = 0; file < 20; ++file)
      std::ofstream(from / std::to_string(file)) << std::string(64 * 1024, static_cast<char>('a' + copy));
  }
  const std::filesystem::path root = place.path() / "to";
  Runtime runtime(RuntimeOptions{.threads = 4});
  storage::LocalDirectory storage({.root = root});
  runtime.run(storage.open(runtime.context()));

  runtime.run(async::with_task_group([&](async::task_group& group) -> awaitable<void> {
    for (int copy = 0; copy < copies; ++copy)
      group.spawn(storage.upload(place.path() / "from" / std::to_string(copy), RemotePath("code")));
    co_return;
  }));

  std::set<char> letters;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root / "code")) {
    std::ifstream in(entry.path());
    const std::string text(std::istreambuf_iterator<char>(in), {});
    CHECK(text.size() == 64 * 1024);
    letters.insert(text.begin(), text.end());
    ++files;
  }
  CHECK(files == 20);
  CHECK(letters.size() == 1);
  std::size_t names = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(root)) ++names;
  CHECK(names == 1);  // nothing is left behind
  runtime.run(storage.close());
}

TEST_CASE("storage: no path, however it is written, replaces or removes the storage itself", "[storage]") {
  const nni_test::TemporaryDirectory place;
  const std::filesystem::path root = place.path() / "root";
  std::filesystem::create_directories(root / "x");
  std::ofstream(root / "kept") << "kept";
  std::ofstream(place.path() / "file") << "other";
  Runtime runtime;
  storage::LocalDirectory storage({.root = root});
  runtime.run(storage.open(runtime.context()));
  const std::string path = GENERATE("", ".", "./", "x/..", "x/../", "x/./../.");

  CHECK_THROWS_WITH(runtime.run(storage.remove(RemotePath(path))), Catch::Contains("is the root of the storage"));
  CHECK_THROWS_WITH(runtime.run(storage.upload(place.path() / "file", RemotePath(path))),
                    Catch::Contains("is the root of the storage"));

  CHECK(std::filesystem::exists(root / "kept"));
  CHECK_NOTHROW(runtime.run(storage.list(RemotePath(path))));
  CHECK_NOTHROW(runtime.run(storage.remove(RemotePath("x/"))));
  CHECK_FALSE(std::filesystem::exists(root / "x"));
  runtime.run(storage.close());
}

TEST_CASE("storage: a link leads on in the storage, not out of it", "[storage][links]") {
  const nni_test::TemporaryDirectory place;
  const std::filesystem::path root = place.path() / "root";
  std::filesystem::create_directories(root / "run");
  std::filesystem::create_directories(place.path() / "elsewhere");
  std::ofstream(place.path() / "elsewhere" / "secret") << "secret";
  std::ofstream(root / "run" / "model") << "model";
  std::filesystem::create_directory_symlink(place.path() / "elsewhere", root / "out");
  std::filesystem::create_directory_symlink("run", root / "in");
  std::filesystem::create_symlink(place.path() / "elsewhere" / "secret", root / "run" / "link");
  Runtime runtime;
  storage::LocalDirectory storage({.root = root});
  runtime.run(storage.open(runtime.context()));
  const std::filesystem::path copy = place.path() / "copy";

  const auto leaves = Catch::Contains("leaves the storage through a link");
  CHECK_THROWS_WITH(runtime.run(storage.read(RemotePath("out/secret"), 0, 10)), leaves);
  CHECK_THROWS_WITH(runtime.run(storage.read(RemotePath("run/link"), 0, 10)), leaves);
  CHECK_THROWS_WITH(runtime.run(storage.list(RemotePath("out"))), leaves);
  CHECK_THROWS_WITH(runtime.run(storage.download(RemotePath("out/secret"), copy)), leaves);
  CHECK_THROWS_WITH(runtime.run(storage.upload(root / "run" / "model", RemotePath("out/new"))), leaves);
  CHECK_THROWS_WITH(runtime.run(storage.remove(RemotePath("out/secret"))), leaves);
  CHECK(runtime.run(storage.read(RemotePath("in/model"), 0, 10)) == "model");

  runtime.run(storage.download(RemotePath("run"), copy));
  CHECK(std::filesystem::is_symlink(copy / "link"));  // what it stands for is not copied
  runtime.run(storage.remove(RemotePath("out")));     // the link goes, and nothing else
  CHECK(std::filesystem::exists(place.path() / "elsewhere" / "secret"));
  CHECK_FALSE(std::filesystem::exists(place.path() / "elsewhere" / "new"));
  runtime.run(storage.close());
}

TEST_CASE("the suite names the promise that a storage breaks", "[storage][conformance]") {
  CHECK_THAT(seen_of(Fault::torn_upload), Catch::Contains("promise 1 broken"));
  CHECK_THAT(seen_of(Fault::strict_read), Catch::Contains("promise 2 broken"));
  CHECK_THAT(seen_of(Fault::unsorted), Catch::Contains("promise 3 broken"));
  CHECK_THAT(seen_of(Fault::strict_remove), Catch::Contains("promise 4 broken"));
  CHECK_THAT(seen_of(Fault::open_root), Catch::Contains("promise 5 broken"));
  CHECK_THAT(seen_of(Fault::wrong_mount), Catch::Contains("promise 6 broken"));
}
