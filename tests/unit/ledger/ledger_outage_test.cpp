#include "support/catch.hpp"

#include <string>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

namespace {

JobEnd deferred() { return JobEnd(EndKind::deferred, 0, "too many open files"); }

}  // namespace

TEST_CASE("ledger: a run that its platform cannot start now costs nothing and is submitted again", "[ledger][outage]") {
  Table table({.concurrency = 1, .max_trials = 2, .max_losses = 0, .max_failed_starts = 1});
  const TrialId trial = table.order();
  const RunId run = table.submit(trial);
  for (int again = 0; again < 5; ++again) {
    table.end(run, deferred());

    REQUIRE(table.ledger.next_waiting() == trial);
    CHECK(table.ledger.cannot_start().empty());
    CHECK(table.ledger.counts().finished == 0);
    CHECK(table.ledger.counts().live == 0);
    CHECK(table.ledger.counts().waiting == 1);
    CHECK(table.ledger.detail(trial)->message == "too many open files");
    CHECK(table.submit(trial) == run);
  }

  CHECK(table.ledger.detail(trial)->attempts == 1);
  CHECK(table.effects<Release>().size() == 5);
  CHECK(table.records<RunEnded>().empty());
  table.ledger.event(JobStarted{run, JobId{"job"}, at(3)}, at(3), table.out);
  table.report(run, MetricKind::final, 0, "0.5");
  table.end(run, JobEnd{EndKind::exited, 0});
  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].run == run);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::succeeded);
  CHECK(table.records<RunEnded>()[0].losses == 0);
  CHECK(table.ledger.wanted() == 1);  // the budget has one more
}

TEST_CASE("ledger: a trial whose run was deferred is placed before those ordered after it", "[ledger][outage]") {
  Table table({.concurrency = 3});
  const TrialId first = table.order();
  const TrialId second = table.order();
  const TrialId third = table.order();
  const RunId run = table.submit(first);
  table.submit(second);

  table.end(run, deferred());

  CHECK(table.ledger.next_waiting() == first);
  table.submit(first);
  CHECK(table.ledger.next_waiting() == third);
}

TEST_CASE("ledger: a run that was told to stop and could not be started has stopped", "[ledger][outage]") {
  Table table({.concurrency = 1});
  const TrialId trial = table.order();
  const RunId run = table.submit(trial);
  table.ledger.cancel(trial, StopReason::user, at(4), table.out);

  table.end(run, deferred());

  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::user_canceled);
  CHECK(table.records<RunEnded>()[0].end.kind == EndKind::killed);
}

TEST_CASE("ledger: a trial that waits to submit its run again can be stopped, and its open intent ends",
          "[ledger][outage]") {
  Table table({.concurrency = 1});
  const TrialId trial = table.order();
  const RunId run = table.submit(trial);
  table.end(run, deferred());

  table.ledger.cancel(trial, StopReason::user, at(6), table.out);

  CHECK_FALSE(table.ledger.next_waiting());
  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].run == run);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::user_canceled);
}

TEST_CASE("ledger: a run counts as submitted when its platform had accepted it after all", "[ledger][outage]") {
  Table table({.concurrency = 1});
  const TrialId trial = table.order();
  const RunId run = table.submit(trial);
  table.end(run, deferred());

  SECTION("it has started") {
    table.ledger.event(JobStarted{run, JobId{"job"}, at(6)}, at(6), table.out);
    CHECK(table.ledger.detail(trial)->status == TrialJobStatus::running);
  }
  SECTION("it reports") { table.report(run, MetricKind::intermediate, 0, "1"); }

  CHECK_FALSE(table.ledger.next_waiting());
  CHECK(table.ledger.is_live(run));
  table.end(run, JobEnd{EndKind::exited, 3});
  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::failed);
}

TEST_CASE("ledger: a run that had started is lost, whatever its platform calls that", "[ledger][outage]") {
  Table table({.concurrency = 1});
  const RunId run = table.running();

  table.end(run, deferred());

  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].end.kind == EndKind::lost);
  CHECK(table.records<RunEnded>()[0].losses == 1);
}
