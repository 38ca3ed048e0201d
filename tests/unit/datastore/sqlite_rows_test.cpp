#include "support/catch.hpp"

#include <string>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/store_script.hpp>

#include "sqlite_files.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using testing::StoreScript;

namespace {

// A store with an experiment `abc`, and its file as other programs see it.
class Bench {
 public:
  Bench() { open(); }
  ~Bench() {
    if (is_open_) runtime.run(store.close());
  }

  void open() {
    snapshot = runtime.run(store.open(runtime.context(), ExperimentId("abc")));
    is_open_ = true;
  }
  void close() {
    runtime.run(store.close());
    is_open_ = false;
  }
  void keep(const std::vector<StoreEvent>& events) { runtime.run(store.written(store.append(events))); }
  [[nodiscard]] std::string query(const std::string& sql) const {
    return nni_test::query(place.path() / "abc" / "db" / "nni.sqlite", sql);
  }

  nni_test::TemporaryDirectory place;
  Runtime runtime;
  datastore::Sqlite store{{.directory = place.path()}};
  ExperimentSnapshot snapshot;

 private:
  bool is_open_ = false;
};

std::string id(std::uint64_t trial) { return to_string(TrialId{trial}); }
std::string ms(std::uint64_t trial, int step) { return std::to_string(to_epoch_ms(StoreScript::time_of(trial, step))); }

}  // namespace

TEST_CASE("sqlite rows: NNI's tables have its names, types, order of columns and indexes", "[datastore][sqlite]") {
  Bench bench;

  const auto columns = [&bench](const std::string& table) {
    return bench.query("SELECT group_concat(name || ' ' || lower(type), ', ') FROM pragma_table_info('" + table + "')");
  };
  CHECK(columns("TrialJobEvent") ==
        "timestamp integer, trialJobId text, event text, data text, logPath text, sequenceId integer, message text, "
        "environmentId text\n");
  CHECK(columns("MetricData") ==
        "timestamp integer, trialJobId text, parameterId text, type text, sequence integer, data text\n");
  CHECK(columns("ExperimentProfile") ==
        "params text, id text, execDuration integer, startTime integer, endTime integer, logDir text, "
        "nextSequenceId integer, revision integer\n");
  CHECK(
      bench.query(
          "SELECT name, tbl_name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%' ORDER BY name") ==
      "ExperimentProfile_id|ExperimentProfile\n"
      "MetricData_trialJobId|MetricData\n"
      "MetricData_type|MetricData\n"
      "TrialJobEvent_event|TrialJobEvent\n"
      "TrialJobEvent_trialJobId|TrialJobEvent\n");
  CHECK(
      bench.query("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'nni\\_%' ESCAPE '\\'") ==
      "3\n");
}

TEST_CASE("sqlite rows: a trial leaves the events that NNI replays", "[datastore][sqlite]") {
  Bench bench;

  bench.keep(StoreScript().ordered(8).intended(8, 0, "alpha").started(8).ended(8).events());

  const std::string log = "/trials/" + id(8);
  CHECK(bench.query("SELECT * FROM TrialJobEvent") ==
        ms(8, 0) + "|" + id(8) +
            "|WAITING|{\"parameter_id\": 7, \"parameter_source\": \"algorithm\", \"parameters\": "
            "{\"x\":0.8,\"kind\":\"a \\\"b\\\"\"}, \"parameter_index\": 0}|NULL|7|NULL|NULL\n" +
            ms(8, 2) + "|" + id(8) + "|RUNNING|NULL|" + log + "|7|NULL|alpha\n" + ms(8, 9) + "|" + id(8) +
            "|SUCCEEDED|NULL|" + log + "|7|NULL|alpha\n");
}

