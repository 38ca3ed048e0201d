// What a field list names survives its format: a new field needs no test of its own.
#include "support/catch.hpp"

#include <chrono>
#include <concepts>
#include <string>
#include <vector>

#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/journal/line.hpp>
#include <nni/datastore/journal/writer.hpp>
#if NNI_WITH_SQLITE
#include <nni/datastore/sqlite/columns.hpp>
#include <nni/datastore/sqlite/reader.hpp>
#include <nni/datastore/sqlite/schema.hpp>

#include "support/temporary_directory.hpp"
#endif

using namespace nni;
using namespace nni::datastore::detail;

namespace {

// Gives every field a value of its own, and no default.
class Filler {
 public:
  static constexpr bool reads = true;

  template <class Number>
  void number(std::string_view, Number& value) {
    value = static_cast<Number>(next());
  }
  void number_or_zero(std::string_view key, auto& value) { number(key, value); }
  void count(std::string_view key, std::uint32_t& value) { number(key, value); }
  void row(std::string_view key, std::int64_t& value) { number(key, value); }
  void duration(std::string_view, Duration& value) { value = std::chrono::nanoseconds(next()); }
  void time(std::string_view, TimePoint& value) { value = from_epoch_ms(next()); }
  void time(std::string_view, std::optional<TimePoint>& value) { value = from_epoch_ms(next()); }
  void text(std::string_view key, std::string& value) { value = std::string(key) + " \"" + std::to_string(next()); }
  void text(std::string_view, std::optional<std::string>& value) { value = std::to_string(next()); }
  void text_or_null(std::string_view key, std::string& value) { text(key, value); }
  template <class Enum>
  void word(std::string_view, Enum& value) {
    value = last_recorded<Enum>;
  }
  void word(std::string_view, EndKind& value) { value = EndKind::killed; }  // the one that has a reason
  void stop_reason(std::string_view, JobEnd& end) { end.why = StopReason::time_limit; }
  void flag(std::string_view, bool& value) { value = !value; }
  void run(RunId& run) { run = RunId{TrialId{static_cast<std::uint64_t>(next())}, 7}; }
  void name_of(std::string_view, const TrialId&) {}
  void line_before(std::string_view) {}
  void json(std::string_view, std::string& value) { value = std::to_string(next()); }
  void params(std::string_view key, std::string& value) { json(key, value); }
  void parameters(std::string_view, Parameters& value) {
    value = Parameters("{\"x\": " + std::to_string(next()) + "}");
  }
  void placement(std::string_view, Placement& value) {
    value.node = "node " + std::to_string(next());
    value.gpus.emplace(2, 5);
  }
  void placement(std::string_view key, std::string_view, Placement& value) { placement(key, value); }
  void tags(std::string_view, std::vector<std::string>& value) { value.assign(2, "tag " + std::to_string(next())); }
  void reals(std::string_view, double& first, std::vector<double>& others) {
    first = static_cast<double>(next()) + 0.5;
    others.assign(3, 0.1);
  }
  void number_of(std::string_view, const std::optional<std::string>&) {}
  void derived(std::string_view, std::int64_t) {}
  void only_if(bool) {}

 private:
  std::int64_t next() { return ++last_; }
  std::int64_t last_ = 100;
};

}  // namespace

TEMPLATE_TEST_CASE("journal: every listed field of an event comes back from its line", "[datastore][journal][fields]",
                   ProfileChanged, TrialOrdered, RunIntended, RunStarted, MetricReceived, RunEnded, ResultImported) {
  TestType event;
  Filler filler;
  line_fields(filler, event);

  std::string once;
  JournalWriter(once, 0).event(event, 3);
  const auto json = checked_line(std::string_view(once).substr(0, once.size() - 1), 0);
  REQUIRE(json);
  const auto parsed = parse_journal_line(*json);
  REQUIRE(parsed);

  std::string again;
  JournalWriter(again, 0).event(parsed->event, parsed->before);
  CHECK(again == once);
  std::string empty;
  JournalWriter(empty, 0).event(TestType(), 3);
  CHECK(empty != once);
}

#if NNI_WITH_SQLITE

TEST_CASE("sqlite: every listed column of a run and of its trial comes back from its row",
          "[datastore][sqlite][fields]") {
  const nni_test::TemporaryDirectory place;
  Database database(place.path() / "a.sqlite", Database::Mode::create);
  SqliteSchema::create(database);
  SqliteSchema::add_missing_columns(database);
  StoredTrial filled;
  Filler filler;
  trial_columns(filler, filled);
  run_columns(filler, filled);
  filled.state.detail.attempts = filled.state.attempt + 1;

  const auto write = [&database](const StoredTrial& stored) {
    Statement trial = database.prepare(Table::trials().write("REPLACE"));
    RowBinder columns(trial);
    trial_columns(columns, stored);
    trial.execute();
    Statement run = database.prepare(Table::runs().write("REPLACE"));
    RowBinder of_run(run);
    run_columns(of_run, stored);
    run.execute();
  };
  const auto rows = [&database] {
    std::vector<std::string> texts;
    for (const std::string table : {"nni_trials", "nni_runs"})
      for (const std::string& column : database.columns(table)) {
        Statement value = database.prepare("SELECT quote(" + column + ") FROM " + table);
        while (value.next()) texts.push_back(column + " " + std::string(value.text(0)));
      }
    return texts;
  };
  write(filled);
  const std::vector<std::string> before = rows();

  StoredTrial found;
  {
    Statement row = database.prepare(
        "SELECT " + Table::trials().selected(database, "t") + ", " + Table::runs().selected(database, "r") +
        " FROM nni_trials t, nni_runs r");
    REQUIRE(row.next());
    RowReader in(row);
    trial_columns(in, found);
    run_columns(in, found);
  }
  database.run("DELETE FROM nni_trials; DELETE FROM nni_runs");
  write(found);

  CHECK(rows() == before);
  for (const std::string& value : before) CHECK_THAT(value, !Catch::EndsWith(" NULL"));
}

#endif
