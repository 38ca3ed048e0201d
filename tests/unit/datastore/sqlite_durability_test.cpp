#include "support/catch.hpp"

#include <atomic>
#include <exception>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/manual_clock.hpp>
#include <nni/testing/store_script.hpp>

#include "support/recording_vfs.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Sqlite;
using nni_test::RecordingVfs;
using testing::StoreScript;
using Call = RecordingVfs::Call;

namespace {

// A store on a disk that can fail, and a clock that passes pauses at once.
class Bench {
 public:
  Bench() : runtime(settings()) {
    clock.attach(runtime.io());
    store.on_trouble([this](const std::string& reason) { told.push_back(reason); });
    open(store);
  }

  // From now on calls of a kind fail; while nobody can write, `until` calls of any kind are let through at most.
  void fail(Call call, int code, int times, bool drops = false) {
    disk.change([call, code, times, drops](const RecordingVfs::Asked& asked) mutable {
      const bool fails = asked.call == call && times-- > 0;
      return RecordingVfs::Fault{fails ? code : SQLITE_OK, 0, drops};
    });
  }
  void open(Sqlite& which) { static_cast<void>(clock.run(which.open(runtime.context(), ExperimentId("abc")))); }
  std::string failure(awaitable<void> work, Errc code = Errc::storage_failed) {
    try {
      clock.run(std::move(work));
    } catch (const Error& error) {
      CHECK(error.code() == make_error_code(code));
      return error.what();
    }
    return {};
  }
  StorePosition append(std::uint64_t trial) { return store.append(StoreScript().succeeded(trial, "0.5").events()); }
  ExperimentSnapshot reopened() {
    Sqlite again{{.directory = place.path()}};
    ExperimentSnapshot found = clock.run(again.open(runtime.context(), ExperimentId("abc")));
    clock.run(again.close());
    return found;
  }
  Duration passed() const { return clock.steady_now() - began; }

  nni_test::TemporaryDirectory place;
  RecordingVfs disk;
  testing::ManualClock clock;
  SteadyPoint began = clock.steady_now();
  std::vector<std::string> log;
  Runtime runtime;
  std::vector<std::string> told;
  Sqlite store{{.directory = place.path(), .vfs = disk.name()}};

 private:
  RuntimeOptions settings() {
    RuntimeOptions options;
    options.clock = clock;
    options.log = Log([this](LogLevel, std::string_view, std::string_view text) { log.emplace_back(text); });
    return options;
  }
};

constexpr int always = 1'000'000;

}  // namespace

TEST_CASE("sqlite: the log is synced when somebody waits for it, and only then", "[datastore][sqlite]") {
  Bench bench;
  const int before = bench.disk.log_syncs();

  for (std::uint64_t trial = 1; trial <= 10; ++trial) bench.clock.run(bench.store.written(bench.append(trial)));
  CHECK(bench.disk.log_syncs() == before);

  bench.clock.run(bench.store.synced(StorePosition{1}));
  CHECK(bench.disk.log_syncs() == before + 1);
  bench.clock.run(bench.store.synced(StorePosition{50}));
  CHECK(bench.disk.log_syncs() == before + 1);

  bench.clock.run(bench.store.synced(bench.append(11)));
  CHECK(bench.disk.log_syncs() == before + 2);
  bench.clock.run(bench.store.close());
}

TEST_CASE("sqlite: a full disk is waited out, with a reason and longer and longer pauses", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.written(bench.append(1)));

  bench.fail(Call::write, SQLITE_FULL, 5);
  bench.clock.run(bench.store.synced(bench.append(2)));

  for (const auto& one : bench.told) UNSCOPED_INFO(one);
  REQUIRE(bench.told.size() == 2);
  CHECK_THAT(bench.told[0],
             Catch::Contains("the disk is full") && Catch::Contains("nni.sqlite") && Catch::Contains("free space"));
  CHECK(bench.told[1].empty());
  CHECK(bench.passed() == std::chrono::milliseconds(100 + 200 + 400 + 800 + 1600));
  bench.clock.run(bench.store.close());
  CHECK(bench.reopened().trials == 2);
}

TEST_CASE("sqlite: nothing is called written while the disk is full, and order is kept", "[datastore][sqlite]") {
  Bench bench;
  std::atomic<bool> written = false;
  std::atomic<bool> lied = false;
  bench.disk.change([&, times = 8](const RecordingVfs::Asked& asked) mutable {
    const bool fails = asked.call == Call::write && times-- > 0;
    if (fails && written) lied = true;
    return RecordingVfs::Fault{fails ? SQLITE_FULL : SQLITE_OK, 0, false};
  });
  const auto note = [&written](std::exception_ptr failure) { written = !failure; };
  for (std::uint64_t trial = 1; trial <= 20; ++trial) {
    const StorePosition at = bench.append(trial);
    if (trial == 1) boost::asio::co_spawn(bench.runtime.io(), bench.store.written(at), note);
  }
  bench.clock.run(bench.store.synced(StorePosition{100}));

  CHECK(written);
  CHECK_FALSE(lied);
  CHECK(bench.told.back().empty());
  bench.clock.run(bench.store.close());
  CHECK(bench.reopened().by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 20);
}

TEST_CASE("sqlite: a close does not wait for space, and says what is missing", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.written(bench.append(1)));
  bench.fail(Call::write, SQLITE_FULL, always);
  bench.append(2);

  CHECK_THAT(bench.failure(bench.store.close()), Catch::Contains("the disk is full"));

  bench.disk.change({});
  CHECK(bench.reopened().trials == 1);
}

