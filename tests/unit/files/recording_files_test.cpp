#include "support/recording_files.hpp"

#include "support/catch.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include <nni/files/directory.hpp>
#include <nni/files/file.hpp>

#include "support/failing_files.hpp"
#include "support/temporary_directory.hpp"

using nni::files::Access;
using nni::files::File;
using nni_test::PowerLossImage;
using nni_test::RecordingFiles;

namespace {

// Of the images behind mark 1 some have a file and some have none.
bool may_be_lost(RecordingFiles& files) {
  std::size_t missing = 0;
  std::size_t there = 0;
  for (const PowerLossImage& image : files.images(1, 100))
    if (image.mark == 1) ++(image.files.empty() ? missing : there);
  return missing > 0 && there > 0;
}

}  // namespace

TEST_CASE("an image holds what was synced before, under a name that was synced", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  REQUIRE_FALSE(file.write("synced", 0));
  REQUIRE_FALSE(file.sync());
  REQUIRE_FALSE(nni::files::sync_directory(*files, place.path()));
  files->mark(1);
  REQUIRE_FALSE(file.write("only written", 6));

  std::set<std::string> contents;
  for (const PowerLossImage& image : files->images(1, 200)) {
    if (image.mark < 1) continue;
    REQUIRE(image.files.count("a") == 1);
    const std::string& content = image.files.at("a");
    CHECK(content.compare(0, 6, "synced") == 0);
    contents.insert(content);
  }
  CHECK(contents ==
        std::set<std::string>{"synced", "syncedonly written", std::string("synced") + std::string(12, '\0')});
}

TEST_CASE("without a sync of the directory a file may have no name", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  REQUIRE_FALSE(file.write("synced", 0));
  REQUIRE_FALSE(file.sync());
  files->mark(1);

  CHECK(may_be_lost(*files));
}

TEST_CASE("a file is gone with a directory whose name was not synced", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  REQUIRE(files->make_directory(place.path() / "made", 0777) == 0);
  File file;
  REQUIRE_FALSE(file.open(place.path() / "made" / "a", Access::create, files));
  REQUIRE_FALSE(nni::files::sync_directory(*files, place.path() / "made"));
  files->mark(1);

  CHECK(may_be_lost(*files));
}

TEST_CASE("pages arrive in any order, and torn", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  REQUIRE_FALSE(nni::files::sync_directory(*files, place.path()));
  REQUIRE_FALSE(file.write(std::string(3 * 4096, 'x'), 0));

  bool second_without_first = false;
  bool torn = false;
  for (const PowerLossImage& image : files->images(7, 300)) {
    const auto found = image.files.find("a");
    if (found == image.files.end() || found->second.size() != 3 * 4096) continue;
    const std::string& content = found->second;
    second_without_first = second_without_first || (content[0] == '\0' && content[4096] == 'x');
    torn = torn || (content[0] != content[512]);
  }
  CHECK(second_without_first);
  CHECK(torn);
}

TEST_CASE("a file that takes a name is the old one or the whole new one in every image", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  File file;
  REQUIRE_FALSE(nni::files::replace_file(files, place.path() / "a", std::string(5000, 'o'), file));
  files->mark(1);
  REQUIRE_FALSE(nni::files::replace_file(files, place.path() / "a", std::string(6000, 'n'), file));
  files->mark(2);

  bool is_old = false;
  for (const PowerLossImage& image : files->images(3, 300)) {
    if (image.mark < 1) continue;
    const std::string& content = image.files.at("a");
    const bool old = content == std::string(5000, 'o');
    is_old = is_old || old;
    CHECK((old || content == std::string(6000, 'n')));
    if (image.mark == 2) CHECK_FALSE(old);
  }
  CHECK(is_old);
}

TEST_CASE("the same seed gives the same image", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  for (std::uint64_t at = 0; at < 40; ++at) REQUIRE_FALSE(file.write("0123456789", at * 700));

  CHECK(files->image(5).files == files->image(5).files);
  CHECK(files->image(5).cut == files->image(5).cut);
}

TEST_CASE("what a failed sync has lost is not there after the next one, unless it was written again",
          "[files][power]") {
  const nni_test::TemporaryDirectory place;
  const auto failing = std::make_shared<nni_test::FailingFiles>();
  const auto files = std::make_shared<RecordingFiles>(place.path(), failing);
  File file;
  REQUIRE_FALSE(file.open(place.path() / "a", Access::create, files));
  REQUIRE_FALSE(nni::files::sync_directory(*files, place.path()));
  REQUIRE_FALSE(file.write("first", 0));
  failing->fail_next(nni_test::Call::sync, EIO);
  REQUIRE(file.sync());
  const bool again = GENERATE(false, true);
  if (again) REQUIRE_FALSE(file.write("first", 0));
  file.lift_poison();
  REQUIRE_FALSE(file.sync());
  files->mark(1);

  std::size_t lost = 0;
  for (const PowerLossImage& image : files->images(1, 100))
    if (image.mark == 1 && image.files.at("a") != "first") ++lost;
  CHECK((lost > 0) == !again);
}
