#include "support/catch.hpp"

#include <string>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

TEST_CASE("ledger: of two final values the first counts, the later one is stored", "[ledger]") {
  Table table;
  const RunId run = table.running();
  table.report(run, MetricKind::final, 0, "1.0", 1);
  table.report(run, MetricKind::final, 0, "2.0", 2);

  SECTION("and the advisor hears of it once, also when both come again") {
    table.report(run, MetricKind::final, 0, "2.0", 3);
    table.report(run, MetricKind::final, 0, "1.0", 4);
    REQUIRE(table.effects<ReportMetric>().size() == 1);
    CHECK(table.effects<ReportMetric>()[0]->metric.value == "1.0");
    CHECK(table.effects<Acknowledge>().size() == 4);
  }
  SECTION("also when only the second comes again, after a resume") {
    ExperimentSnapshot snapshot;
    snapshot.trials = 1;
    UnfinishedTrial& open = snapshot.unfinished.emplace_back();
    open.trial = run.trial;
    open.attempts = 1;
    open.open_run.emplace();
    open.open_run->run = run;
    open.final_value = "1.0";
    Table resumed;
    resumed.ledger.restore(snapshot);
    resumed.ledger.adopted(JobReport{run, JobReport::State::running}, at(9), resumed.out);
    resumed.report(run, MetricKind::final, 0, "2.0");
    resumed.end(run, JobEnd{});
    CHECK(resumed.effects<ReportMetric>().empty());
    CHECK(resumed.effects<ReportOutcome>()[0]->outcome.value == 1.0);
  }

  table.end(run, JobEnd{});

  CHECK(table.effects<ReportOutcome>().size() == 1);
  CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 1.0);
  CHECK(table.records<MetricReceived>().size() >= 2);
}

TEST_CASE("ledger: who wants every final value hears each once, and the first is the result all the same", "[ledger]") {
  Table table({.every_final = true});
  const RunId run = table.running();
  for (const char* value : {"1.0", "2.0", "2.0", "3.0", "1.0"}) table.report(run, MetricKind::final, 0, value);
  table.end(run, JobEnd{});

  std::string told;
  for (const ReportMetric* report : table.effects<ReportMetric>()) told += report->metric.value + " ";
  CHECK(told == "1.0 2.0 3.0 ");
  CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 1.0);
}

TEST_CASE("ledger: values count in whatever order they arrive, each once", "[ledger]") {
  Table table;
  const RunId run = table.running();

  for (int delivery = 0; delivery < 2; ++delivery)
    for (const std::uint32_t sequence : {1U, 0U, 3U, 2U, 4U})
      table.report(run, MetricKind::intermediate, sequence, "0." + std::to_string(sequence));

  std::string recorded, told;
  for (const MetricReceived& record : table.records<MetricReceived>()) recorded += record.metric.value + " ";
  for (const ReportMetric* report : table.effects<ReportMetric>()) told += report->metric.value + " ";
  CHECK(recorded == "0.1 0.0 0.3 0.2 0.4 ");
  CHECK(told == recorded);
  CHECK(table.effects<Acknowledge>().size() == 10);
}

TEST_CASE("ledger: two processes of one trial may both count from 0", "[ledger]") {
  Table table;
  const RunId run = table.running();
  for (const char* process : {"1", "2"})
    for (std::uint32_t sequence = 0; sequence < 3; ++sequence)
      table.report(run, MetricKind::intermediate, sequence, process + ("." + std::to_string(sequence)));
  CHECK(table.records<MetricReceived>().size() == 6);

  SECTION("and what comes again is recognized") {
    table.report(run, MetricKind::intermediate, 1, "2.1");
    table.report(run, MetricKind::intermediate, 1, "1.1");
    CHECK(table.records<MetricReceived>().size() == 6);
    CHECK(table.effects<ReportMetric>().size() == 6);
  }
}

TEST_CASE("ledger: a trial gets its answer when its value is kept", "[ledger]") {
  Table table;
  const RunId run = table.running();

  SECTION("an intermediate value is written first") {
    table.report(run, MetricKind::intermediate, 0, "0.1", 41);
    CHECK(table.durability<Acknowledge>() == Durability::written);
    CHECK(table.effects<Acknowledge>()[0]->receipt.value == 41);
  }
  SECTION("a final value is synced first") {
    table.report(run, MetricKind::final, 0, "0.1");
    CHECK(table.durability<Acknowledge>() == Durability::synced);
  }
  SECTION("a second delivery is answered, but neither recorded nor told again") {
    table.report(run, MetricKind::intermediate, 0, "0.1");
    table.report(run, MetricKind::intermediate, 0, "0.1");
    CHECK(table.records<MetricReceived>().size() == 1);
    CHECK(table.effects<ReportMetric>().size() == 1);
    CHECK(table.effects<Acknowledge>().size() == 2);
  }
  SECTION("a value of a run that has ended is recorded and counted") {
    table.end(run, JobEnd{});
    table.report(run, MetricKind::intermediate, 0, "0.1");
    CHECK(table.records<MetricReceived>().size() == 1);
    CHECK(table.effects<ReportMetric>().empty());
    CHECK(table.ledger.counts().late == 1);
  }
  SECTION("garbage is counted and answered") {
    table.ledger.message(TrialMessage::not_understood(run, "}{", Receipt{7}), table.out);
    CHECK(table.ledger.counts().garbage == 1);
    CHECK(table.effects<Acknowledge>().size() == 1);
    CHECK(table.records<MetricReceived>().empty());
  }
}

TEST_CASE("ledger: a message of a trial that was never ordered is answered and not recorded", "[ledger]") {
  Table table;
  table.running();
  table.out.clear();

  table.report(RunId{TrialId{2}, 0}, MetricKind::final, 0, "0.5", 4);
  table.report(RunId{}, MetricKind::intermediate, 0, "0.5", 5);

  CHECK(table.out.records.empty());
  CHECK(table.effects<Acknowledge>().size() == 2);
  CHECK(table.ledger.counts().late == 2);
}
