#include "support/catch.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/testing/store_script.hpp>

#include "support/failing_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using datastore::Journal;
using nni_test::Call;
using nni_test::FailingFiles;
using testing::StoreScript;

namespace {

class Bench {
 public:
  Bench() : runtime(settings()) {}

  std::filesystem::path path() const { return place.path() / "abc" / "db" / "nni.journal"; }
  std::string bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& bytes) const {
    std::filesystem::create_directories(path().parent_path());
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  Journal journal() const { return Journal{{.directory = place.path(), .system = files}}; }

  // Records events and waits for each batch to be synced; the store is left as a kill would leave it, or closed.
  void record(const std::vector<std::vector<StoreEvent>>& batches, bool close = true) {
    Journal store = journal();
    runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    for (const std::vector<StoreEvent>& batch : batches) runtime.run(store.synced(store.append(batch)));
    killed = bytes();
    if (close) runtime.run(store.close());
  }
  ExperimentSnapshot reopened() {
    Journal store = journal();
    ExperimentSnapshot found = runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    runtime.run(store.close());
    return found;
  }
  std::string refusal(Errc expected) {
    Journal store = journal();
    try {
      runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    } catch (const Error& error) {
      CHECK(error.code() == make_error_code(expected));
      return error.what();
    }
    runtime.run(store.close());
    return {};
  }

  nni_test::TemporaryDirectory place;
  std::shared_ptr<FailingFiles> files = std::make_shared<FailingFiles>();
  std::vector<std::string> log;
  std::string killed;  ///< the file before it was closed
  Runtime runtime;

 private:
  RuntimeOptions settings() {
    RuntimeOptions options;
    options.log = Log([this](LogLevel, std::string_view, std::string_view text) { log.emplace_back(text); });
    return options;
  }
};

std::size_t begin_of_line(const std::string& bytes, std::string_view text) {
  return bytes.rfind('\n', bytes.find(text)) + 1;
}

}  // namespace

TEST_CASE("journal: a tail that is torn at any byte is cut at the last whole record, and the log says so",
          "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events(), StoreScript().succeeded(2, "0.25").events()});
  const std::string whole = bench.killed;
  const std::size_t second = begin_of_line(whole, "\"event\":\"ordered\",\"trial\":2");
  const std::size_t ended = begin_of_line(whole, "\"event\":\"ended\",\"trial\":2");
  REQUIRE(ended > second);

  for (std::size_t size = second; size < whole.size(); ++size) {
    bench.replace(whole.substr(0, size));
    bench.log.clear();
    const bool is_whole = size == second || whole[size - 1] == '\n';
    const ExperimentSnapshot found = bench.reopened();
    REQUIRE(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 1);
    REQUIRE(found.trials == (size > whole.find('\n', second) ? 2U : 1U));
    REQUIRE(bench.log.size() == (is_whole ? 0U : 1U));
    if (!is_whole) REQUIRE_THAT(bench.log[0], Catch::Contains("it was cut after its last whole record"));
    const std::string left = bench.bytes();
    REQUIRE(left == whole.substr(0, left.size()));
  }
}

TEST_CASE("journal: whole lines behind a page that never reached the disk go, and are kept aside",
          "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events()});
  std::string torn = bench.killed;  // of its lines nothing says that they were on the disk
  const std::size_t line = begin_of_line(torn, "\"event\":\"started\"");
  torn.replace(line, 50, std::string(50, '\0'));
  bench.replace(torn);

  const ExperimentSnapshot found = bench.reopened();
  CHECK(found.trials == 1);
  REQUIRE(found.unfinished.size() == 1);
  CHECK_FALSE(found.unfinished[0].open_run->started);
  REQUIRE(bench.log.size() == 1);
  CHECK_THAT(bench.log[0], Catch::Contains("what was cut off is kept in " + bench.path().string() + ".cut"));
  std::ifstream aside(bench.path().string() + ".cut", std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(aside), {}) == torn.substr(line));

  bench.replace(torn);
  bench.reopened();
  std::ofstream(bench.path().string() + ".cut", std::ios::binary) << "what an earlier cut has kept";
  bench.replace(torn);
  bench.reopened();
  std::ifstream first(bench.path().string() + ".cut", std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(first), {}) == "what an earlier cut has kept");
  std::ifstream third(bench.path().string() + ".cut3", std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(third), {}) == torn.substr(line));
}

