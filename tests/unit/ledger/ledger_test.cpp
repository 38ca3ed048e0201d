#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

TEST_CASE("ledger: asks for suggestions up to the concurrency, within the budget", "[ledger]") {
  Ledger ledger({.concurrency = 4, .max_trials = 6});
  Transition out;

  CHECK(ledger.wanted() == 4);
  ledger.requested(4);
  CHECK(ledger.wanted() == 0);
  for (std::uint64_t k = 0; k < 4; ++k) ledger.order(NewTrial{ParameterId{k}, Parameters{}}, at(1), out);
  CHECK(ledger.wanted() == 0);

  SECTION("an ended trial makes room for one more") {
    ledger.intend(TrialId{1}, TrialJobForm{}, at(2), out);
    ledger.event(JobEnded{RunId{TrialId{1}, 0}, JobEnd{}, at(3)}, at(3), out);
    CHECK(ledger.wanted() == 1);
  }
  SECTION("a larger concurrency stops at the budget") {
    ledger.set_concurrency(100);
    CHECK(ledger.wanted() == 2);
  }
  SECTION("nothing more while placing is stopped") {
    ledger.set_concurrency(100);
    ledger.stop_placing();
    CHECK(ledger.wanted() == 0);
  }
}

TEST_CASE("ledger: an intent is recorded before the submission, which waits until it is written", "[ledger]") {
  Table table;
  const TrialId trial = table.order(0.25);

  table.submit(trial);

  REQUIRE(table.out.records.size() == 2);
  CHECK(std::get<TrialOrdered>(table.out.records[0]).parameters.text() == R"({"x":0.25})");
  CHECK(std::get<RunIntended>(table.out.records[1]).run == RunId{trial, 0});
  CHECK(table.durability<Submit>() == Durability::written);
  CHECK(table.submitted().front()->parameters.text() == R"({"x":0.25})");
}

TEST_CASE("ledger: a submission that leaves this machine waits for its intent to be synced", "[ledger]") {
  Table table({.submit_durability = Durability::synced});

  table.submit(table.order());

  CHECK(table.durability<Submit>() == Durability::synced);
}

TEST_CASE("ledger: never more live runs than the concurrency", "[ledger]") {
  Table table({.concurrency = 2});
  table.ledger.requested(2);
  for (int k = 0; k < 3; ++k) table.order();

  table.submit(*table.ledger.next_waiting());
  table.submit(*table.ledger.next_waiting());

  CHECK_FALSE(table.ledger.next_waiting().has_value());
  CHECK(table.ledger.counts().live == 2);
  CHECK(table.ledger.counts().waiting == 1);
}

TEST_CASE("ledger: how a trial ends decides its status and what the tuner hears", "[ledger]") {
  struct Row {
    const char* name;
    std::optional<std::string> final_value;
    JobEnd end;
    TrialJobStatus status;
    TrialJobStatus told;
    std::optional<double> value;
  };
  const Row rows[] = {
      {"exit 0 with a final value", "0.5", JobEnd{EndKind::exited, 0}, TrialJobStatus::succeeded,
       TrialJobStatus::succeeded, 0.5},
      {"exit 0 without one", {}, JobEnd{EndKind::exited, 0}, TrialJobStatus::succeeded, TrialJobStatus::succeeded, {}},
      {"a final value, then exit 3", "0.5", JobEnd{EndKind::exited, 3}, TrialJobStatus::failed, TrialJobStatus::failed,
       0.5},
      {"a signal", {}, JobEnd{EndKind::signalled, 11}, TrialJobStatus::failed, TrialJobStatus::failed, {}},
      {"not a number", "NaN", JobEnd{EndKind::exited, 0}, TrialJobStatus::succeeded, TrialJobStatus::failed, {}},
      {"infinite", "Infinity", JobEnd{EndKind::exited, 0}, TrialJobStatus::succeeded, TrialJobStatus::failed, {}},
      {"an object without default",
       R"({"loss": 9})",
       JobEnd{EndKind::exited, 0},
       TrialJobStatus::succeeded,
       TrialJobStatus::failed,
       {}},
      {"an exception", {}, JobEnd{EndKind::threw, 0, "bad"}, TrialJobStatus::failed, TrialJobStatus::failed, {}},
      {"could not start",
       {},
       JobEnd{EndKind::not_started, 0, "no such file"},
       TrialJobStatus::failed,
       TrialJobStatus::failed,
       {}},
      {"an object with default", R"({"default": 0.25, "loss": 9})", JobEnd{}, TrialJobStatus::succeeded,
       TrialJobStatus::succeeded, 0.25},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Table table;
    const RunId run = table.running();
    if (row.final_value) table.report(run, MetricKind::final, 0, *row.final_value);

    table.end(run, row.end);

    REQUIRE(table.records<RunEnded>().size() == 1);
    CHECK(table.records<RunEnded>()[0].status == row.status);
    CHECK(table.records<RunEnded>()[0].final_attempt);
    REQUIRE(table.effects<ReportOutcome>().size() == 1);
    CHECK(table.effects<ReportOutcome>()[0]->outcome.status == row.told);
    CHECK(table.effects<ReportOutcome>()[0]->outcome.value == row.value);
    CHECK(table.effects<Announce>()[0]->detail->final_value == row.final_value);
    CHECK(table.ledger.counts().finished == 1);
  }
}

TEST_CASE("ledger: a placement goes back exactly once", "[ledger]") {
  Table table;
  const RunId run = table.running();

  table.end(run, JobEnd{});
  table.end(run, JobEnd{});

  CHECK(table.effects<Release>().size() == 1);
  CHECK(table.ledger.counts().finished == 1);
}

TEST_CASE("ledger: a trial that can never be placed fails with the reason", "[ledger]") {
  Table table;
  const TrialId trial = table.order();

  table.ledger.refuse(trial, "needs 9 GPUs, the largest machine has 2", at(2), table.out);

  CHECK(table.effects<Announce>()[0]->detail->message == "needs 9 GPUs, the largest machine has 2");
  CHECK(table.records<RunEnded>()[0].end.kind == EndKind::not_started);
}

TEST_CASE("ledger: a tuner that has no more ends the experiment when the last trial has ended", "[ledger]") {
  Table table;
  const RunId run = table.running();
  table.ledger.no_more_trials();
  CHECK_FALSE(table.ledger.finished());

  table.end(run, JobEnd{});

  CHECK(table.ledger.wanted() == 1);  // it may have learnt enough to go on
  table.ledger.requested(1);
  table.ledger.no_more_trials();
  CHECK(table.ledger.finished());
}

TEST_CASE("ledger: holds live trials only", "[ledger]") {
  Table table;
  const RunId run = table.running();
  CHECK(table.ledger.detail(run.trial).has_value());

  table.end(run, JobEnd{});

  CHECK_FALSE(table.ledger.detail(run.trial).has_value());
}

TEST_CASE("ledger: a live trial is shown with the machine that it was given", "[ledger]") {
  Table table;
  TrialJobForm form;
  form.placement = Placement("second");
  const TrialId trial = table.order();
  table.ledger.intend(trial, std::move(form), at(2), table.out);

  CHECK(table.ledger.detail(trial)->environment == "second");
}
