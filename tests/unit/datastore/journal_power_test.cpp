#include "support/catch.hpp"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/journal/line.hpp>
#include <nni/datastore/journal/writer.hpp>
#include <nni/testing/manual_clock.hpp>
#include <nni/testing/store_script.hpp>

#include "support/failing_files.hpp"
#include "support/recording_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Journal;
using nni_test::PowerLossImage;
using nni_test::RecordingFiles;
using testing::StoreScript;

namespace {

const ExperimentId id("abc");

std::string text_of(const StoreEvent& event) {
  std::string text;
  datastore::detail::JournalWriter(text, 0).event(event);
  return text;
}

// The events that stand in a file.
std::vector<std::string> events_in(const std::filesystem::path& file) {
  std::vector<std::string> found;
  std::ifstream in(file, std::ios::binary);
  std::string params;
  std::uint64_t offset = 0;
  for (std::string line; std::getline(in, line); offset += line.size() + 1) {
    const auto json = datastore::detail::checked_line(line, offset);
    REQUIRE(json);
    auto parsed = datastore::detail::parse_journal_line(*json);
    if (!parsed || parsed->kind != datastore::detail::JournalLine::Kind::event) continue;
    if (auto* const profile = std::get_if<ProfileChanged>(&parsed->event)) {
      if (!parsed->has_params) profile->params = params;
      params = profile->params;
    }
    found.push_back(text_of(parsed->event));
  }
  return found;
}

// Events of trials that come, report and end, a few at a time.
std::vector<std::vector<StoreEvent>> made_up_events(std::mt19937_64& random) {
  std::vector<std::vector<StoreEvent>> batches;
  for (std::uint64_t trial = 1; trial <= 40; ++trial) {
    StoreScript script;
    if (random() % 5 == 0) script.profile(id, ExperimentStatus::running, trial);
    script.ordered(trial).intended(trial).started(trial);
    const auto values = static_cast<std::uint32_t>(random() % 6);
    for (std::uint32_t value = 0; value < values; ++value)
      script.intermediate(trial, value, random() % 4 == 0 ? "\"" + std::string(3000, 'v') + "\"" : "0.125");
    script.final_value(trial, "0.5").ended(trial);
    const std::vector<StoreEvent>& all = script.events();
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t count = std::min<std::size_t>(all.size() - at, 1 + random() % 5);
      batches.emplace_back(
          all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + count));
      at += count;
    }
  }
  return batches;
}

class Loss {
 public:
  std::size_t missing = 0;  ///< records that were called synced
  std::size_t refused = 0;  ///< stores that do not open
  std::size_t strange = 0;  ///< records that were never made, or in another order
};

// Records some batches, with a mark for each promise, in several sessions.
// @param failing  where given, some writes and syncs of an open journal fail
std::vector<std::string> live(const std::filesystem::path& place, const std::shared_ptr<RecordingFiles>& files,
                              std::mt19937_64& random, nni_test::FailingFiles* failing = nullptr) {
  testing::ManualClock clock;
  RuntimeOptions settings;
  settings.clock = clock;
  Runtime runtime(settings);
  clock.attach(runtime.io());
  std::vector<std::string> appended;
  std::optional<Journal> store;
  const auto open = [&] {
    store.emplace(datastore::JournalOptions{.directory = place, .system = files});
    static_cast<void>(clock.run(store->open(runtime.context(), id)));
  };
  open();
  std::uint64_t before = 0;  // events of earlier sessions
  for (const std::vector<StoreEvent>& batch : made_up_events(random)) {
    for (const StoreEvent& event : batch) appended.push_back(text_of(event));
    const StorePosition at = store->append(batch);
    if (failing != nullptr && random() % 20 == 0) failing->fail_next(nni_test::Call::write, ENOSPC);
    if (random() % 3 == 0) clock.run(store->written(at));
    if (random() % 6 == 0) {
      if (failing != nullptr && random() % 3 == 0) failing->fail_next(nni_test::Call::sync, EIO);
      clock.run(store->synced(at));
      files->mark(before + at.value);
    }
    if (random() % 40 == 0) {
      if (failing != nullptr) failing->mend();  // closing waits for nothing
      clock.run(store->close());
      files->mark(appended.size());
      before = appended.size();
      open();
    }
  }
  if (failing != nullptr) failing->mend();
  clock.run(store->close());
  return appended;
}