TEST_CASE("sqlite rows: values are JSON texts inside of JSON strings", "[datastore][sqlite]") {
  Bench bench;

  bench.keep(
      StoreScript()
          .ordered(8)
          .intended(8)
          .started(8)
          .intermediate(8, 0, "0.5")
          .final_value(8, "{\"default\": 0.9, \"name\": \"\u00e4\"}")
          .events());

  CHECK(bench.query("SELECT * FROM MetricData") ==
        ms(8, 3) + "|" + id(8) + "|7|PERIODICAL|0|\"0.5\"\n" + ms(8, 3) + "|" + id(8) +
            "|7|FINAL|0|\"{\\\"default\\\": 0.9, \\\"name\\\": \\\"\\u00e4\\\"}\"\n");
  CHECK(bench.runtime.run(bench.store.metrics(TrialId{8})).back().value == "{\"default\": 0.9, \"name\": \"\u00e4\"}");
}

TEST_CASE("sqlite rows: values under one sequence have a row each, in the order of arrival", "[datastore][sqlite]") {
  Bench bench;

  bench.keep(StoreScript().ordered(8).intended(8).intermediate(8, 1, "1").intermediate(8, 0, "2").events());
  bench.keep(StoreScript().intermediate(8, 0, "3").intermediate(8, 0, "2").events());

  CHECK(bench.query("SELECT sequence, data FROM MetricData ORDER BY rowid") == "1|\"1\"\n0|\"2\"\n0|\"3\"\n");
}

TEST_CASE("sqlite rows: a value of an unknown kind is a damaged record, not an intermediate value",
          "[datastore][sqlite]") {
  Bench bench;
  bench.keep(StoreScript().ordered(8).intended(8).intermediate(8, 0, "0.5").events());
  static_cast<void>(bench.query("UPDATE MetricData SET type = 'OTHER'"));

  CHECK_THROWS_WITH(bench.runtime.run(bench.store.metrics(TrialId{8})),
                    Catch::Contains("the kind of a value") && Catch::Contains("OTHER"));
}

TEST_CASE("sqlite rows: NNI sees the last attempt of a trial that was tried again", "[datastore][sqlite]") {
  Bench bench;
  bench.keep(StoreScript().succeeded(1, "0.5").ordered(2).intended(2).started(2).events());
  bench.keep(StoreScript().intermediate(2, 0, "0.1").final_value(2, "0.2").lost(2).events());
  CHECK(bench.query("SELECT event, message FROM TrialJobEvent WHERE trialJobId = '" + id(2) + "'") ==
        "WAITING|NULL\nRUNNING|NULL\nWAITING|the machine went away\n");

  bench.keep(
      StoreScript().intended(2, 1).started(2, 1).intermediate(2, 0, "0.3", 1).intermediate(2, 7, "0.1", 0).events());
  bench.keep(StoreScript().final_value(2, "0.4", 1).ended(2, 1).succeeded(3, "0.6").events());

  CHECK(bench.query("SELECT event FROM TrialJobEvent WHERE trialJobId = '" + id(2) + "'") ==
        "WAITING\nRUNNING\nWAITING\nRUNNING\nSUCCEEDED\n");
  CHECK(bench.query("SELECT type, data FROM MetricData WHERE trialJobId = '" + id(2) + "'") ==
        "PERIODICAL|\"0.3\"\nFINAL|\"0.4\"\n");
  CHECK(bench.query("SELECT count(*) FROM MetricData") == "4\n");
  CHECK(bench.query("SELECT attempt, type, sequence, data FROM nni_earlier_metrics") ==
        "0|PERIODICAL|0|\"0.1\"\n0|FINAL|0|\"0.2\"\n0|PERIODICAL|7|\"0.1\"\n");
  CHECK(bench.query("SELECT attempt, job, ended, code, message FROM nni_runs WHERE trial = 2") ==
        "0|job-" + id(2) + "|lost|0|the machine went away\n1|job-" + id(2) + ".1|exited|0|NULL\n");
  CHECK(bench.query("SELECT status, attempts, final_value, final_number FROM nni_trials WHERE number = 2") ==
        "SUCCEEDED|2|0.4|0.4\n");
}

