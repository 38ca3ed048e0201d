#include "support/catch.hpp"

#include <fstream>
#include <set>
#include <string>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/store_script.hpp>

#include "sqlite_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Sqlite;
using testing::StoreScript;

namespace {

std::filesystem::path file_of(const nni_test::TemporaryDirectory& place) {
  return place.path() / "abc" / "db" / "nni.sqlite";
}

ExperimentSnapshot open(Runtime& runtime, Sqlite& store) {
  return runtime.run(store.open(runtime.context(), ExperimentId("abc")));
}

// The error of an attempt to open.
Error refusal(Runtime& runtime, Sqlite store) {
  try {
    open(runtime, store);
  } catch (const Error& error) {
    return error;
  }
  FAIL("it was opened");
  return {};
}

// An experiment with two trials, closed.
void make_experiment(Runtime& runtime, const std::filesystem::path& place) {
  Sqlite store{{.directory = place}};
  open(runtime, store);
  store.append(StoreScript().succeeded(1, "0.5").ordered(2).intended(2).events());
  runtime.run(store.close());
}

std::set<std::string> files_below(const std::filesystem::path& place) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place))
    if (entry.is_regular_file()) names.insert(entry.path().filename().string());
  return names;
}

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("sqlite: a closed store is one plain file", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;

  make_experiment(runtime, place.path());

  CHECK(files_below(place.path()) == std::set<std::string>{"nni.sqlite"});
}

TEST_CASE("sqlite: an open store is owned, and the refusal names the owner", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  Sqlite owner{{.directory = place.path()}};
  open(runtime, owner);

  const Error error = refusal(runtime, Sqlite{{.directory = place.path()}});

  CHECK(error.code() == make_error_code(Errc::in_use));
  CHECK_THAT(error.what(), Catch::Contains("experiment abc is in use by") && Catch::Contains("process "));
  runtime.run(owner.close());
}

TEST_CASE("sqlite: a store that dies without a close is free, and keeps what was written", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  {
    Sqlite store{{.directory = place.path()}};
    open(runtime, store);
    runtime.run(store.written(store.append(StoreScript().succeeded(1, "0.5").events())));
  }

  Sqlite store{{.directory = place.path()}};
  CHECK(open(runtime, store).trials == 1);
  runtime.run(store.close());
}

TEST_CASE("sqlite: a file that is no database is refused and left alone", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  make_experiment(runtime, place.path());
  const std::string text(5000, 'x');
  std::ofstream(file_of(place), std::ios::trunc) << text;

  const Error error = refusal(runtime, Sqlite{{.directory = place.path()}});

  CHECK(error.code() == make_error_code(Errc::store_corrupt));
  CHECK_THAT(error.what(), Catch::Contains("is not an SQLite database") && Catch::Contains("nni.sqlite"));
  CHECK(content(file_of(place)) == text);
  CHECK(files_below(place.path()) == std::set<std::string>{"nni.sqlite"});
}

TEST_CASE("sqlite: a store of a newer version is refused and left alone", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  make_experiment(runtime, place.path());
  nni_test::query(file_of(place), "UPDATE nni_meta SET value = 99 WHERE key = 'schema'");
  const std::string before = content(file_of(place));

  const Error error = refusal(runtime, Sqlite{{.directory = place.path()}});

  CHECK(error.code() == make_error_code(Errc::store_corrupt));
  CHECK_THAT(error.what(), Catch::Contains("schema version 99") && Catch::Contains("use the version of the program"));
  CHECK(content(file_of(place)) == before);
  CHECK(refusal(runtime, Sqlite{{.directory = place.path(), .read_only = true}}).code() ==
        make_error_code(Errc::store_corrupt));
}

TEST_CASE("sqlite: a store without columns that were added later is read, and gets them when it is opened for writing",
          "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  make_experiment(runtime, place.path());
  nni_test::query(file_of(place), "ALTER TABLE nni_runs RENAME COLUMN tags TO something");
  const std::string count = "SELECT count(*) FROM pragma_table_info('nni_runs') WHERE name = 'tags'";

  Sqlite reading{{.directory = place.path(), .read_only = true}};
  const std::uint64_t trials = open(runtime, reading).trials;
  CHECK(trials > 0);
  CHECK(runtime.run(reading.load(TrialId{1})).has_value());
  runtime.run(reading.close());
  CHECK(nni_test::query(file_of(place), count) == "0\n");

  Sqlite writing{{.directory = place.path()}};
  CHECK(open(runtime, writing).trials == trials);
  runtime.run(writing.close());
  CHECK(nni_test::query(file_of(place), count) == "1\n");
}

