// Names that somebody else may have put into an experiment's directory.
#include "support/catch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <string>

#include <nni/core/error.hpp>
#include <nni/experiment/detail/place.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/file.hpp>
#include <nni/files/open.hpp>

#include "support/recording_files.hpp"
#include "support/temporary_directory.hpp"

using nni::Error;
using nni::files::Access;
using nni::files::error_of;
using nni::files::File;
using nni::files::Refusal;
using nni::files::System;

namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

boost::system::error_code code_of(Refusal reason) { return {static_cast<int>(reason), nni::files::refusal_category()}; }

mode_t mode_of(const fs::path& path) {
  struct stat info{};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// A mask of the process, for a scope.
class Mask {
 public:
  explicit Mask(mode_t mask) : before_(::umask(mask)) {}
  Mask(const Mask&) = delete;
  Mask& operator=(const Mask&) = delete;
  ~Mask() { ::umask(before_); }

 private:
  mode_t before_;
};

// The sentence with which a directory is refused, empty when it is not.
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(nni::Errc::storage_failed));
    return error.what();
  }
}

}  // namespace

TEST_CASE("a link in the place of a file is not followed, whatever the file is opened for", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  const fs::path target = place.path() / "precious";
  const fs::path name = place.path() / "link";
  const Access access = GENERATE(Access::read, Access::write, Access::create, Access::replace);
  File file;

  SECTION("to a file that exists") {
    write(target, "kept");
    fs::create_symlink(target, name);

    CHECK(file.open(name, access) == code_of(Refusal::link));
    CHECK(content_of(target) == "kept");
  }
  SECTION("to nothing") {
    fs::create_symlink(target, name);

    CHECK(file.open(name, access) == code_of(Refusal::link));
    CHECK_FALSE(fs::exists(target));
  }
  CHECK_FALSE(file.is_open());
}

TEST_CASE("a file is emptied after it was checked, not before", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  write(place.path() / "precious", "kept");
  fs::create_hard_link(place.path() / "precious", place.path() / "name");
  File file;

  CHECK(file.open(place.path() / "name", Access::replace) == code_of(Refusal::several_names));
  CHECK(content_of(place.path() / "precious") == "kept");
  CHECK_FALSE(file.open(place.path() / "name", Access::read));  // to look at it harms nobody

  write(place.path() / "own", "old");
  CHECK_FALSE(file.open(place.path() / "own", Access::replace));
  CHECK(content_of(place.path() / "own").empty());
}

TEST_CASE("a FIFO in the place of a file blocks nobody", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  const fs::path name = place.path() / "fifo";
  REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  const int flags = GENERATE(O_RDONLY, O_WRONLY, O_RDWR);

  auto opening = std::async(std::launch::async, [&] { return nni::files::open_own(name.c_str(), flags); });
  const bool returned = opening.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  if (!returned) ::close(::open(name.c_str(), O_RDWR));  // lets it go

  REQUIRE(returned);
  CHECK(error_of(opening.get()) == code_of(Refusal::not_a_file));
}

