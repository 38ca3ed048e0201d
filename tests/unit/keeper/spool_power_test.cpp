#include "support/catch.hpp"

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <map>
#include <random>
#include <string>

#include <nni/core/error.hpp>
#include <nni/keeper/process/spool.hpp>

#include "support/failing_files.hpp"
#include "support/recording_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using keeper::Spool;
using nni_test::Call;
using nni_test::FailingFiles;
using nni_test::PowerLossImage;
using nni_test::RecordingFiles;

namespace {

using Records = std::map<std::uint64_t, std::string>;

Records records_of(const std::filesystem::path& path) {
  Records found;
  Spool spool;
  spool.open(path, [&found](std::uint64_t position, std::string_view payload) { found[position] = payload; });
  return found;
}

// What a keeper did: which records it wrote, and when each one was let go of.
struct History {
  Records written;
  std::map<std::uint64_t, std::size_t> needed_until;  // calls that had been made by then
};

// A keeper's life in short: records come, are written, synced, acknowledged and let go, until the file is rewritten.
History live(Spool& spool, RecordingFiles& files, std::mt19937_64& random) {
  History history;
  std::vector<std::uint64_t> kept;
  std::uint64_t acknowledged = spool.next_position();
  for (int step = 0; step < 400; ++step) {
    const std::size_t size = random() % 20 == 0 ? 60'000 : random() % 300;
    const bool keep = random() % 10 == 0;
    std::string payload(size, static_cast<char>('a' + step % 26));
    const std::uint64_t position = spool.append(payload, keep);
    if (keep) kept.push_back(position);
    history.written.emplace(position, std::move(payload));
    if (random() % 3 == 0) REQUIRE(spool.flush() == 0);
    if (random() % 8 == 0) {
      REQUIRE(spool.sync() == 0);
      files.mark(spool.written_end());
    }
    if (random() % 5 == 0 && spool.written_end() > acknowledged) {
      const std::uint64_t end = acknowledged + 1 + random() % (spool.written_end() - acknowledged);
      for (std::uint64_t gone = acknowledged; gone < end; ++gone)
        if (std::find(kept.begin(), kept.end(), gone) == kept.end()) history.needed_until[gone] = files.size();
      spool.acknowledge(acknowledged, end - acknowledged);
      acknowledged = end;
    }
    if (!kept.empty() && kept.front() < acknowledged && random() % 15 == 0) {
      history.needed_until[kept.front()] = files.size();
      spool.release(kept.front());
      kept.erase(kept.begin());
    }
  }
  return history;
}

}  // namespace

TEST_CASE("spool: no loss of power takes a record that was called synced", "[keeper][spool][power]") {
  const std::uint64_t seed = 20'261'121;
  const std::size_t count = nni_test::power_loss_images();
  std::mt19937_64 random(seed);
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<RecordingFiles>(place.path());
  History history;
  {
    Spool spool(files);
    spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {});
    history = live(spool, *files, random);
  }

  std::size_t missing = 0;
  std::size_t changed = 0;
  std::size_t refused = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const PowerLossImage image = files->image(seed + index);
    INFO("image of seed " << seed + index << ", after " << image.cut << " calls");
    const nni_test::TemporaryDirectory disk;
    image.write_to(disk.path());
    Records found;
    try {
      found = records_of(disk.path() / "spool");
    } catch (const Error& error) {
      ++refused;
      FAIL_CHECK(error.what());
      continue;
    }
    for (const auto& [position, payload] : found)
      if (const auto known = history.written.find(position); known == history.written.end() || known->second != payload)
        ++changed;
    for (const auto& [position, payload] : history.written) {
      const auto gone = history.needed_until.find(position);
      const bool needed = gone == history.needed_until.end() || gone->second > image.cut;
      if (position < image.mark && needed && found.count(position) == 0) ++missing;
    }
    CHECK(missing == 0);
    CHECK(changed == 0);
  }
  std::cout << "power loss, spool: seed " << seed << ", " << count << " images of " << files->size() << " calls, "
            << missing << " synced records missing, " << changed << " changed, " << refused << " not opened\n";
  CHECK(missing + changed + refused == 0);
}