TEST_CASE("journal: a store of another kind that begins at the same time is seen", "[datastore][journal]") {
  // Its file appears while ours makes the directory, as that of a process that is a moment ahead.
  class Ahead : public FailingFiles {
   public:
    int make_directory(const std::filesystem::path& path, mode_t mode) override {
      const int result = FailingFiles::make_directory(path, mode);
      if (path.filename() == "db") std::ofstream(path / "nni.sqlite") << "records";
      return result;
    }
  };
  Bench bench;
  bench.files = std::make_shared<Ahead>();

  CHECK_THAT(bench.refusal(Errc::already_exists), Catch::Contains("nni.sqlite"));
  CHECK_FALSE(std::filesystem::exists(bench.path()));
}

TEST_CASE("journal: it goes on behind a cut", "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events(), StoreScript().ordered(2).intended(2).events()});
  bench.replace(bench.killed.substr(0, bench.killed.size() - 5));
  bench.record({StoreScript().intended(2).started(2).final_value(2, "0.75").ended(2).events()});

  const ExperimentSnapshot found = bench.reopened();
  CHECK(found.trials == 2);
  CHECK(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 2);
  CHECK(found.unfinished.empty());
}

TEST_CASE("journal: damage in what was on the disk once is refused, and nothing is changed", "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events(), StoreScript().succeeded(2, "0.25").events()});
  const std::string whole = bench.bytes();
  const std::size_t line = begin_of_line(whole, "\"event\":\"metric\",\"trial\":1");
  std::string damaged = whole;

  SECTION("a changed byte") { damaged[line + 30] = '#'; }
  SECTION("a changed checksum") { damaged[line] = damaged[line] == '0' ? '1' : '0'; }
  SECTION("a line that was taken out") { damaged.erase(line, damaged.find('\n', line) + 1 - line); }
  SECTION("a line that was put in") { damaged.insert(line, damaged.substr(0, damaged.find('\n') + 1)); }
  SECTION("a page of zeros") { damaged.replace(line, 40, std::string(40, '\0')); }
  bench.replace(damaged);

  const std::string sentence = bench.refusal(Errc::store_corrupt);
  INFO(sentence);
  CHECK_THAT(sentence, Catch::Contains("(byte " + std::to_string(line) + ")"));
  CHECK_THAT(sentence, Catch::Contains("its checksum does not match"));
  CHECK_THAT(sentence, Catch::Contains("truncate -s " + std::to_string(line)));
  CHECK(bench.bytes() == damaged);
  CHECK_FALSE(std::filesystem::exists(bench.place.path() / "abc" / "owner"));
}

TEST_CASE("journal: what is no journal of this version is refused with the reason", "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events()});
  std::string other = bench.bytes();
  std::string expected;

  SECTION("a foreign file") {
    other = "PNG or whatever\nit is\n";
    expected = "is not a journal of this library";
  }
  SECTION("one line without an end") {
    other = "#!/bin/sh";
    expected = "is not a journal of this library";
  }
  SECTION("a later version") {
    other.replace(other.find("\"version\":1"), 11, "\"version\":2");
    expected = "is a journal of version 2, and this library supports 1";
  }
  SECTION("a damaged first line") {
    other[2] = '~';
    expected = "is damaged in line 1";
  }
  bench.replace(other);

  CHECK_THAT(bench.refusal(Errc::store_corrupt), Catch::Contains(expected));
  CHECK(bench.bytes() == other);
}

TEST_CASE("journal: an empty file is a new experiment", "[datastore][journal]") {
  Bench bench;
  bench.replace("");
  CHECK_FALSE(bench.reopened().exists);
  CHECK_THAT(bench.bytes(), Catch::Contains("{\"journal\":\"nni\",\"version\":1,\"experiment\":\"abc\"}"));
}