TEST_CASE("a file that was opened has no flag that it was not asked for", "[files][links]") {
  const nni_test::TemporaryDirectory place;

  const int file = nni::files::open_own((place.path() / "a").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);

  REQUIRE(file >= 0);
  CHECK((::fcntl(file, F_GETFL) & (O_NONBLOCK | O_APPEND)) == O_APPEND);
  CHECK((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
  ::close(file);
}

TEST_CASE("a file that is made takes the place of a link, a FIFO or another file", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  const fs::path target = place.path() / "precious";
  const fs::path name = place.path() / "trial.stdout";
  write(target, "kept");
  SECTION("a symbolic link") { fs::create_symlink(target, name); }
  SECTION("a link to nothing") { fs::create_symlink(place.path() / "new", name); }
  SECTION("a hard link") { fs::create_hard_link(target, name); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(name.c_str(), 0600) == 0); }
  SECTION("a file") { write(name, "what an earlier run wrote"); }
  SECTION("nothing") {}

  const int file = nni::files::make_own(name.c_str());

  REQUIRE(file >= 0);
  CHECK(::write(file, "new", 3) == 3);
  ::close(file);
  CHECK(content_of(target) == "kept");
  CHECK_FALSE(fs::exists(place.path() / "new"));
  CHECK(fs::is_regular_file(fs::symlink_status(name)));
  CHECK(content_of(name) == "new");
}

TEST_CASE("a link in the place of the new file that replaces another is removed, not followed", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  write(place.path() / "precious", "kept");
  write(place.path() / "a", "old");
  fs::create_symlink(place.path() / "precious", place.path() / "a.new");
  File file;

  REQUIRE_FALSE(nni::files::replace_file(System::real(), place.path() / "a", "content", file));

  CHECK(content_of(place.path() / "precious") == "kept");
  CHECK(content_of(place.path() / "a") == "content");
  CHECK_FALSE(fs::exists(fs::symlink_status(place.path() / "a.new")));
}

TEST_CASE("a file of another user is not written, one that a file system gives to the directory's owner is",
          "[files][links]") {
  if (::geteuid() != 0) return;  // nobody else can give files away
  const nni_test::TemporaryDirectory place;
  write(place.path() / "a", "foreign");
  REQUIRE(::chown((place.path() / "a").c_str(), 12345, 12345) == 0);
  File file;

  CHECK(file.open(place.path() / "a", Access::write) == code_of(Refusal::foreign_file));
  CHECK_FALSE(file.open(place.path() / "a", Access::read));

  REQUIRE(::chown(place.path().c_str(), 12345, 12345) == 0);
  CHECK_FALSE(file.open(place.path() / "a", Access::write));
}

TEST_CASE("the part of a file that is wanted is read", "[files]") {
  const nni_test::TemporaryDirectory place;
  const fs::path name = place.path() / "a";
  write(name, "0123456789");
  std::string text;
  const auto open = [&name] { return nni::files::open_own(name.c_str(), O_RDONLY); };

  CHECK_FALSE(nni::files::read_and_close(open(), 4, false, text));
  CHECK(text == "0123");
  CHECK_FALSE(nni::files::read_and_close(open(), 4, true, text));
  CHECK(text == "6789");
  CHECK_FALSE(nni::files::read_and_close(open(), 100, true, text));
  CHECK(text == "0123456789");
  CHECK(nni::files::read_and_close(nni::files::open_own((place.path() / "b").c_str(), O_RDONLY), 4, false, text) ==
        boost::system::errc::no_such_file_or_directory);
  CHECK(text.empty());
}

TEST_CASE("a directory in which everybody may rename files is refused, with what to do", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  const fs::path home = place.path() / "exp";
  fs::create_directory(home);
  const auto open = [&home] { nni::files::own_directory(*System::real(), home); };

  REQUIRE(::chmod(home.c_str(), 0777) == 0);
  CHECK_THAT(refusal_of(open), Catch::Contains(home.string()) && Catch::Contains("chmod o-w"));

  REQUIRE(::chmod(home.c_str(), 01777) == 0);  // as /tmp: what is ours stays ours
  CHECK(refusal_of(open).empty());
  REQUIRE(::chmod(home.c_str(), 0775) == 0);  // whom a group has, its users decide
  CHECK(refusal_of(open).empty());
}

TEST_CASE("a directory of another user is refused, with what to do", "[files][links]") {
  if (::geteuid() != 0) return;  // nobody else can give files away
  const nni_test::TemporaryDirectory place;
  const fs::path home = place.path() / "exp";
  fs::create_directory(home);
  REQUIRE(::chown(home.c_str(), 12345, 12345) == 0);

  CHECK_THAT(refusal_of([&home] { nni::files::own_directory(*System::real(), home); }),
             Catch::Contains(home.string()) && Catch::Contains("another user") && Catch::Contains("cp -r"));
  CHECK(fs::is_empty(home));
}

TEST_CASE("an experiment may be reached through a link, its directories may not be links", "[files][links]") {
  const nni_test::TemporaryDirectory place;
  fs::create_directory(place.path() / "home");
  fs::create_directory(place.path() / "elsewhere");
  fs::create_directory_symlink(place.path() / "home", place.path() / "link");
  fs::create_directory_symlink(place.path() / "elsewhere", place.path() / "home" / "db");
  fs::create_directory_symlink(place.path() / "missing", place.path() / "home" / "keeper");

  CHECK(refusal_of([&] { nni::files::own_directory(*System::real(), place.path() / "link"); }).empty());
  for (const char* name : {"db", "keeper"})
    CHECK_THAT(refusal_of([&] { nni::files::own_subdirectory(*System::real(), place.path() / "link" / name); }),
               Catch::Contains("symbolic link"));
  CHECK(fs::is_empty(place.path() / "elsewhere"));
  CHECK_FALSE(fs::exists(place.path() / "missing"));

  write(place.path() / "home" / "trials", "a file");
  CHECK_THAT(refusal_of([&] { nni::files::own_subdirectory(*System::real(), place.path() / "home" / "trials"); }),
             Catch::Contains("not a directory"));
}

TEST_CASE("directories have the rights that they need, whatever the mask of the process lets through", "[files]") {
  const nni_test::TemporaryDirectory place;
  const Mask none(0);

  nni::files::own_directory(*System::real(), place.path() / "a" / "b");
  nni::files::own_subdirectory(*System::real(), place.path() / "a" / "b" / "keeper", 0700);

  CHECK(mode_of(place.path() / "a") == 0755);
  CHECK(mode_of(place.path() / "a" / "b") == 0755);
  CHECK(mode_of(place.path() / "a" / "b" / "keeper") == 0700);
}

TEST_CASE("the names of an experiment's directory and of those above it survive a loss of power", "[files][power]") {
  const nni_test::TemporaryDirectory place;
  nni_test::RecordingFiles recording(place.path());

  nni::detail::make_directory(place.path() / "experiments" / "mine" / "abc", recording);
  recording.mark(1);

  std::size_t behind = 0;
  for (const nni_test::PowerLossImage& image : recording.images(1, 200)) {
    if (image.mark == 0) continue;
    ++behind;
    CHECK(image.directories.count("experiments/mine/abc") == 1);
  }
  CHECK(behind > 0);
}