TEST_CASE("spool: a keeper goes on behind the tail that a loss of power has torn", "[keeper][spool][power]") {
  const std::uint64_t seed = 4711;
  std::mt19937_64 random(seed);
  const nni_test::TemporaryDirectory place;
  const auto first = std::make_shared<RecordingFiles>(place.path());
  {
    Spool spool(first);
    spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {});
    for (int count = 0; count < 50; ++count) {
      spool.append(std::string(random() % 900, 'f'));
      REQUIRE(spool.flush() == 0);
    }
  }
  for (const PowerLossImage& image : first->images(seed, nni_test::power_loss_images() / 4)) {
    const nni_test::TemporaryDirectory disk;
    image.write_to(disk.path());
    const auto second = std::make_shared<RecordingFiles>(disk.path());
    Records left;
    std::uint64_t synced = 0;
    {
      Spool spool(second);
      spool.open(
          disk.path() / "spool", [&left](std::uint64_t position, std::string_view text) { left[position] = text; });
      left[spool.append("second life")] = "second life";
      REQUIRE(spool.sync() == 0);
      second->mark(synced = spool.written_end());
      left[spool.append("not synced")] = "not synced";
      REQUIRE(spool.flush() == 0);
    }
    for (const PowerLossImage& again : second->images(seed + image.cut, 5)) {
      const nni_test::TemporaryDirectory third;
      again.write_to(third.path());
      const Records found = records_of(third.path() / "spool");
      for (const auto& [position, text] : left)
        if (position < again.mark) CHECK(found.count(position) == 1);
      if (again.mark == synced)
        for (const auto& [position, text] : found) CHECK(left[position] == text);
    }
  }
}

TEST_CASE("spool: when the disk refuses a sync, the records go into another file", "[keeper][spool]") {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<FailingFiles>();
  const auto recording = std::make_shared<RecordingFiles>(place.path(), files);
  Spool spool(recording);
  spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {});
  spool.append("one");
  REQUIRE(spool.sync() == 0);
  spool.append("two");

  files->fail_next(Call::sync, EIO);
  REQUIRE(spool.sync() == 0);
  recording->mark(1);

  for (const PowerLossImage& image : recording->images(1, 40))
    if (image.mark == 1) {
      const nni_test::TemporaryDirectory disk;
      image.write_to(disk.path());
      CHECK(records_of(disk.path() / "spool") == Records{{1, "one"}, {2, "two"}});
    }

  SECTION("and as long as that fails too, nothing is called synced") {
    spool.append("three");
    files->fail_all(Call::sync, EIO);
    CHECK(spool.sync() == EIO);
    CHECK(spool.sync() == EIO);
    files->mend();
    CHECK(spool.sync() == 0);
    CHECK(records_of(place.path() / "spool") == Records{{1, "one"}, {2, "two"}, {3, "three"}});
  }
}

TEST_CASE("spool: whichever call fails once, nothing is lost and the next try succeeds", "[keeper][spool]") {
  for (const int error : {ENOSPC, EIO}) {
    for (std::size_t number = 1;; ++number) {
      const nni_test::TemporaryDirectory place;
      const auto files = std::make_shared<FailingFiles>();
      Spool spool(files);
      spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {});
      spool.append("one");
      REQUIRE(spool.flush() == 0);

      files->fail_call(number, error);
      spool.append("two");
      const int flushed = spool.flush();
      spool.append("three");
      const int synced = spool.sync();
      const bool failed = files->failures() > 0;
      INFO("call " << number << ": flush gave " << flushed << ", sync gave " << synced);
      if (flushed != 0) CHECK(flushed == error);
      REQUIRE(spool.flush() == 0);
      REQUIRE(spool.sync() == 0);
      CHECK(records_of(place.path() / "spool") == Records{{1, "one"}, {2, "two"}, {3, "three"}});
      if (!failed) break;
    }
  }
}

TEST_CASE("spool: one whose name could not be synced when it was made is safe once it was opened again",
          "[keeper][spool][power]") {
  const nni_test::TemporaryDirectory place;
  const auto failing = std::make_shared<FailingFiles>();
  const auto files = std::make_shared<RecordingFiles>(place.path(), failing);
  {
    Spool spool(files);
    failing->fail_next(Call::sync_directory, EIO);
    CHECK_THROWS_AS(spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {}), Error);
  }
  Spool spool(files);
  spool.open(place.path() / "spool", [](std::uint64_t, std::string_view) {});
  spool.append("a record");
  REQUIRE(spool.sync() == 0);
  files->mark(1);

  for (const PowerLossImage& image : files->images(1, 40)) {
    if (image.mark == 0) continue;
    const nni_test::TemporaryDirectory disk;
    image.write_to(disk.path());
    CHECK(records_of(disk.path() / "spool").size() == 1);
  }
}
