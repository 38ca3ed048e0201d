#include "support/catch.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>

#include <nni/files/directory.hpp>
#include <nni/files/file.hpp>

#include "support/failing_files.hpp"
#include "support/temporary_directory.hpp"

using nni::files::Access;
using nni::files::File;
using nni_test::Call;
using nni_test::FailingFiles;

namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a file is written and read at any place", "[files]") {
  const nni_test::TemporaryDirectory place;
  File file;
  CHECK(file.open(place.path() / "a", Access::write) == boost::system::errc::no_such_file_or_directory);
  CHECK_FALSE(file.is_open());
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create));
  REQUIRE_FALSE(file.write("hello", 0));
  REQUIRE_FALSE(file.write("world", 6));
  REQUIRE_FALSE(file.sync());

  std::string all;
  REQUIRE_FALSE(file.read_all(all));
  CHECK(all == std::string("hello\0world", 11));
  char bytes[8] = {};
  std::size_t got = 0;
  REQUIRE_FALSE(file.read(bytes, sizeof bytes, 6, got));
  CHECK(std::string(bytes, got) == "world");
  REQUIRE_FALSE(file.truncate(4));
  std::uint64_t size = 0;
  REQUIRE_FALSE(file.size(size));
  CHECK(size == 4);

  File moved = std::move(file);
  CHECK_FALSE(file.is_open());
  REQUIRE_FALSE(moved.write("o!", 4));
  CHECK(content_of(place.path() / "a") == "hello!");
}

TEST_CASE("a short write is finished, and a call that was interrupted is made again", "[files]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<FailingFiles>();
  File file;
  files->fail_next(Call::open, EINTR);
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  files->shorten_next_write();
  REQUIRE_FALSE(file.write("hello world", 0));
  files->fail_next(Call::write, EINTR);
  REQUIRE_FALSE(file.write("!", 11));
  files->fail_next(Call::sync, EINTR);
  REQUIRE_FALSE(file.sync());

  CHECK(content_of(place.path() / "a") == "hello world!");
  CHECK(files->failures() == 3);
}

TEST_CASE("after a sync that failed, nothing in that file is ever called synced", "[files]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<FailingFiles>();
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  REQUIRE_FALSE(file.write("hello", 0));
  files->fail_next(Call::sync, EIO);

  CHECK(file.sync().value() == EIO);
  CHECK(file.sync().value() == EIO);
  CHECK(file.poison().value() == EIO);
  const std::size_t made = files->calls().size();
  CHECK(file.sync().value() == EIO);
  CHECK(files->calls().size() == made);  // the system is not even asked

  SECTION("but another file is clean") {
    REQUIRE_FALSE(nni::files::replace_file(files, place.path() / "a", "hello", file));
    CHECK_FALSE(file.poison());
    CHECK_FALSE(file.sync());
  }
}

TEST_CASE("a file gets new content wholly or not at all, whichever call fails", "[files]") {
  const nni_test::TemporaryDirectory place;
  const std::filesystem::path path = place.path() / "a";
  std::ofstream(path) << "old";
  for (std::size_t number = 1;; ++number) {
    const auto files = std::make_shared<FailingFiles>();
    files->fail_call(number, EIO);
    File file;
    const auto failure = nni::files::replace_file(files, path, "new content", file);
    if (files->failures() == 0) {
      CHECK_FALSE(failure);
      CHECK(number > 4);
      break;
    }
    INFO("call " << number << ", " << to_string(files->calls()[number - 1]));
    CHECK(failure.value() == EIO);
    const std::string found = content_of(path);
    CHECK(found == (file.is_open() ? "new content" : "old"));
    CHECK_FALSE(std::filesystem::exists(path.string() + ".new"));
    if (file.is_open()) CHECK(file.sync().value() == EIO);  // its name may not be on the disk
    std::ofstream(path) << "old";
  }
  CHECK(content_of(path) == "new content");
}

TEST_CASE("directories are made with their parents, and an error says which call failed", "[files]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<FailingFiles>();
  REQUIRE_FALSE(nni::files::make_directories(*files, place.path() / "a" / "b"));
  CHECK(std::filesystem::is_directory(place.path() / "a" / "b"));
  // The name of the one that was there may not be on the disk yet.
  CHECK(files->calls() == std::vector<Call>{Call::sync_directory, Call::make_directory, Call::sync_directory,
                                            Call::make_directory, Call::sync_directory});
  REQUIRE_FALSE(nni::files::make_directories(*files, place.path() / "a" / "b"));
  CHECK(files->calls().size() == 6);

  files->fail_next(Call::sync_directory, EACCES);  // above what others have made
  CHECK_FALSE(nni::files::make_directories(*files, place.path() / "a"));
  files->fail_next(Call::sync_directory, EIO);
  CHECK(nni::files::make_directories(*files, place.path() / "a").value() == EIO);
  files->fail_all(Call::sync_directory, EINVAL);  // a file system that need not do it
  CHECK_FALSE(nni::files::make_directories(*files, place.path() / "c"));
  files->fail_next(Call::make_directory, ENOSPC);
  CHECK(nni::files::make_directories(*files, place.path() / "d").value() == ENOSPC);
}
