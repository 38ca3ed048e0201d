#include "support/catch.hpp"

#include <string>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/store_script.hpp>

#include "sqlite_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Sqlite;
using nni_test::FaultyFiles;
using testing::StoreScript;

namespace {

class Bench {
 public:
  Bench() { runtime.run(store.open(runtime.context(), ExperimentId("abc"))); }
  ~Bench() {
    FaultyFiles::full = false;
    FaultyFiles::sync_fails = false;
  }

  std::string failure(awaitable<void> work) {
    try {
      runtime.run(std::move(work));
    } catch (const Error& error) {
      CHECK(error.code() == make_error_code(Errc::storage_failed));
      return error.what();
    }
    return {};
  }
  StorePosition append(std::uint64_t trial) { return store.append(StoreScript().succeeded(trial, "0.5").events()); }
  ExperimentSnapshot reopened() {
    Sqlite again{{.directory = place.path()}};
    ExperimentSnapshot found = runtime.run(again.open(runtime.context(), ExperimentId("abc")));
    runtime.run(again.close());
    return found;
  }

  nni_test::TemporaryDirectory place;
  FaultyFiles files;
  Runtime runtime;
  Sqlite store{{.directory = place.path()}};
};

}  // namespace

TEST_CASE("sqlite: the log is synced when somebody waits for it, and only then", "[datastore][sqlite]") {
  Bench bench;
  FaultyFiles::log_syncs = 0;

  for (std::uint64_t trial = 1; trial <= 10; ++trial) bench.runtime.run(bench.store.written(bench.append(trial)));
  CHECK(FaultyFiles::log_syncs == 0);

  bench.runtime.run(bench.store.synced(StorePosition{1}));
  CHECK(FaultyFiles::log_syncs == 1);
  bench.runtime.run(bench.store.synced(StorePosition{50}));
  CHECK(FaultyFiles::log_syncs == 1);

  bench.runtime.run(bench.store.synced(bench.append(11)));
  CHECK(FaultyFiles::log_syncs == 2);
  bench.runtime.run(bench.store.close());
}

TEST_CASE("sqlite: a full disk is named, and nothing is called written", "[datastore][sqlite]") {
  Bench bench;
  bench.runtime.run(bench.store.written(bench.append(1)));

  FaultyFiles::full = true;
  const StorePosition lost = bench.append(2);
  const std::string sentence = bench.failure(bench.store.written(lost));
  FaultyFiles::full = false;

  CHECK_THAT(sentence, Catch::Contains("the disk is full") && Catch::Contains("nni.sqlite") &&
                           Catch::Contains("free space and resume"));
  CHECK(bench.failure(bench.store.written(lost)) == sentence);
  CHECK(bench.failure(bench.store.written(bench.append(3))) == sentence);
  CHECK(bench.failure(bench.store.close()) == sentence);
  CHECK(bench.reopened().trials == 1);
}

TEST_CASE("sqlite: after a failed sync nothing more is called synced", "[datastore][sqlite]") {
  Bench bench;
  bench.runtime.run(bench.store.synced(bench.append(1)));

  FaultyFiles::sync_fails = true;
  const StorePosition at = bench.append(2);
  const std::string sentence = bench.failure(bench.store.synced(at));
  FaultyFiles::sync_fails = false;

  CHECK_THAT(sentence, Catch::Contains("nni.sqlite") && Catch::Contains("resume the experiment"));
  CHECK(bench.failure(bench.store.synced(at)) == sentence);
  CHECK(bench.failure(bench.store.synced(StorePosition{5})).empty());
  CHECK(bench.failure(bench.store.close()) == sentence);
  CHECK(bench.reopened().trials == 2);
}

TEST_CASE("sqlite: a checkpoint that cannot be synced fails the store", "[datastore][sqlite]") {
  Bench bench;
  // Enough for the log to be moved into the file: each value is larger than a page.
  const std::string large = "\"" + std::string(5'000, 'x') + "\"";
  FaultyFiles::sync_fails = true;

  std::string sentence;
  for (std::uint64_t trial = 1; trial <= 4'000 && sentence.empty(); ++trial)
    sentence = bench.failure(bench.store.written(bench.store.append(StoreScript().succeeded(trial, large).events())));
  FaultyFiles::sync_fails = false;

  CHECK_THAT(sentence, Catch::Contains("cannot read or write"));
}
