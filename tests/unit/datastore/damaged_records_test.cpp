// Records that no run of this library wrote: each is an error that names the damage, never a crash or a silent loss.
#include "support/catch.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/convert.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/journal/writer.hpp>
#include <nni/testing/store_script.hpp>
#if NNI_WITH_SQLITE
#include <nni/datastore/sqlite.hpp>
#include <nni/datastore/sqlite/write_ahead_log.hpp>

#include "unit/datastore/sqlite_files.hpp"
#endif

#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Journal;
using testing::StoreScript;

namespace {

namespace fs = std::filesystem;
const ExperimentId id("abc");

template <class Call>
std::string corruption_of(Call call) {
  try {
    call();
    return "nothing is wrong";
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::store_corrupt));
    return error.what();
  }
}

// A journal with whole lines of right checksums.
class ForeignJournal {
 public:
  explicit ForeignJournal(const std::vector<StoreEvent>& events) {
    fs::create_directories(file().parent_path());
    std::string text;
    datastore::detail::JournalWriter writer(text, 0);
    writer.header(id);
    for (const StoreEvent& event : events) writer.event(event, 0);
    std::ofstream(file(), std::ios::binary) << text;
  }
  fs::path file() const { return place.path() / "abc" / "db" / "nni.journal"; }

  ExperimentSnapshot open(bool read_only = false) {
    Runtime runtime;
    Journal store{{.directory = place.path(), .read_only = read_only}};
    ExperimentSnapshot found = runtime.run(store.open(runtime.context(), id));
    runtime.run(store.close());
    return found;
  }

  nni_test::TemporaryDirectory place;
};

// A line of /proc/self/status, in bytes.
std::uint64_t memory(const std::string& name) {
  std::ifstream in("/proc/self/status");
  std::string word;
  std::uint64_t kilobytes = 0;
  while (in >> word)
    if (word == name + ":" && in >> kilobytes) break;
  return kilobytes * 1024;
}

}  // namespace

TEST_CASE("journal: a trial whose number skips others makes no room for them", "[datastore][journal][damage]") {
  StoreScript script;
  script.ordered(60'000'000);
  ForeignJournal journal(script.events());

  CHECK_THAT(corruption_of([&] { journal.open(); }),
             Catch::Contains("cannot be understood in line 2") && Catch::Contains("trial 60000000 is ordered after 0"));
}

