#include "support/catch.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include <nni/core/error.hpp>
#include <nni/datastore/common/owner_lock.hpp>

#include "support/temporary_directory.hpp"

using nni::Errc;
using nni::Error;
using nni::datastore::detail::Owner;
using nni::datastore::detail::OwnerLock;

namespace {

// The sentence with which a lock is refused, empty when it is given.
std::string refusal(const std::filesystem::path& directory) {
  try {
    const OwnerLock lock(directory);
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::in_use));
    return error.what();
  }
}

}  // namespace

TEST_CASE("an owned directory is refused, and the refusal names the owner", "[datastore][owner]") {
  const nni_test::TemporaryDirectory place;
  const std::filesystem::path home = place.path() / "abcdefgh";
  std::filesystem::create_directory(home);
  const Owner self = Owner::current();

  std::optional<OwnerLock> lock(std::in_place, home);
  const std::string sentence = refusal(home);

  CHECK_THAT(sentence, Catch::Contains("experiment abcdefgh is in use by " + self.program));
  CHECK_THAT(sentence, Catch::Contains("process " + std::to_string(::getpid()) + " on " + self.host));
  CHECK_THAT(sentence, Catch::Contains("stop that process"));

  SECTION("until its owner lets go, which leaves nothing behind") {
    lock.reset();
    CHECK_FALSE(std::filesystem::exists(home / "owner"));
    CHECK(refusal(home).empty());
  }
}

TEST_CASE("an owner says when its process began", "[datastore][owner]") {
  const Owner self = Owner::current();
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());

  CHECK(self.since <= now + std::chrono::seconds(2));  // the kernel's clock counts in hundredths
  CHECK(self.since > now - std::chrono::hours(1));
  CHECK(self.pid == ::getpid());
  CHECK_FALSE(self.boot_id.empty());
}

TEST_CASE("the lock of a killed process is free", "[datastore][owner]") {
  const nni_test::TemporaryDirectory place;
  int locked[2];
  REQUIRE(::pipe(locked) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const OwnerLock lock(place.path());
    char done = 'x';
    if (::write(locked[1], &done, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char done = 0;
  REQUIRE(::read(locked[0], &done, 1) == 1);

  CHECK_THAT(refusal(place.path()), Catch::Contains("process " + std::to_string(child)));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(std::filesystem::exists(place.path() / "owner"));
  CHECK(refusal(place.path()).empty());

  ::close(locked[0]);
  ::close(locked[1]);
}

TEST_CASE("an owner file that says nothing still refuses", "[datastore][owner]") {
  const nni_test::TemporaryDirectory place;
  const OwnerLock lock(place.path());
  std::ofstream(place.path() / "owner", std::ios::trunc).close();

  CHECK_THAT(refusal(place.path()), Catch::Contains("is in use by another process"));
}

TEST_CASE("a directory that cannot hold the lock is named", "[datastore][owner]") {
  const nni_test::TemporaryDirectory place;
  try {
    const OwnerLock lock(place.path() / "missing");
    FAIL("a lock in a directory that does not exist");
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::storage_failed));
    CHECK_THAT(error.what(), Catch::Contains("missing/owner") && Catch::Contains("choose a directory"));
  }
}

TEST_CASE("an owner file of somebody else commands no terminal, and takes no memory of its length",
          "[datastore][owner]") {
  const nni_test::TemporaryDirectory place;
  const OwnerLock lock(place.path());
  std::ofstream(place.path() / "owner", std::ios::trunc)
      << R"({"program":"\u001b[2J\u202e","pid":1,"host":"h","boot_id":"b","since":0})";
  CHECK_THAT(refusal(place.path()), Catch::Contains("is in use by ?[2J? (process 1 on h"));

  REQUIRE(::truncate((place.path() / "owner").c_str(), off_t{1} << 40) == 0);
  CHECK_THAT(refusal(place.path()), Catch::Contains("is in use by"));
}
