// Every call of a journal fails once, in every way in which it can fail.

#include "support/catch.hpp"

#include <cerrno>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/testing/manual_clock.hpp>
#include <nni/testing/store_script.hpp>

#include "support/failing_files.hpp"
#include "support/repeatable.hpp"
#include "support/store_oracle.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Journal;
using nni_test::Call;
using nni_test::FailingFiles;
using testing::StoreScript;

namespace {

// A system that loses what it could not sync, and calls the rest of the file clean: zeros stand in place of all bytes
// that were written since the last sync that succeeded.
class LosingFiles : public FailingFiles {
 public:
  ssize_t write(int file, const char* from, std::size_t size, std::uint64_t offset) override {
    const ssize_t done = FailingFiles::write(file, from, size, offset);
    if (done > 0) unsynced_[file].emplace_back(offset, static_cast<std::size_t>(done));
    return done;
  }
  int sync(int file) override {
    const int answer = FailingFiles::sync(file);
    if (answer < 0) {
      const std::uint64_t end = static_cast<std::uint64_t>(System::size(file));
      for (const auto& [offset, size] : unsynced_[file]) {
        if (offset >= end) continue;
        const std::string nothing(std::min<std::size_t>(size, end - offset), '\0');
        System::write(file, nothing.data(), nothing.size(), offset);
      }
    }
    unsynced_[file].clear();
    return answer;
  }

 private:
  std::map<int, std::vector<std::pair<std::uint64_t, std::size_t>>> unsynced_;
};

class Bench {
 public:
  explicit Bench(std::shared_ptr<FailingFiles> disk = std::make_shared<FailingFiles>())
      : files(std::move(disk)), runtime(settings(clock)) {
    clock.attach(runtime.io());
  }

  Journal journal() {
    Journal store{{.directory = place.path(), .system = files}};
    store.on_trouble([this](const std::string& reason) { told.push_back(reason); });
    return store;
  }
  ExperimentSnapshot open(Journal& store) { return clock.run(store.open(runtime.context(), ExperimentId("abc"))); }
  std::string failure(awaitable<void> work, Errc expected) {
    try {
      clock.run(std::move(work));
    } catch (const Error& error) {
      CHECK((error.code() == make_error_code(expected)));
      return error.what();
    }
    return {};
  }
  std::size_t succeeded() {
    Journal store{{.directory = place.path()}};
    const ExperimentSnapshot found = open(store);
    clock.run(store.close());
    return found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)];
  }

  nni_test::TemporaryDirectory place;
  std::shared_ptr<FailingFiles> files;
  testing::ManualClock clock;
  std::vector<std::string> told;
  Runtime runtime;

 private:
  static RuntimeOptions settings(testing::ManualClock& clock) {
    RuntimeOptions options;
    options.clock = clock;
    return options;
  }
};

std::vector<StoreEvent> trial(std::uint64_t number) { return StoreScript().succeeded(number, "0.5").events(); }

struct Way {
  int error = EIO;
  bool loses = false;  // what a sync that fails should have brought to the disk
};

struct Outcome {
  bool opened = false;
  std::size_t promised = 0;  // records that were called written
  std::string refusal;
};

// Opens a journal, writes the script in small steps, closes it; one call fails.
Outcome attempt(Bench& bench, const std::vector<StoreEvent>& events, std::size_t number, int error) {
  Outcome outcome;
  bench.files->fail_call(number, error);
  Journal store = bench.journal();
  try {
    static_cast<void>(bench.open(store));
    outcome.opened = true;
    for (std::size_t done = 0; done < events.size();) {
      const std::size_t count = std::min<std::size_t>(7, events.size() - done);
      const StorePosition at = store.append(std::span(events).subspan(done, count));
      done += count;
      bench.clock.run(done % 2 == 0 ? store.written(at) : store.synced(at));
      outcome.promised = done;
    }
    bench.clock.run(store.close());
  } catch (const Error& failure) {
    outcome.refusal = failure.what();
    CHECK((failure.code() == make_error_code(Errc::storage_failed)));
    CHECK_THAT(outcome.refusal, Catch::Contains(bench.place.path().string()));
  }
  return outcome;
}

}  // namespace