TEST_CASE("journal: an attempt behind which numbers end is refused", "[datastore][journal][damage]") {
  const std::uint32_t attempt = GENERATE(0x8000'0000U, 0xffff'fffeU, 0xffff'ffffU);
  StoreScript script;
  script.ordered(1).intended(1, attempt);
  ForeignJournal journal(script.events());

  CHECK_THAT(corruption_of([&] { journal.open(); }), Catch::Contains("cannot be understood in line 3"));
}

TEST_CASE("journal: a line without an end takes no memory of its length", "[datastore][journal][damage]") {
  StoreScript script;
  script.profile(id, ExperimentStatus::done, 2).succeeded(1, "0.5");
  ForeignJournal journal(script.events());
  constexpr off_t length = 512 * 1024 * 1024;
  REQUIRE(::truncate(journal.file().c_str(), length) == 0);  // one line of zeros
  std::ofstream("/proc/self/clear_refs") << "5";             // the peak counts from now on
  [[maybe_unused]] const std::uint64_t before = memory("VmRSS");

  const ExperimentSnapshot found = journal.open(true);

  CHECK(found.trials == 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep and shadow memory
  CHECK(memory("VmHWM") - before < 200 * 1024 * 1024);
#endif
}

#if NNI_WITH_SQLITE

namespace {

class Database {
 public:
  Database() {
    datastore::Sqlite store = sqlite(false);
    runtime.run(store.open(runtime.context(), id));
    StoreScript script;
    script.profile(id, ExperimentStatus::done, 3).succeeded(1, "0.1").succeeded(2, "0.2").succeeded(3, "0.3");
    runtime.run(store.synced(store.append(script.events())));
    runtime.run(store.close());
  }
  datastore::Sqlite sqlite(bool read_only = true) const {
    return datastore::Sqlite{{.directory = place.path(), .read_only = read_only}};
  }
  void change(const std::string& sql) const { nni_test::query(place.path() / "abc" / "db" / "nni.sqlite", sql); }

  // What is wrong with an answer of the store.
  template <class Read>
  std::string corruption(Read read) {
    datastore::Sqlite store = sqlite();
    const std::string text = corruption_of([&] {
      runtime.run(store.open(runtime.context(), id));
      read(store);
    });
    runtime.run(store.close());
    return text;
  }

  nni_test::TemporaryDirectory place;
  Runtime runtime;
};

}  // namespace

TEST_CASE("sqlite: a trial that lacks its first event is damage, in every answer", "[datastore][sqlite][damage]") {
  Database database;
  database.change("DELETE FROM TrialJobEvent WHERE trialJobId = (SELECT trialJobId FROM TrialJobEvent LIMIT 1)");
  const std::string wanted = "a trial without its first event";
  const auto page = [&database](const TrialQuery& query) {
    return database.corruption([&](datastore::Sqlite& store) { database.runtime.run(store.page(query)); });
  };

  TrialQuery best;
  best.best = Direction::minimize;
  CHECK_THAT(page(best), Catch::Contains(wanted));
  CHECK_THAT(page({}), Catch::Contains(wanted));
  CHECK_THAT(database.corruption([&](datastore::Sqlite& store) { database.runtime.run(store.load(TrialId{1})); }),
             Catch::Contains(wanted));
}

TEST_CASE("a conversion that cannot read every trial fails", "[datastore][sqlite][damage]") {
  Database database;
  database.change("DELETE FROM TrialJobEvent");
  nni_test::TemporaryDirectory copies;

  CHECK_THAT(corruption_of([&] { datastore::convert(database.sqlite(), Journal{{.directory = copies.path()}}, id); }),
             Catch::Contains("a trial without its first event"));
}

TEST_CASE("a conversion counts what it has copied", "[datastore][damage]") {
  ExperimentSnapshot snapshot;
  snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] = 2;
  snapshot.unfinished.resize(1);

  CHECK_NOTHROW(datastore::detail::require_all_copied(3, snapshot));
  CHECK_THAT(corruption_of([&] { datastore::detail::require_all_copied(2, snapshot); }),
             Catch::Contains("of the 3 trials") && Catch::Contains("only 2 could be read"));
}

TEST_CASE("sqlite: a value that this library never writes is damage, named in its words",
          "[datastore][sqlite][damage]") {
  Database database;
  const auto open = [&database] { return database.corruption([](datastore::Sqlite&) {}); };
  const auto page = [&database] {
    return database.corruption([&](datastore::Sqlite& store) { database.runtime.run(store.page({})); });
  };

  SECTION("a history with a text in it") {
    database.change("INSERT INTO nni_imported VALUES (1, '{}', 0.5, '[1, \"two\"]', 0)");
    CHECK_THAT(open(), Catch::Contains("an imported result"));
  }
  SECTION("more attempts than there are numbers") {
    database.change("UPDATE nni_trials SET attempts = 4294967295 WHERE number = 1");
    CHECK_THAT(page(), Catch::Contains("a count of attempts"));
  }
  SECTION("a number that no trial has") {
    database.change("UPDATE nni_trials SET number = -1 WHERE number = 1");
    CHECK_THAT(open(), Catch::Contains("the number of a trial"));
  }
  SECTION("an end of a run that is unknown") {
    database.change("UPDATE nni_runs SET ended = 'vanished'");
    CHECK_THAT(page(), Catch::Contains("an end of a run") && Catch::Contains("vanished"));
  }
  SECTION("a reason to stop that is unknown") {
    database.change("UPDATE nni_runs SET why = 'whim'");
    CHECK_THAT(page(), Catch::Contains("a reason to stop") && Catch::Contains("whim"));
  }
  SECTION("tags that are no list") {
    database.change("UPDATE nni_runs SET tags = '{}'");
    CHECK_THAT(page(), Catch::Contains("the tags of a run"));
  }
  SECTION("escape sequences in a status") {
    database.change("UPDATE nni_trials SET status = char(27) || '[2J' WHERE number = 1");
    CHECK_THAT(open(), Catch::Contains("a trial's status") && Catch::Contains("?[2J"));
  }
}

TEST_CASE("sqlite: attempts that no experiment makes are not copied one by one", "[datastore][sqlite][damage]") {
  Database database;
  database.change(
      "UPDATE nni_trials SET attempts = 2000000000 WHERE number = 1; "
      "UPDATE nni_runs SET attempt = 1999999999 WHERE trial = 1");
  nni_test::TemporaryDirectory copies;

  CHECK_THAT(corruption_of([&] { datastore::convert(database.sqlite(), Journal{{.directory = copies.path()}}, id); }),
             Catch::Contains("2000000000 attempts"));
}

namespace {

// The header of a log, with the right checksum (SQLite file format, section 4.1), and some bytes behind it.
std::string log_with_pages_of(std::uint32_t page_size) {
  std::string log;
  const auto word = [&log](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) log += static_cast<char>(value >> shift);
  };
  for (const std::uint32_t value : {0x377f0683U, 3007000U, page_size, 0U, 1U, 2U}) word(value);
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  for (std::size_t at = 0; at < 24; at += 8) {
    const auto read = [&log](std::size_t from) {
      std::uint32_t value = 0;
      for (std::size_t byte = 0; byte < 4; ++byte) value = value << 8 | static_cast<unsigned char>(log[from + byte]);
      return value;
    };
    first += read(at) + second;
    second += read(at + 4) + first;
  }
  word(first);
  word(second);
  // A frame with the salts of the header, so that its checksum is looked at.
  for (const std::uint32_t value : {1U, 1U, 1U, 2U}) word(value);
  return log + std::string(100'000, '\1');
}

}  // namespace

TEST_CASE("sqlite: a log with pages of a size that no database has is taken for empty", "[datastore][sqlite][damage]") {
  for (const std::uint32_t size : {0U, 1U, 12U, 256U, 500U, 513U, 4095U, 65'535U, 131'072U, 0xffff'ffffU}) {
    const datastore::detail::IntactLog found = datastore::detail::intact_part(log_with_pages_of(size));
    CHECK(found.bytes == 0);
    CHECK(found.frames == 0);
  }
  for (const std::uint32_t size : {512U, 4096U, 65'536U}) {
    const datastore::detail::IntactLog found = datastore::detail::intact_part(log_with_pages_of(size));
    CHECK(found.page_size == size);
    CHECK(found.bytes == 32);
  }
}

TEST_CASE("sqlite: an experiment whose log has pages of no size, and no end, is resumed",
          "[datastore][sqlite][damage]") {
  Database database;
  const fs::path log = database.place.path() / "abc" / "db" / "nni.sqlite-wal";
  std::ofstream(log, std::ios::binary) << log_with_pages_of(0);
  REQUIRE(::truncate(log.c_str(), off_t{1} << 40) == 0);  // more than any memory
  datastore::Sqlite store = database.sqlite(false);

  CHECK(database.runtime.run(store.open(database.runtime.context(), id)).trials == 3);
  database.runtime.run(store.close());
}

#endif