TEST_CASE("journal: a profile that is written every ten seconds does not repeat its parameters",
          "[datastore][journal]") {
  Bench bench;
  StoreScript script;
  for (std::uint64_t tick = 1; tick <= 5; ++tick) script.profile(ExperimentId("abc"), ExperimentStatus::running, tick);
  bench.record({script.events()});
  std::size_t repeated = 0;
  const std::string bytes = bench.bytes();
  for (std::size_t at = bytes.find("\"params\""); at != std::string::npos; at = bytes.find("\"params\"", at + 1))
    ++repeated;
  CHECK(repeated == 1);

  const ProfileChanged expected = StoreScript::profile_of(ExperimentId("abc"), ExperimentStatus::running, 5);
  const ExperimentSnapshot found = bench.reopened();
  CHECK(found.profile.params == expected.params);
  CHECK(found.profile.next_sequence == 5);
}

TEST_CASE("journal: a page gives the histories of its trials when somebody asks for them", "[datastore][journal]") {
  Bench bench;
  Journal store = bench.journal();
  bench.runtime.run(store.open(bench.runtime.context(), ExperimentId("abc")));
  store.append(
      StoreScript()
          .ordered(1)
          .intended(1)
          .started(1)
          .intermediate(1, 0, "9")
          .lost(1)
          .intended(1, 1)
          .started(1, 1)
          .intermediate(1, 0, "0.5", 1)
          .intermediate(1, 1, "NaN", 1)
          .intermediate(1, 2, "{\"default\": 0.25}", 1)
          .final_value(1, "7", 1)
          .ended(1, 1)
          .succeeded(2, "0.125")
          .events());
  TrialQuery query;
  CHECK(bench.runtime.run(store.page(query)).histories.empty());
  query.histories = true;
  const std::vector<std::vector<double>> expected = {{0.5, 0.25}, {}};
  CHECK(bench.runtime.run(store.page(query)).histories == expected);
  bench.runtime.run(store.close());
}

TEST_CASE("journal: a viewer sees whole records while the owner writes, and changes nothing", "[datastore][journal]") {
  Bench bench;
  Journal owner = bench.journal();
  bench.runtime.run(owner.open(bench.runtime.context(), ExperimentId("abc")));
  bench.runtime.run(owner.written(owner.append(StoreScript().succeeded(1, "0.5").ordered(2).events())));
  std::ofstream(bench.path(), std::ios::app | std::ios::binary) << "12345678 {\"half a";  // in the middle of a write
  const std::string before = bench.bytes();

  Journal viewer{{.directory = bench.place.path(), .read_only = true}};
  const ExperimentSnapshot found = bench.runtime.run(viewer.open(bench.runtime.context(), ExperimentId("abc")));
  CHECK(found.trials == 2);
  CHECK(found.unfinished.size() == 1);
  CHECK(bench.runtime.run(viewer.load(TrialId{1}))->final_value == "0.5");
  CHECK_THROWS_WITH(viewer.append({}), Catch::Contains("read-only"));
  bench.runtime.run(viewer.close());
  CHECK(bench.bytes() == before);
  CHECK(bench.log.empty());
  bench.runtime.run(owner.close());

  Journal nobody{{.directory = bench.place.path(), .read_only = true}};
  CHECK_THROWS_WITH(bench.runtime.run(nobody.open(bench.runtime.context(), ExperimentId("zzz"))),
                    Catch::Contains("there is no experiment zzz"));
}

