#include "support/catch.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

TEST_CASE("ledger: a lost run is attempted again, and not for ever", "[ledger]") {
  Table table({.max_losses = 2});
  RunId run = table.running();

  table.end(run, JobEnd{EndKind::lost, 0, "keeper died"});

  CHECK_FALSE(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<ReportOutcome>().empty());
  run = table.submit(*table.ledger.next_waiting());
  CHECK(run.attempt == 1);
  table.end(run, JobEnd{EndKind::lost});
  run = table.submit(*table.ledger.next_waiting());
  table.end(run, JobEnd{EndKind::lost, 0, "keeper died"});
  CHECK(table.records<RunEnded>()[2].status == TrialJobStatus::failed);
  CHECK(table.effects<ReportOutcome>().size() == 1);
}

TEST_CASE("ledger: with retries, what the platform lost or could not start pauses and is tried again",
          "[ledger][retry]") {
  const EndKind kind = GENERATE(EndKind::lost, EndKind::not_started);
  Table table({.concurrency = 1, .max_retries = 2, .backoff = {.first = std::chrono::seconds(1)}});
  const RunId run = table.running();

  table.end(run, JobEnd{kind, 0, "gone"});

  const RunEnded record = table.records<RunEnded>().back();
  CHECK_FALSE(record.final_attempt);
  CHECK(record.status == TrialJobStatus::waiting);
  CHECK(record.retries == 1);
  REQUIRE(table.effects<RetryLater>().size() == 1);
  CHECK(table.effects<RetryLater>().front()->pause == record.pause);
  CHECK(record.pause > Duration::zero());
  CHECK(table.ledger.counts().retrying == 1);
  CHECK(table.ledger.counts().waiting == 0);
  CHECK(table.ledger.wanted() == 1);  // its place is free meanwhile
  CHECK_FALSE(table.ledger.next_waiting());
  CHECK_THAT(table.ledger.detail(run.trial)->message, Catch::Contains("before retry 1 of 2; before: gone"));

  SECTION("when the pause is over it waits for a place, and gets the next attempt") {
    table.ledger.retry_due(run.trial);
    CHECK(table.ledger.counts().retrying == 0);
    CHECK(table.ledger.next_waiting() == run.trial);
    CHECK(table.submit(run.trial) == RunId{run.trial, 1});
  }
  SECTION("a cancelled one is not tried again") {
    table.ledger.cancel(run.trial, StopReason::user, at(6), table.out);
    CHECK(table.ledger.counts().retrying == 0);
    CHECK(table.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::user_canceled)] == 1);
    table.ledger.retry_due(run.trial);
    CHECK(table.ledger.counts().waiting == 0);
  }
}

TEST_CASE("ledger: what a trial did itself is tried again only when asked for", "[ledger][retry]") {
  const JobEnd end =
      GENERATE(JobEnd{EndKind::exited, 3}, JobEnd{EndKind::signalled, 9}, JobEnd{EndKind::threw, 0, "x"});
  const RetryOn on = GENERATE(RetryOn::losses, RetryOn::failures);
  Table table({.max_retries = 1, .retry_on = on});
  const RunId run = table.running();

  table.end(run, end);

  CHECK(table.ledger.counts().retrying == (on == RetryOn::failures ? 1 : 0));
  CHECK(table.ledger.counts().finished == (on == RetryOn::failures ? 0 : 1));
}

TEST_CASE("ledger: a trial is tried again so often and no more, and its pauses grow", "[ledger][retry]") {
  Table table({.max_retries = 3, .backoff = {.first = std::chrono::seconds(1), .limit = std::chrono::hours(1)}});
  RunId run = table.running();
  for (int retry = 0; retry < 3; ++retry) {
    table.end(run, JobEnd{EndKind::lost, 0, "gone"});
    table.ledger.retry_due(run.trial);
    run = table.submit(run.trial);
  }

  table.end(run, JobEnd{EndKind::lost, 0, "gone"});

  CHECK(run.attempt == 3);
  CHECK(table.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 1);
  const std::vector<const RetryLater*> pauses = table.effects<RetryLater>();
  REQUIRE(pauses.size() == 3);
  CHECK(pauses[0]->pause * 6 / 5 < pauses[1]->pause);
  CHECK(pauses[1]->pause * 6 / 5 < pauses[2]->pause);
}

TEST_CASE("ledger: a run that was told to stop is not tried again, however it ends", "[ledger][retry]") {
  Table table({.max_retries = 3, .retry_on = RetryOn::failures});
  const RunId run = table.running();
  table.ledger.cancel(run.trial, StopReason::user, at(4), table.out);

  table.end(run, JobEnd{EndKind::lost, 0, "gone"});

  CHECK(table.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::user_canceled)] == 1);
}

TEST_CASE("ledger: a trial that is cancelled while it waits for a retry keeps the end of its last run",
          "[ledger][retry]") {
  using namespace std::chrono_literals;
  Table table({.max_retries = 2, .retry_on = RetryOn::failures, .backoff = {10s, 1min}});
  SECTION("in one life of the manager") {
    table.end(table.running(), JobEnd{EndKind::exited, 3});
    REQUIRE(table.ledger.counts().retrying == 1);
  }
  SECTION("after a resume") {
    ExperimentSnapshot snapshot;
    snapshot.exists = true;
    snapshot.trials = 1;
    UnfinishedTrial& trial = snapshot.unfinished.emplace_back();
    trial.trial = TrialId{1};
    trial.attempts = 1;
    trial.retries = 1;
    trial.pause = 10s;
    trial.ended_at = at(5);
    trial.last_end = JobEnd{EndKind::exited, 3};
    table.ledger.restore(snapshot);
  }

  table.ledger.cancel(TrialId{1}, StopReason::user, at(100), table.out);

  const RunEnded end = table.records<RunEnded>().back();
  CHECK(end.final_attempt);
  CHECK(end.status == TrialJobStatus::user_canceled);
  CHECK(end.end.kind == EndKind::exited);
  CHECK(end.end.code == 3);
  CHECK(end.at == at(5));
  CHECK(end.end.message == "stopped while it waited for its next attempt");
  CHECK(table.ledger.counts().retrying == 0);
  CHECK(table.effects<Announce>().back()->detail->exit_code == 3);
}
