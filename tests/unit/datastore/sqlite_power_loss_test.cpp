// Loss of power at any moment: what a disk may hold then is opened, and everything that was called synced is there.

#include "support/catch.hpp"

#include <algorithm>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/manual_clock.hpp>

#include "support/power_loss.hpp"
#include "support/recording_vfs.hpp"
#include "support/repeatable.hpp"
#include "support/store_oracle.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using nni_test::PowerLoss;
using nni_test::RecordingVfs;

namespace {

// When so many changes had been made to the disk, so many records had been called synced.
struct Mark {
  std::size_t changes = 0;
  std::size_t records = 0;
};

enum class Claim { synced, written };

// Writes a script in three sittings, waits for strengths at random, and lets some syncs fail.
class Sitting {
 public:
  Sitting(const std::vector<StoreEvent>& events, std::mt19937_64& random, Claim claim)
      : events_(events), random_(random), claim_(claim) {
    for (std::size_t sitting = 1; sitting <= 3; ++sitting) write_until(events.size() * sitting / 3, sitting < 3);
  }

  RecordingVfs disk;
  std::vector<Mark> marks;

 private:
  void write_until(std::size_t end, bool closes) {
    testing::ManualClock clock;
    RuntimeOptions settings;
    settings.clock = clock;
    Runtime runtime(settings);
    clock.attach(runtime.io());
    datastore::Sqlite store{{.directory = place_.path(), .vfs = disk.name(), .log_pages = 25}};
    static_cast<void>(clock.run(store.open(runtime.context(), ExperimentId("abc"))));
    disk.names_are_synced();
    disk.change([syncs = 0](const RecordingVfs::Asked& asked) mutable {
      const bool fails = asked.call == RecordingVfs::Call::sync && ++syncs % 7 == 0;
      return RecordingVfs::Fault{fails ? SQLITE_IOERR_FSYNC : SQLITE_OK, 0, false};
    });
    while (done_ < end) {
      const std::size_t count = std::min<std::size_t>(1 + random_() % 12, end - done_);
      const StorePosition at = store.append(std::span(events_).subspan(done_, count));
      done_ += count;
      const auto choice = random_() % 3;
      if (choice == 0) {
        clock.run(store.synced(at));
        marks.push_back({disk.recorded(), done_});
      } else if (choice == 1) {
        clock.run(store.written(at));
        if (claim_ == Claim::written) marks.push_back({disk.recorded(), done_});
      }
    }
    if (!closes) return;
    clock.run(store.synced(StorePosition{events_.size()}));
    disk.change({});  // closing tries once only
    clock.run(store.close());
    marks.push_back({disk.recorded(), done_});
  }

  const std::vector<StoreEvent>& events_;
  std::mt19937_64& random_;
  Claim claim_;
  nni_test::TemporaryDirectory place_;
  std::size_t done_ = 0;
};

// What became of one image.
struct Verdict {
  std::size_t expected = 0;
  std::optional<std::size_t> found;
  std::string refusal;
};

Verdict judge(const Sitting& sitting, const std::vector<nni_test::DiskCall>& changes,
              const nni_test::StoreOracle& oracle, std::mt19937_64& random) {
  Verdict verdict;
  // Every second time right behind a promise, where the least is left to chance.
  const Mark& near = sitting.marks[random() % sitting.marks.size()];
  const std::size_t upto = random() % 2 == 0 ? near.changes : random() % (changes.size() + 1);
  for (const Mark& mark : sitting.marks)
    if (mark.changes <= upto) verdict.expected = std::max(verdict.expected, mark.records);

  nni_test::TemporaryDirectory place;
  const auto home = place.path() / "abc" / "db";
  std::filesystem::create_directories(home);
  const auto rest = static_cast<PowerLoss::Rest>(random() % 4);
  PowerLoss::lay_out(PowerLoss::image(changes, upto, rest, random), home);
  Runtime runtime;
  datastore::Sqlite store{{.directory = place.path()}};
  try {
    static_cast<void>(runtime.run(store.open(runtime.context(), ExperimentId("abc"))));
    verdict.found = oracle.prefix(runtime.run(nni_test::dump(store)));
    runtime.run(store.close());
  } catch (const std::exception& error) {
    verdict.refusal = error.what();
  }
  return verdict;
}

}  // namespace

TEST_CASE("sqlite: after a loss of power the store opens and holds what was called synced", "[datastore][power]") {
  const std::uint64_t seed = nni_test::test_seed();
  const std::uint64_t images = nni_test::number_from("NNI_POWER_LOSS_IMAGES", 48);
  std::mt19937_64 random(seed);
  INFO("NNI_TEST_SEED=" << seed);

  std::size_t missing = 0;
  std::size_t unopened = 0;
  std::size_t torn = 0;
  for (std::uint64_t done = 0; done < images;) {
    const std::vector<StoreEvent> events = nni_test::random_script(40, random);
    const nni_test::StoreOracle oracle(events);
    const Sitting sitting(events, random, Claim::synced);
    const std::vector<nni_test::DiskCall> changes = sitting.disk.changes();
    for (std::uint64_t one = 0; one < 100 && done < images; ++one, ++done) {
      const Verdict verdict = judge(sitting, changes, oracle, random);
      INFO("image " << done << ", expected " << verdict.expected << ", refused with: " << verdict.refusal);
      unopened += !verdict.refusal.empty();
      torn += verdict.refusal.empty() && !verdict.found;
      missing += verdict.found && *verdict.found < verdict.expected;
      CHECK(verdict.refusal.empty());
      CHECK((!verdict.refusal.empty() || verdict.found));
      CHECK((!verdict.found || *verdict.found >= verdict.expected));
    }
  }
  std::cout << "power loss, sqlite: seed " << seed << ", " << images << " images of fresh stores, " << missing
            << " synced records missing, " << torn << " out of order, " << unopened << " not opened\n";
}

TEST_CASE("sqlite: the images of a loss of power tell a sync from a write", "[datastore][power]") {
  std::mt19937_64 random(20'261'121);
  const std::vector<StoreEvent> events = nni_test::random_script(40, random);
  const nni_test::StoreOracle oracle(events);
  // A store that called everything synced that is only written.
  const Sitting sitting(events, random, Claim::written);
  const std::vector<nni_test::DiskCall> changes = sitting.disk.changes();

  std::size_t caught = 0;
  for (int image = 0; image < 30; ++image) {
    const Verdict verdict = judge(sitting, changes, oracle, random);
    caught += verdict.found && *verdict.found < verdict.expected;
  }
  CHECK(caught > 0);
}
