// Experiment directories that somebody else may have made: links in the place of files, and rights for everybody.
#include "support/catch.hpp"

#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/testing/store_script.hpp>
#if NNI_WITH_SQLITE
#include <nni/datastore/sqlite.hpp>
#endif

#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Journal;
using testing::StoreScript;

namespace {

namespace fs = std::filesystem;

// An experiment's directory, and a file elsewhere that nobody may touch.
class Shared {
 public:
  Shared() { write(precious(), "kept"); }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string content_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path precious() const { return place.path() / "precious"; }
  fs::path home() const { return place.path() / "experiments" / "abc"; }
  void link(const fs::path& name) const {
    fs::create_directories((home() / name).parent_path());
    fs::remove(home() / name);
    fs::create_symlink(precious(), home() / name);
  }

  Journal journal() const { return Journal{{.directory = home().parent_path()}}; }
#if NNI_WITH_SQLITE
  datastore::Sqlite sqlite() const { return datastore::Sqlite{{.directory = home().parent_path()}}; }
#endif

  // Opens, records three trials, and closes.
  template <class Store>
  void record(Store store) {
    runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    StoreScript script;
    script.profile(ExperimentId("abc"), ExperimentStatus::done, 3).succeeded(1, "0.1").failed(2).succeeded(3, "0.3");
    runtime.run(store.synced(store.append(script.events())));
    runtime.run(store.close());
  }
  // The sentence with which the store refuses to be opened; empty when it does not.
  template <class Store>
  std::string refusal(Store store) {
    try {
      runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    } catch (const Error& error) {
      CHECK(error.code() == make_error_code(Errc::storage_failed));
      return error.what();
    }
    runtime.run(store.close());
    return {};
  }
  bool is_untouched() const { return content_of(precious()) == "kept"; }

  nni_test::TemporaryDirectory place;
  Runtime runtime;
};

}  // namespace

TEST_CASE("journal: a link in the place of the lock or of the file is refused, and what it stands for stays",
          "[datastore][journal][links]") {
  Shared shared;
  const std::string name = GENERATE("owner", "db/nni.journal");
  shared.link(name);

  CHECK_THAT(shared.refusal(shared.journal()), Catch::Contains(name) && Catch::Contains("symbolic link"));
  CHECK(shared.is_untouched());
}

TEST_CASE("journal: a link in the place of a file that is about to be made is removed or left alone",
          "[datastore][journal][links]") {
  Shared shared;

  SECTION("of the new journal") {
    shared.link("db/nni.journal.new");
    shared.record(shared.journal());
    CHECK(fs::is_regular_file(fs::symlink_status(shared.home() / "db/nni.journal")));
  }
  SECTION("of the copy of a tail that is cut off") {
    shared.record(shared.journal());
    shared.link("db/nni.journal.cut");
    std::ofstream(shared.home() / "db/nni.journal", std::ios::app) << "torn\nexport PATH=/tmp\nmore";
    CHECK(shared.refusal(shared.journal()).empty());
    CHECK(Shared::content_of(shared.home() / "db/nni.journal.cut2") == "torn\nexport PATH=/tmp\nmore");
  }
  CHECK(shared.is_untouched());
}

TEST_CASE("journal: a directory in which everybody may rename files is refused, and so is a link in the place of db",
          "[datastore][journal][links]") {
  Shared shared;
  fs::create_directories(shared.home());

  SECTION("everybody may write") {
    REQUIRE(::chmod(shared.home().c_str(), 0777) == 0);
    CHECK_THAT(shared.refusal(shared.journal()), Catch::Contains("chmod o-w"));
    CHECK(fs::is_empty(shared.home()));
  }
  SECTION("a link") {
    fs::create_directory(shared.place.path() / "elsewhere");
    fs::create_directory_symlink(shared.place.path() / "elsewhere", shared.home() / "db");
    CHECK_THAT(shared.refusal(shared.journal()), Catch::Contains("symbolic link"));
    CHECK(fs::is_empty(shared.place.path() / "elsewhere"));
  }
}

#if NNI_WITH_SQLITE

TEST_CASE("sqlite: links in the place of its files are refused, and what they stand for stays",
          "[datastore][sqlite][links]") {
  Shared shared;
  const std::string name =
      GENERATE("owner", "db/nni.sqlite", "db/nni.sqlite-wal", "db/nni.sqlite-shm", "db/nni.sqlite-journal");
  shared.link(name);

  CHECK_THAT(shared.refusal(shared.sqlite()), Catch::Contains(name) && Catch::Contains("symbolic link"));
  CHECK(shared.is_untouched());
}

TEST_CASE("sqlite: who only reads follows no link either, and waits for no FIFO", "[datastore][sqlite][links]") {
  Shared shared;
  const fs::path file = shared.home() / "db/nni.sqlite";
  fs::create_directories(file.parent_path());
  SECTION("a link") { shared.link("db/nni.sqlite"); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }

  const std::string refusal =
      shared.refusal(datastore::Sqlite{{.directory = shared.home().parent_path(), .read_only = true}});

  CHECK_THAT(refusal, Catch::Contains(file.string()) && Catch::Contains("it is"));
}

TEST_CASE("sqlite: an experiment is reached through links above it", "[datastore][sqlite][links]") {
  Shared shared;
  shared.record(shared.sqlite());
  fs::create_directory_symlink(shared.home().parent_path(), shared.place.path() / "link");
  Runtime runtime;
  datastore::Sqlite store{{.directory = shared.place.path() / "link"}};

  CHECK(runtime.run(store.open(runtime.context(), ExperimentId("abc"))).trials == 3);
  runtime.run(store.close());
}

TEST_CASE("sqlite: a directory in which everybody may rename files is refused, and so is a link in the place of db",
          "[datastore][sqlite][links]") {
  Shared shared;
  fs::create_directories(shared.home());

  SECTION("everybody may write") {
    REQUIRE(::chmod(shared.home().c_str(), 0777) == 0);
    CHECK_THAT(shared.refusal(shared.sqlite()), Catch::Contains("chmod o-w"));
    CHECK(fs::is_empty(shared.home()));
  }
  SECTION("a link") {
    fs::create_directory(shared.place.path() / "elsewhere");
    fs::create_directory_symlink(shared.place.path() / "elsewhere", shared.home() / "db");
    CHECK_THAT(shared.refusal(shared.sqlite()), Catch::Contains("symbolic link"));
    CHECK(fs::is_empty(shared.place.path() / "elsewhere"));
  }
}

#endif