TEST_CASE("journal: what could not be synced until the end is synced when it is opened again", "[datastore][journal]") {
  Bench bench;
  Journal store = bench.journal();
  bench.runtime.run(store.open(bench.runtime.context(), ExperimentId("abc")));
  bench.runtime.run(store.synced(store.append(StoreScript().succeeded(1, "0.5").events())));

  bench.files->fail_all(Call::sync, EIO);
  store.give_up();
  const StorePosition at = store.append(StoreScript().succeeded(2, "0.5").events());
  CHECK_THROWS_WITH(bench.runtime.run(store.synced(at)), Catch::Contains("to the disk"));
  CHECK_THROWS_AS(bench.runtime.run(store.synced(at)), Error);
  CHECK_THROWS_AS(bench.runtime.run(store.close()), Error);
  bench.files->mend();

  const std::size_t before = bench.files->calls().size();
  const ExperimentSnapshot found = bench.reopened();
  CHECK(found.trials == 2);
  // What the kernel may have taken for clean was written again, and synced.
  const std::vector<Call> all = bench.files->calls();
  const std::vector<Call> calls(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  const auto again = std::find(calls.begin(), calls.end(), Call::write);
  CHECK(std::find(again, calls.end(), Call::sync) != calls.end());
}

TEST_CASE("journal: a disk that was full leaves whole records, and there is room for the rest later",
          "[datastore][journal]") {
  Bench bench;
  Journal store = bench.journal();
  bench.runtime.run(store.open(bench.runtime.context(), ExperimentId("abc")));
  bench.runtime.run(store.written(store.append(StoreScript().succeeded(1, "0.5").events())));
  bench.files->fail_all(Call::write, ENOSPC);
  bench.files->fail_all(Call::truncate, EIO);  // what a write has left behind cannot even be cut off
  store.give_up();
  const StorePosition lost = store.append(StoreScript().succeeded(2, "0.5").events());
  CHECK_THROWS_WITH(bench.runtime.run(store.written(lost)), Catch::Contains("cannot write"));
  CHECK_THROWS_AS(bench.runtime.run(store.close()), Error);
  bench.files->mend();

  Journal again = bench.journal();
  const ExperimentSnapshot found = bench.runtime.run(again.open(bench.runtime.context(), ExperimentId("abc")));
  CHECK(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] >= 1);
  bench.runtime.run(again.synced(again.append(StoreScript().succeeded(2, "0.25").events())));
  bench.runtime.run(again.close());
  CHECK(bench.reopened().by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 2);
}

TEST_CASE("journal: whichever call of opening fails once, the next try opens", "[datastore][journal]") {
  Bench bench;
  bench.record({StoreScript().succeeded(1, "0.5").events(), StoreScript().succeeded(2, "0.25").events()});
  const std::string torn = bench.killed.substr(0, bench.killed.size() - 3);
  std::size_t failed = 0;
  for (const std::string& content : {torn, std::string()}) {
    for (std::size_t number = 1;; ++number) {
      bench.replace(content);
      const std::size_t before = bench.files->failures();
      bench.files->fail_call(number, EIO);
      const std::string sentence = bench.refusal(Errc::storage_failed);
      bench.files->mend();
      if (bench.files->failures() == before) break;
      ++failed;
      INFO("call " << number << ": " << sentence);
      const ExperimentSnapshot found = bench.reopened();
      CHECK(found.trials == (content.empty() ? 0U : 2U));
    }
  }
  CHECK(failed > 8);
}

TEST_CASE("journal: a store that has kept everything closes, also when there is no space for its last line",
          "[datastore][journal]") {
  Bench bench;
  Journal store = bench.journal();
  bench.runtime.run(store.open(bench.runtime.context(), ExperimentId("abc")));
  bench.runtime.run(store.synced(store.append(StoreScript().succeeded(1, "0.5").events())));
  bench.files->fail_all(Call::write, ENOSPC);

  CHECK_NOTHROW(bench.runtime.run(store.close()));

  REQUIRE(bench.log.size() == 1);
  CHECK_THAT(bench.log[0], Catch::Contains("nothing was lost") && Catch::Contains("the disk is full"));
  bench.files->mend();
  CHECK(bench.reopened().trials == 1);
}

TEST_CASE("journal: values that come again behind the end of their run are looked up in one reading",
          "[datastore][journal]") {
  constexpr std::uint32_t count = 60;
  Bench bench;
  Journal store = bench.journal();
  bench.runtime.run(store.open(bench.runtime.context(), ExperimentId("abc")));
  StoreScript script;
  for (std::uint32_t value = 0; value < count; ++value)
    script.intermediate(1, value, '"' + std::string(64 * 1024, 'x') + '"');  // more than is kept in memory
  const std::vector<StoreEvent> values = std::move(script).events();
  store.append(StoreScript().ordered(1).intended(1).started(1).events());
  store.append(values);
  bench.runtime.run(store.synced(store.append(StoreScript().ended(1).events())));
  const auto reads = [&bench] {
    const std::vector<Call> calls = bench.files->calls();
    return std::count(calls.begin(), calls.end(), Call::read);
  };
  const auto before = reads();

  store.append(values);
  bench.runtime.run(store.written(store.append(StoreScript().intermediate(1, count, "0.5").events())));

  CHECK(reads() - before < 4 * count);
  CHECK(bench.runtime.run(store.metrics(TrialId{1})).size() == count + 1);
  bench.runtime.run(store.close());
}