TEST_CASE("sqlite: a store of NNI's own manager is refused, and one of another program", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  std::filesystem::create_directories(file_of(place).parent_path());
  std::ofstream(file_of(place)).close();

  SECTION("NNI's") {
    nni_test::query(file_of(place), "CREATE TABLE TrialJobEvent (timestamp integer)");
    const Error error = refusal(runtime, Sqlite{{.directory = place.path()}});
    CHECK(error.code() == make_error_code(Errc::store_corrupt));
    CHECK_THAT(error.what(), Catch::Contains("written by NNI's own manager"));
  }
  SECTION("another's") {
    nni_test::query(file_of(place), "CREATE TABLE songs (title text)");
    const Error error = refusal(runtime, Sqlite{{.directory = place.path()}});
    CHECK(error.code() == make_error_code(Errc::store_corrupt));
    CHECK_THAT(error.what(), Catch::Contains("the database of another program"));
  }
}

TEST_CASE("sqlite: an empty file is a new store", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  std::filesystem::create_directories(file_of(place).parent_path());
  std::ofstream(file_of(place)).close();
  Sqlite store{{.directory = place.path()}};

  CHECK_FALSE(open(runtime, store).exists);
  runtime.run(store.close());
}

TEST_CASE("sqlite: a directory that cannot be made is named", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  std::ofstream(place.path() / "file").close();

  const Error error = refusal(runtime, Sqlite{{.directory = place.path() / "file"}});

  CHECK(error.code() == make_error_code(Errc::storage_failed));
  CHECK_THAT(error.what(), Catch::Contains("cannot create the directory") && Catch::Contains("choose a directory"));
}

TEST_CASE("sqlite: an id that is no name of a directory is refused", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  Sqlite store{{.directory = place.path()}};

  for (const std::string id : {"", "..", "a/b", ".hidden"})
    CHECK_THROWS_AS(runtime.run(store.open(runtime.context(), ExperimentId(id))), ConfigError);
  CHECK(files_below(place.path()).empty());
}

TEST_CASE("sqlite: an experiment may be placed elsewhere", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  Sqlite store{{.directory = "never-made"}};
  CHECK(store.directory() == "never-made");

  store.set_experiment_directory(place.path() / "elsewhere", ExperimentId("abc"));
  open(runtime, store);
  runtime.run(store.close());

  CHECK(std::filesystem::exists(place.path() / "elsewhere" / "db" / "nni.sqlite"));
  CHECK_FALSE(std::filesystem::exists("never-made"));
}

TEST_CASE("sqlite: read-only, a closed store is read and nothing changes", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  make_experiment(runtime, place.path());
  const std::string before = content(file_of(place));
  Sqlite view{{.directory = place.path(), .read_only = true}};

  const ExperimentSnapshot found = open(runtime, view);

  CHECK(found.trials == 2);
  CHECK(found.unfinished.size() == 1);
  CHECK(runtime.run(view.load(TrialId{1}))->final_value == "0.5");
  CHECK(files_below(place.path()) == std::set<std::string>{"nni.sqlite"});
  CHECK_THROWS_WITH(view.append({}), Catch::Contains("opened read-only"));
  runtime.run(view.close());
  CHECK(content(file_of(place)) == before);
  CHECK(files_below(place.path()) == std::set<std::string>{"nni.sqlite"});
}

TEST_CASE("sqlite: read-only, a store is read while its owner writes", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  Sqlite owner{{.directory = place.path()}};
  open(runtime, owner);
  runtime.run(owner.written(owner.append(StoreScript().succeeded(1, "0.5").events())));
  Sqlite view{{.directory = place.path(), .read_only = true}};

  CHECK(open(runtime, view).trials == 1);
  runtime.run(owner.written(owner.append(StoreScript().succeeded(2, "0.25").events())));
  CHECK(runtime.run(view.load(TrialId{2}))->final_value == "0.25");

  runtime.run(view.close());
  runtime.run(owner.close());
}

TEST_CASE("sqlite: read-only, what does not exist is not made", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;

  const Error error = refusal(runtime, Sqlite{{.directory = place.path(), .read_only = true}});

  CHECK(error.code() == make_error_code(Errc::not_found));
  CHECK_THAT(
      error.what(), Catch::Contains("there is no experiment abc") && Catch::Contains("check the directory and the id"));
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("sqlite: a store that is not open says so", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  Sqlite store{{.directory = place.path()}};

  CHECK_THROWS_WITH(store.append({}), "the data store is not open");
  CHECK_THROWS_WITH(store.written(StorePosition{}), "the data store is not open");
  CHECK_THROWS_WITH(runtime.run(store.load(TrialId{1})), "the data store is not open");
  runtime.run(store.close());

  open(runtime, store);
  CHECK(refusal(runtime, std::move(store)).code() == make_error_code(Errc::in_use));
}
