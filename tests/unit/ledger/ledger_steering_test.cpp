#include "support/catch.hpp"

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

TEST_CASE("ledger: a run that was told to stop ends with the status of the reason", "[ledger]") {
  struct Row {
    StopReason why;
    JobEnd end;
    TrialJobStatus status;
  };
  const Row rows[] = {
      {StopReason::user, killed(StopReason::user), TrialJobStatus::user_canceled},
      {StopReason::early_stop, killed(StopReason::early_stop), TrialJobStatus::early_stopped},
      {StopReason::time_limit, killed(StopReason::time_limit), TrialJobStatus::early_stopped},
      {StopReason::early_stop, JobEnd{EndKind::exited, 130}, TrialJobStatus::early_stopped},
      {StopReason::early_stop, JobEnd{EndKind::exited, 0}, TrialJobStatus::early_stopped},
      {StopReason::early_stop, JobEnd{EndKind::signalled, 2}, TrialJobStatus::early_stopped},
  };
  for (const Row& row : rows) {
    Table table;
    const RunId run = table.running();
    table.report(run, MetricKind::intermediate, 0, "0.7");
    table.ledger.cancel(run.trial, row.why, at(4), table.out);
    REQUIRE(table.effects<Cancel>().size() == 1);

    table.end(run, row.end);

    CHECK(table.records<RunEnded>()[0].status == row.status);
    if (row.status == TrialJobStatus::early_stopped) {
      CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 0.7);
      CHECK(table.effects<Announce>()[0]->detail->is_early_stopped);
    }
  }

  SECTION("a second request changes nothing") {
    Table table;
    const RunId run = table.running();
    table.ledger.cancel(run.trial, StopReason::early_stop, at(4), table.out);
    table.ledger.cancel(run.trial, StopReason::user, at(4), table.out);
    CHECK(table.effects<Cancel>().size() == 1);
  }
  SECTION("a trial that waits ends at once") {
    Table table;
    const TrialId trial = table.order();
    table.ledger.cancel(trial, StopReason::user, at(4), table.out);
    CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::user_canceled);
    CHECK(table.submitted().empty());
  }
}

TEST_CASE("ledger: a run that was told to stop for its own sake keeps its final value, however it ends", "[ledger]") {
  const auto why = GENERATE(StopReason::user, StopReason::early_stop, StopReason::time_limit);
  const auto end = GENERATE(JobEnd{EndKind::exited, 0}, JobEnd{EndKind::exited, 3}, JobEnd{EndKind::killed, 2},
                            JobEnd{EndKind::lost, 0, "gone"});
  Table table({.max_retries = 1});
  const RunId run = table.running();
  const bool reports_first = GENERATE(false, true);
  if (reports_first) table.report(run, MetricKind::final, 0, "0.9");
  table.ledger.cancel(run.trial, why, at(4), table.out);
  if (!reports_first) table.report(run, MetricKind::final, 0, "0.9");

  table.end(run, end);

  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].status == status_of(why));
  CHECK(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<Announce>()[0]->detail->final_value == "0.9");
  CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 0.9);
}

TEST_CASE("ledger: a run that is lost, or stopped with the experiment, after its final value is over with it",
          "[ledger]") {
  Table table({.max_retries = 2});
  const RunId run = table.running();
  table.report(run, MetricKind::final, 0, "0.9");

  SECTION("lost") { table.end(run, JobEnd{EndKind::lost, 0, "the keeper was killed"}); }
  SECTION("lost with its manager") {
    const JobEnded end{run, JobEnd{EndKind::lost, 0, "the keeper was killed"}, at(5)};
    table.ledger.lost_with_manager(end, table.out);
  }
  SECTION("stopped with the experiment") {
    table.ledger.cancel_all(at(4), table.out);
    table.end(
        run, GENERATE(killed(StopReason::experiment_end), JobEnd{EndKind::exited, 1}, JobEnd{EndKind::exited, 0}));
  }

  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::succeeded);
  CHECK(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 0.9);
  CHECK(table.effects<Announce>()[0]->detail->final_value == "0.9");
}