Loss look_at(Runtime& runtime, const RecordingFiles& files, const std::vector<std::string>& appended,
             std::uint64_t seed, std::size_t count) {
  Loss loss;
  for (std::size_t index = 0; index < count; ++index) {
    const PowerLossImage image = files.image(seed + index);
    const nni_test::TemporaryDirectory disk;
    image.write_to(disk.path());
    Journal store{{.directory = disk.path()}};
    try {
      runtime.run(store.open(runtime.context(), id));
      runtime.run(store.close());
    } catch (const Error& error) {
      UNSCOPED_INFO("image of seed " << seed + index << ": " << error.what());
      ++loss.refused;
      continue;
    }
    const std::vector<std::string> found = events_in(disk.path() / "abc" / "db" / "nni.journal");
    if (found.size() < image.mark) {
      UNSCOPED_INFO("image of seed " << seed + index << " after " << image.cut << " calls");
      loss.missing += image.mark - found.size();
    }
    if (found.size() > appended.size() || !std::equal(found.begin(), found.end(), appended.begin())) ++loss.strange;
  }
  return loss;
}

// Says that it syncs, and does not.
class Liar : public RecordingFiles {
 public:
  using RecordingFiles::RecordingFiles;
  int sync(int) override { return 0; }
};

}  // namespace

TEST_CASE("journal: no loss of power takes a record that was called synced", "[datastore][journal][power]") {
  const std::uint64_t seed = 20'261'121;
  const std::size_t count = nni_test::power_loss_images();
  std::mt19937_64 random(seed);
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  const auto failing = std::make_shared<nni_test::FailingFiles>();
  const auto files = std::make_shared<RecordingFiles>(place.path(), failing);
  const std::vector<std::string> appended = live(place.path(), files, random, failing.get());
  CHECK(failing->failures() > 5);

  const Loss loss = look_at(runtime, *files, appended, seed, count);
  std::cout << "power loss, journal: seed " << seed << ", " << failing->failures() << " failed calls, " << count
            << " images of " << files->size() << " calls, " << loss.missing << " synced records missing, "
            << loss.strange << " out of place, " << loss.refused << " not opened\n";
  CHECK(loss.missing == 0);
  CHECK(loss.refused == 0);
  CHECK(loss.strange == 0);
}

TEST_CASE("journal: the power-loss test catches a store that does not sync", "[datastore][journal][power]") {
  const std::uint64_t seed = 5;
  std::mt19937_64 random(seed);
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  const auto files = std::make_shared<Liar>(place.path());
  const std::vector<std::string> appended = live(place.path(), files, random);

  const Loss loss = look_at(runtime, *files, appended, seed, 30);
  CHECK(loss.missing + loss.refused > 0);
}

TEST_CASE("journal: what a loss of power left goes on, and survives the next one", "[datastore][journal][power]") {
  const std::uint64_t seed = 77;
  std::mt19937_64 random(seed);
  const nni_test::TemporaryDirectory place;
  Runtime runtime;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  live(place.path(), files, random);

  for (const PowerLossImage& image : files->images(seed, nni_test::power_loss_images() / 4)) {
    const nni_test::TemporaryDirectory disk;
    image.write_to(disk.path());
    const auto again = std::make_shared<RecordingFiles>(disk.path());
    std::vector<std::string> kept;
    {
      Journal store{{.directory = disk.path(), .system = again}};
      runtime.run(store.open(runtime.context(), id));
      kept = events_in(disk.path() / "abc" / "db" / "nni.journal");
      for (std::uint64_t trial = 1001; trial <= 1003; ++trial) {
        const std::vector<StoreEvent> events = StoreScript().succeeded(trial, "0.5").events();
        const StorePosition at = store.append(events);
        for (const StoreEvent& event : events) kept.push_back(text_of(event));
        runtime.run(store.synced(at));
        again->mark(kept.size());
      }
      runtime.run(store.close());
    }
    const Loss loss = look_at(runtime, *again, kept, seed + image.cut, 5);
    CHECK(loss.missing == 0);
    CHECK(loss.refused == 0);
    CHECK(loss.strange == 0);
  }
}

TEST_CASE("journal: whichever call of making it fails, what is called synced later survives a loss of power",
          "[datastore][journal][power]") {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  std::vector<std::string> appended;
  for (const StoreEvent& event : events) appended.push_back(text_of(event));
  Runtime runtime;
  std::size_t refused = 0;
  for (std::size_t number = 1;; ++number) {
    const nni_test::TemporaryDirectory place;
    const auto failing = std::make_shared<nni_test::FailingFiles>();
    const auto files = std::make_shared<RecordingFiles>(place.path(), failing);
    Journal store{{.directory = place.path(), .system = files}};
    failing->fail_call(number, EIO);
    try {
      runtime.run(store.open(runtime.context(), id));
    } catch (const Error&) {
      ++refused;
      runtime.run(store.open(runtime.context(), id));
    }
    if (failing->failures() == 0) {
      runtime.run(store.close());
      break;
    }
    runtime.run(store.synced(store.append(events)));
    files->mark(appended.size());
    runtime.run(store.close());

    INFO("call " << number << ", " << to_string(failing->calls()[number - 1]));
    const Loss loss = look_at(runtime, *files, appended, number, 12);
    CHECK(loss.missing == 0);
    CHECK(loss.refused == 0);
  }
  CHECK(refused > 3);
}