TEST_CASE("sqlite rows: each profile is a revision, mere ticks replace each other", "[datastore][sqlite]") {
  Bench bench;
  const ExperimentId abc("abc");
  const auto tick = [&](ExperimentStatus status, int seconds) {
    ProfileChanged profile = StoreScript::profile_of(abc, status, 3);
    profile.exec_duration = std::chrono::seconds(seconds);
    profile.end_time.reset();
    bench.keep(std::vector<StoreEvent>(1, StoreEvent(profile)));
  };

  tick(ExperimentStatus::initialized, 0);
  for (int seconds = 0; seconds <= 50; seconds += 10) tick(ExperimentStatus::running, seconds);
  tick(ExperimentStatus::done, 51);

  CHECK(
      bench.query("SELECT execDuration, endTime, nextSequenceId, revision FROM ExperimentProfile ORDER BY revision") ==
      "0|NULL|3|1\n50|NULL|3|7\n51|NULL|3|8\n");
  // The query of NNI's own client.
  CHECK(bench.query("SELECT params FROM ExperimentProfile WHERE id = 'abc' ORDER BY revision DESC") ==
        "{\"experimentName\": \"a name\", \"maxTrialNumber\": 10}\n"
        "{\"experimentName\": \"a name\", \"maxTrialNumber\": 10}\n"
        "{\"experimentName\": \"a name\", \"maxTrialNumber\": 10}\n");
  CHECK(bench.query("SELECT name, status, message, duration_ns FROM nni_experiment") ==
        "a name|DONE|because|51000000000\n");

  SECTION("and revisions go on after a resume") {
    bench.close();
    bench.open();
    tick(ExperimentStatus::running, 52);
    CHECK(bench.query("SELECT max(revision) FROM ExperimentProfile") == "9\n");
  }
}

TEST_CASE("sqlite rows: every session that wrote is told, with its boot and its end", "[datastore][sqlite]") {
  Bench bench;
  bench.keep(StoreScript().ordered(1).intended(1).events());
  bench.close();
  bench.open();
  bench.close();
  bench.open();
  bench.keep(StoreScript().started(1).lost(1).intended(1, 1).events());

  CHECK(bench.query("SELECT count(*), count(closed_at), count(boot_id), count(pid) FROM nni_sessions") == "2|1|2|2\n");
  CHECK(bench.query("SELECT attempt, session FROM nni_runs") == "0|1\n1|2\n");
}

TEST_CASE("sqlite rows: a placement survives with its devices", "[datastore][sqlite]") {
  Bench bench;
  bench.keep(StoreScript().ordered(1).intended(1, 0, "al\"pha").ordered(2).intended(2).events());

  CHECK(bench.query("SELECT placement FROM nni_runs") == "{\"node\":\"al\\\"pha\",\"gpus\":[2]}\nNULL\n");
  bench.close();
  bench.open();
  REQUIRE(bench.snapshot.unfinished.size() == 2);
  CHECK(bench.snapshot.unfinished[0].open_run->placement.node == "al\"pha");
  CHECK_FALSE(bench.snapshot.unfinished[1].open_run->placement.gpus);
}

TEST_CASE("sqlite rows: a large store is written without NNI's indexes and closed with them", "[datastore][sqlite]") {
  Bench bench;
  const std::string count = "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'";
  StoreScript script;
  for (std::uint64_t trial = 1; trial <= 2'001; ++trial) script.succeeded(trial, "0.5");
  bench.keep(script.events());
  CHECK(bench.query(count) == "5\n");

  bench.keep(StoreScript().succeeded(2'002, "0.5").events());
  CHECK(bench.query(count) == "1\n");
  CHECK(bench.runtime.run(bench.store.metrics(TrialId{1'000})).size() == 1);

  bench.close();
  CHECK(bench.query(count) == "5\n");
  CHECK(bench.query("PRAGMA integrity_check") == "ok\n");

  SECTION("and again when it grows after a resume") {
    bench.open();
    CHECK(bench.query(count) == "5\n");
    bench.keep(StoreScript().succeeded(2'003, "0.5").events());
    CHECK(bench.query(count) == "1\n");
  }
}