TEST_CASE("ledger: of a trial that is stopped early the last finite value is told, as after a resume", "[ledger]") {
  Table table;
  const RunId run = table.running();
  table.report(run, MetricKind::intermediate, 0, "0.7");
  table.report(run, MetricKind::intermediate, 1, "NaN");
  table.report(run, MetricKind::intermediate, 2, "\"soon\"");
  table.ledger.cancel(run.trial, StopReason::early_stop, at(4), table.out);

  table.end(run, killed(StopReason::early_stop));

  CHECK(table.effects<ReportOutcome>().front()->outcome.value == 0.7);
}

TEST_CASE("ledger: who stops a run that has begun waits for no record, before that for its submission", "[ledger]") {
  Table table;
  RunId run;
  SECTION("begun") {
    run = table.running();
    table.ledger.cancel(run.trial, StopReason::user, at(4), table.out);
    CHECK(table.durability<Cancel>() == Durability::none);
  }
  SECTION("not yet") {
    run = table.submit(table.order());
    table.ledger.cancel(run.trial, StopReason::user, at(4), table.out);
    CHECK(table.durability<Cancel>() == table.durability<Submit>());
  }
}

TEST_CASE("ledger: a run that ends because the experiment stops stays unfinished", "[ledger]") {
  Table table({.concurrency = 2});
  const RunId run = table.running();
  table.ledger.stop_placing();
  table.ledger.cancel_all(at(4), table.out);

  table.end(run, GENERATE(killed(StopReason::experiment_end), JobEnd{EndKind::exited, 0}));

  CHECK_FALSE(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<ReportOutcome>().empty());
  CHECK(table.ledger.finished());
}

TEST_CASE("ledger: while it is paused nothing starts and nothing is over", "[ledger][pause]") {
  Table table({.concurrency = 2, .max_trials = 3});
  const RunId run = table.running();
  const TrialId waiting = table.order();

  table.ledger.pause(PauseReason::user);
  table.ledger.pause(PauseReason::store);

  CHECK(table.ledger.wanted() == 0);
  CHECK_FALSE(table.ledger.next_waiting());
  table.end(run, JobEnd{});
  CHECK_FALSE(table.ledger.finished());
  SECTION("each reason is lifted by itself") {
    table.ledger.resume(PauseReason::user);
    CHECK(table.ledger.paused());
    CHECK_FALSE(table.ledger.next_waiting());
    table.ledger.resume(PauseReason::store);
    CHECK(table.ledger.next_waiting() == waiting);
    CHECK(table.ledger.wanted() == 1);
  }
  SECTION("a stop ends it all the same") {
    table.ledger.stop_placing();
    CHECK(table.ledger.finished());
  }
  SECTION("a waiting trial can be cancelled") {
    table.ledger.cancel(waiting, StopReason::user, at(6), table.out);
    CHECK(table.ledger.counts().waiting == 0);
  }
}

TEST_CASE("ledger: a pause with nothing left to do does not keep the experiment", "[ledger][pause]") {
  Table table({.max_trials = 1});
  const RunId run = table.running();
  table.ledger.pause(PauseReason::user);

  table.end(run, JobEnd{});

  CHECK(table.ledger.finished());
}

TEST_CASE("ledger: a larger budget is used at once, a smaller one lets what was ordered run", "[ledger]") {
  Table table({.concurrency = 4, .max_trials = 1});
  const TrialId first = table.order();
  CHECK(table.ledger.wanted() == 0);

  table.ledger.set_max_trials(3);
  CHECK(table.ledger.wanted() == 2);
  table.order();
  table.ledger.set_max_trials(1);
  CHECK(table.ledger.wanted() == 0);
  CHECK(table.ledger.next_waiting() == first);
  table.ledger.stop_placing();
  CHECK_FALSE(table.ledger.next_waiting());
  table.ledger.go_on_placing();
  CHECK(table.ledger.next_waiting() == first);
}
