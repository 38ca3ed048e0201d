// Every call of SQLite's files fails once, in every way in which it can fail.

#include "support/catch.hpp"

#include <iostream>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/manual_clock.hpp>

#include "support/recording_vfs.hpp"
#include "support/repeatable.hpp"
#include "support/store_oracle.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using nni_test::RecordingVfs;
using Call = RecordingVfs::Call;

namespace {

// The ways in which a call of a kind fails.
std::vector<RecordingVfs::Fault> ways(Call call) {
  switch (call) {
    case Call::open: return {{SQLITE_CANTOPEN, 0, false}};
    case Call::remove: return {{SQLITE_IOERR_DELETE, 0, false}};
    case Call::read: return {{SQLITE_IOERR_READ, 0, false}};
    case Call::size: return {{SQLITE_IOERR_FSTAT, 0, false}};
    case Call::truncate: return {{SQLITE_IOERR_TRUNCATE, 0, false}};
    case Call::sync: return {{SQLITE_IOERR_FSYNC, 0, false}};
    case Call::write: break;
  }
  return {{SQLITE_FULL, 0, false}, {SQLITE_IOERR_WRITE, 0, false}, {SQLITE_FULL, 700, false}};
}

struct Outcome {
  bool opened = false;
  bool closed = false;
  std::size_t promised = 0;  // records that were called written
  std::string refusal;
  std::vector<std::string> told;
};

// Opens a store, writes the script in small steps, closes it; one call fails.
class Attempt {
 public:
  Attempt(const std::vector<StoreEvent>& events, std::uint64_t number, std::size_t way) {
    disk.fault = [this, number, way](const RecordingVfs::Asked& asked) {
      if (asked.number != number) return RecordingVfs::Fault{};
      const std::vector<RecordingVfs::Fault> all = ways(asked.call);
      more_ways = way + 1 < all.size();
      return all[std::min(way, all.size() - 1)];  // two threads call, so the kind of a call may differ from run to run
    };
    testing::ManualClock clock;
    RuntimeOptions settings;
    settings.clock = clock;
    Runtime runtime(settings);
    clock.attach(runtime.io());
    datastore::Sqlite store{{.directory = place.path(), .vfs = disk.name(), .log_pages = 20}};
    store.on_trouble([this](const std::string& reason) { outcome.told.push_back(reason); });
    try {
      static_cast<void>(clock.run(store.open(runtime.context(), ExperimentId("abc"))));
      outcome.opened = true;
      for (std::size_t done = 0; done < events.size();) {
        const std::size_t count = std::min<std::size_t>(7, events.size() - done);
        const StorePosition at = store.append(std::span(events).subspan(done, count));
        done += count;
        clock.run(done % 2 == 0 ? store.written(at) : store.synced(at));
        outcome.promised = done;
      }
      clock.run(store.close());
      outcome.closed = true;
    } catch (const Error& error) {
      outcome.refusal = error.what();
      code = error.code();
    }
    calls = disk.calls();
  }

  nni_test::TemporaryDirectory place;
  RecordingVfs disk;
  Outcome outcome;
  boost::system::error_code code;
  bool more_ways = false;
  std::uint64_t calls = 0;
};

}  // namespace

TEST_CASE("sqlite: whichever call fails, nothing is lost and nothing is claimed", "[datastore][faults]") {
  const std::uint64_t seed = nni_test::test_seed();
  const std::uint64_t stride = nni_test::number_from("NNI_FAULT_STRIDE", 11);
  INFO("NNI_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::vector<StoreEvent> events = nni_test::random_script(12, random);
  const nni_test::StoreOracle oracle(events);

  std::uint64_t faults = 0;
  std::uint64_t waited_out = 0;
  std::uint64_t refused = 0;
  std::uint64_t number = 1 + seed % stride;
  for (bool through = false; !through; number += stride) {
    bool more_ways = true;
    for (std::size_t way = 0; more_ways; ++way) {
      const Attempt attempt(events, number, way);
      more_ways = attempt.more_ways;
      through = attempt.calls < number;
      if (through) break;
      ++faults;
      const Outcome& outcome = attempt.outcome;
      INFO("call " << number << " of " << attempt.calls << ", way " << way << ": " << outcome.refusal);
      waited_out += !outcome.told.empty();
      refused += !outcome.refusal.empty();

      // A store that is open waits the fault out; opening and closing say what is wrong.
      if (outcome.opened) CHECK((outcome.promised == events.size()));
      if (!outcome.told.empty() && outcome.promised == events.size() && outcome.closed)
        CHECK(outcome.told.back().empty());
      if (!outcome.refusal.empty()) {
        CHECK(attempt.code == make_error_code(Errc::storage_failed));
        CHECK_THAT(outcome.refusal, Catch::Contains("nni.sqlite"));
      }

      Runtime runtime;
      datastore::Sqlite again{{.directory = attempt.place.path()}};
      static_cast<void>(runtime.run(again.open(runtime.context(), ExperimentId("abc"))));
      const std::optional<std::size_t> found = oracle.prefix(runtime.run(nni_test::dump(again)));
      runtime.run(again.close());
      REQUIRE(found);
      CHECK(*found >= outcome.promised);
    }
  }
  std::cout << "store_faults sqlite: " << faults << " faults in " << number << " calls, " << waited_out
            << " waited out, " << refused << " named by open or close (NNI_TEST_SEED=" << seed << ")\n";
  CHECK(waited_out > 0);
}

TEST_CASE("sqlite: a store that was cut off at any place opens at a record, or says why not", "[datastore][faults]") {
  std::mt19937_64 random(20'261'121);
  const std::vector<StoreEvent> events = nni_test::random_script(12, random);
  const nni_test::StoreOracle oracle(events);
  // The files of a manager that was killed: a database and its log.
  nni_test::TemporaryDirectory origin;
  Runtime runtime;
  datastore::Sqlite store{{.directory = origin.path(), .log_pages = 40}};
  static_cast<void>(runtime.run(store.open(runtime.context(), ExperimentId("abc"))));
  for (std::size_t done = 0; done < events.size(); done += 5)
    runtime.run(
        store.written(store.append(std::span(events).subspan(done, std::min<std::size_t>(5, events.size() - done)))));

  std::size_t opened = 0;
  std::size_t refused = 0;
  for (int cut = 0; cut < 40; ++cut) {
    nni_test::TemporaryDirectory place;
    const auto home = place.path() / "abc" / "db";
    std::filesystem::create_directories(home);
    for (const char* name : {"nni.sqlite", "nni.sqlite-wal"})
      std::filesystem::copy_file(origin.path() / "abc" / "db" / name, home / name);
    const auto file = home / (cut % 4 == 0 ? "nni.sqlite" : "nni.sqlite-wal");
    const std::uintmax_t size = std::filesystem::file_size(file);
    std::filesystem::resize_file(file, random() % size);
    datastore::Sqlite torn{{.directory = place.path()}};
    INFO("cut " << cut << " of " << file << " at " << std::filesystem::file_size(file) << " of " << size);
    try {
      static_cast<void>(runtime.run(torn.open(runtime.context(), ExperimentId("abc"))));
      CHECK(oracle.prefix(runtime.run(nni_test::dump(torn))));
      runtime.run(torn.close());
      ++opened;
    } catch (const Error& error) {
      CHECK((error.code() == make_error_code(Errc::store_corrupt)));
      CHECK_THAT(error.what(), Catch::Contains("nni.sqlite"));
      ++refused;
    }
  }
  CHECK(opened > 20);
  CHECK(opened + refused == 40);
  runtime.run(store.close());
}