TEST_CASE("sqlite: after a failed sync the log is written once more before anything is called synced",
          "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.synced(bench.append(1)));
  bench.clock.run(bench.store.written(bench.append(2)));
  const std::size_t before = bench.disk.recorded();

  bench.fail(Call::sync, SQLITE_IOERR_FSYNC, 1);
  bench.clock.run(bench.store.synced(StorePosition{10}));

  // A sync that fails, the whole log, and a sync that does not fail; the last one is that of the second attempt.
  std::vector<nni_test::DiskCall> since = bench.disk.changes();
  since.erase(since.begin(), since.begin() + static_cast<std::ptrdiff_t>(before));
  REQUIRE(since.size() > 3);
  CHECK(since.front().kind == nni_test::DiskCall::Kind::failed_sync);
  std::uint64_t end = 0;
  for (std::size_t number = 1; number + 2 < since.size(); ++number) {
    CHECK(since[number].kind == nni_test::DiskCall::Kind::write);
    CHECK(since[number].at == end);
    end += since[number].bytes.size();
  }
  CHECK(end == std::filesystem::file_size(bench.place.path() / "abc" / "db" / "nni.sqlite-wal"));
  CHECK(since[since.size() - 2].kind == nni_test::DiskCall::Kind::sync);
  CHECK(since.back().kind == nni_test::DiskCall::Kind::sync);
  CHECK_THAT(bench.told.front(), Catch::Contains("nni.sqlite-wal") && Catch::Contains("sync failed"));
  CHECK(bench.told.back().empty());
  bench.clock.run(bench.store.close());
}

TEST_CASE("sqlite: a log that lost pages in a failed sync fails the store for good", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.synced(bench.append(1)));
  bench.clock.run(bench.store.written(bench.append(2)));

  bench.fail(Call::sync, SQLITE_IOERR_FSYNC, 1, true);
  const std::string sentence = bench.failure(bench.store.synced(StorePosition{10}), Errc::store_corrupt);

  CHECK_THAT(sentence, Catch::Contains("nni.sqlite-wal") && Catch::Contains("the disk has lost what was written") &&
                           Catch::Contains("continues from what was synced"));
  CHECK(bench.failure(bench.store.synced(StorePosition{10}), Errc::store_corrupt) == sentence);
  CHECK(bench.failure(bench.store.written(bench.append(3)), Errc::store_corrupt) == sentence);
  CHECK(bench.failure(bench.store.synced(StorePosition{5})).empty());
  CHECK(bench.failure(bench.store.close(), Errc::store_corrupt) == sentence);
  CHECK(bench.reopened().trials == 1);
}

TEST_CASE("sqlite: a file that was removed fails the store for good", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.synced(bench.append(1)));

  std::filesystem::remove_all(bench.place.path() / "abc");

  const StorePosition lost = bench.append(2);
  CHECK_THAT(bench.failure(bench.store.written(lost), Errc::not_found), Catch::Contains("was removed or replaced"));
  CHECK_THAT(bench.failure(bench.store.close(), Errc::not_found), Catch::Contains("nni.sqlite"));
}

TEST_CASE("sqlite: a log that was removed or replaced fails the store for good", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.synced(bench.append(1)));
  const auto log = bench.place.path() / "abc" / "db" / "nni.sqlite-wal";
  SECTION("removed") { std::filesystem::remove(log); }
  SECTION("replaced") {
    std::filesystem::copy_file(log, log.string() + ".copy");
    std::filesystem::rename(log.string() + ".copy", log);
  }

  const StorePosition lost = bench.append(2);
  CHECK_THAT(bench.failure(bench.store.synced(lost), Errc::not_found),
             Catch::Contains("nni.sqlite-wal was removed or replaced"));
  CHECK_THAT(bench.failure(bench.store.close(), Errc::not_found), Catch::Contains("nni.sqlite-wal"));
}

TEST_CASE("sqlite: a store that has kept everything closes, also when there is no space to tidy it up",
          "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.synced(bench.append(1)));

  bench.fail(Call::write, SQLITE_FULL, always);
  CHECK(bench.failure(bench.store.close()).empty());

  REQUIRE_FALSE(bench.log.empty());
  CHECK_THAT(bench.log.back(), Catch::Contains("nothing was lost") && Catch::Contains("the disk is full"));
  bench.disk.change({});
  CHECK(bench.reopened().trials == 1);
}

TEST_CASE("sqlite: a checkpoint that cannot be synced is waited out like everything else", "[datastore][sqlite]") {
  Bench bench;
  bench.clock.run(bench.store.close());
  Sqlite store{{.directory = bench.place.path(), .vfs = bench.disk.name(), .log_pages = 10}};
  std::vector<std::string> told;
  store.on_trouble([&told](const std::string& reason) { told.push_back(reason); });
  bench.open(store);
  // Each value is larger than a page, so the log is moved into the file soon.
  const std::string large = "\"" + std::string(5'000, 'x') + "\"";
  bench.fail(Call::sync, SQLITE_IOERR_FSYNC, 1);

  for (std::uint64_t trial = 1; trial <= 20; ++trial)
    bench.clock.run(store.written(store.append(StoreScript().succeeded(trial, large).events())));
  bench.clock.run(store.close());

  REQUIRE(told.size() == 2);
  CHECK_THAT(told.front(), Catch::Contains("cannot read or write"));
  CHECK(bench.reopened().trials == 20);
}