TEST_CASE("journal: whichever call fails, nothing is lost and nothing is claimed", "[datastore][faults]") {
  const std::uint64_t seed = nni_test::test_seed();
  const std::uint64_t stride = nni_test::number_from("NNI_FAULT_STRIDE", 3);
  INFO("NNI_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const std::vector<StoreEvent> events = nni_test::random_script(12, random);
  const nni_test::StoreOracle oracle(events);

  std::uint64_t faults = 0;
  std::uint64_t waited_out = 0;
  std::uint64_t refused = 0;
  std::uint64_t number = 1 + seed % stride;
  for (bool through = false; !through; number += stride) {
    for (const Way way : {Way{EIO, false}, Way{ENOSPC, false}, Way{EIO, true}}) {
      Bench bench(way.loses ? std::make_shared<LosingFiles>() : std::make_shared<FailingFiles>());
      const Outcome outcome = attempt(bench, events, number, way.error);
      through = bench.files->failures() == 0;
      if (through) break;
      ++faults;
      INFO("call " << number << ", " << to_string(bench.files->calls()[number - 1]) << ", error " << way.error
                   << (way.loses ? ", losing: " : ": ") << outcome.refusal);
      waited_out += !bench.told.empty();
      refused += !outcome.refusal.empty();

      // A journal that is open waits the fault out; opening and closing say what is wrong.
      if (outcome.opened) CHECK((outcome.promised == events.size()));
      if (!bench.told.empty()) CHECK(bench.told.back().empty());

      Journal again{{.directory = bench.place.path()}};
      static_cast<void>(bench.open(again));
      const std::optional<std::size_t> found = oracle.prefix(bench.clock.run(nni_test::dump(again)));
      bench.clock.run(again.close());
      REQUIRE(found);
      CHECK(*found >= outcome.promised);
    }
  }
  std::cout << "store_faults journal: " << faults << " faults in " << number << " calls, " << waited_out
            << " waited out, " << refused << " named by open or close (NNI_TEST_SEED=" << seed << ")\n";
  CHECK(waited_out > 0);
}

TEST_CASE("journal: a short write is finished without a word", "[datastore][faults]") {
  Bench bench;
  Journal store = bench.journal();
  bench.open(store);
  bench.files->shorten_next_write();
  bench.clock.run(store.synced(store.append(trial(1))));
  bench.clock.run(store.close());
  CHECK(bench.told.empty());
  CHECK(bench.succeeded() == 1);
}

TEST_CASE("journal: what a failed sync has lost is written once more from memory before it is called synced",
          "[datastore][faults]") {
  Bench bench(std::make_shared<LosingFiles>());
  Journal store = bench.journal();
  bench.open(store);
  bench.clock.run(store.synced(store.append(trial(1))));
  bench.clock.run(store.written(store.append(trial(2))));
  bench.clock.run(store.written(store.append(trial(3))));

  bench.files->fail_next(Call::sync, EIO);
  bench.clock.run(store.synced(store.append(trial(4))));

  REQUIRE(bench.told.size() == 2);
  CHECK_THAT(bench.told[0], Catch::Contains("cannot sync") && Catch::Contains("nni.journal"));
  CHECK(bench.told[1].empty());
  // What was read into memory before is no proof: another reader looks.
  CHECK(bench.clock.run(store.load(TrialId{3}))->final_value == "0.5");
  Journal viewer{{.directory = bench.place.path(), .read_only = true}};
  CHECK(bench.open(viewer).trials == 4);
  bench.clock.run(viewer.close());
  bench.clock.run(store.close());
  CHECK(bench.succeeded() == 4);
}

TEST_CASE("journal: nothing is called synced while syncs fail", "[datastore][faults]") {
  Bench bench(std::make_shared<LosingFiles>());
  Journal store = bench.journal();
  bench.open(store);
  bench.files->fail_all(Call::sync, EIO);
  const StorePosition lost = store.append(trial(1));
  store.on_trouble([&store](const std::string&) { store.give_up(); });
  CHECK_THAT(bench.failure(store.synced(lost), Errc::storage_failed), Catch::Contains("cannot sync"));
  CHECK_FALSE(bench.failure(store.synced(lost), Errc::storage_failed).empty());
  CHECK_FALSE(bench.failure(store.close(), Errc::storage_failed).empty());
}

TEST_CASE("journal: a batch of which a part was written is taken back, and written whole later",
          "[datastore][faults]") {
  Bench bench;
  Journal store = bench.journal();
  bench.open(store);
  bench.clock.run(store.written(store.append(trial(1))));
  bench.clock.run(store.metrics(TrialId{1}));  // blocks of the file are in memory now

  bench.files->fail_all(Call::write, ENOSPC);
  bench.files->fail_all(Call::truncate, EIO);  // what a write has left behind cannot even be cut off
  // A value of a run that is over is looked for in the file, for which the lines before it are written.
  StoreScript script;
  script.ordered(2).intended(2).started(2).intermediate(1, 7, "0.25").final_value(2, "0.75").ended(2);
  const StorePosition at = store.append(script.events());
  bool asked = false;
  store.on_trouble([&](const std::string& reason) {
    bench.told.push_back(reason);
    if (std::exchange(asked, true)) return;
    bench.files->mend();
    bench.files->fail_next(Call::sync, EIO);  // and mending fails as well, once
  });
  bench.clock.run(store.synced(at));

  CHECK_THAT(bench.told.front(), Catch::Contains("the disk is full") && Catch::Contains("free space"));
  CHECK(bench.told.back().empty());
  const std::vector<Metric> late = bench.clock.run(store.metrics(TrialId{1}));
  REQUIRE_FALSE(late.empty());
  CHECK(late.back().value == "0.25");
  CHECK(bench.clock.run(store.load(TrialId{2}))->final_value == "0.75");
  bench.clock.run(store.close());
  CHECK(bench.succeeded() == 2);
}

TEST_CASE("journal: what nobody wants synced is synced before it fills the memory", "[datastore][faults]") {
  Bench bench;
  Journal store = bench.journal();
  bench.open(store);
  const std::string large = '"' + std::string(1024 * 1024, 'x') + '"';
  const auto syncs = [&bench] {
    const std::vector<Call> calls = bench.files->calls();
    return std::count(calls.begin(), calls.end(), Call::sync);
  };
  const auto before = syncs();
  for (std::uint64_t number = 1; number <= 7; ++number)
    bench.clock.run(store.written(store.append(StoreScript().succeeded(number, large).events())));
  CHECK(syncs() == before);
  // The sync comes after the answer, and before the next batch.
  for (std::uint64_t number = 8; number <= 9; ++number)
    bench.clock.run(store.written(store.append(StoreScript().succeeded(number, large).events())));
  bench.clock.run(store.written(store.append(trial(10))));
  CHECK(syncs() == before + 1);
  bench.clock.run(store.close());
  CHECK(bench.succeeded() == 10);
}

TEST_CASE("journal: a file that was removed or replaced fails the store for good", "[datastore][faults]") {
  Bench bench;
  Journal store = bench.journal();
  bench.open(store);
  bench.clock.run(store.synced(store.append(trial(1))));
  const auto file = bench.place.path() / "abc" / "db" / "nni.journal";
  SECTION("removed") { std::filesystem::remove_all(bench.place.path() / "abc"); }
  SECTION("replaced") {
    std::filesystem::copy_file(file, file.string() + ".copy");
    std::filesystem::rename(file.string() + ".copy", file);
  }

  const StorePosition lost = store.append(trial(2));
  CHECK_THAT(bench.failure(store.written(lost), Errc::not_found), Catch::Contains("was removed or replaced"));
  CHECK_THAT(bench.failure(store.close(), Errc::not_found), Catch::Contains("nni.journal"));
}
