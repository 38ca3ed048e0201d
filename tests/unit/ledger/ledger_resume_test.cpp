#include "support/catch.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

namespace {

/// One trial, whose run was open when its manager ended.
ExperimentSnapshot one_open_run(bool started) {
  ExperimentSnapshot snapshot;
  snapshot.exists = true;
  snapshot.trials = 1;
  UnfinishedTrial& open = snapshot.unfinished.emplace_back();
  open.trial = TrialId{1};
  open.attempts = 1;
  open.open_run.emplace();
  open.open_run->run = RunId{TrialId{1}, 0};
  open.open_run->at = at(7);
  open.open_run->started = started;
  open.open_run->placement = Placement("first");
  return snapshot;
}

JobReport report_of_open(JobReport::State state) {
  JobReport report(RunId{TrialId{1}, 0}, state);
  report.started = at(3);
  report.ended = at(8);
  report.working_directory = "/trials/1";
  return report;
}

}  // namespace

TEST_CASE("ledger: a resume adopts, accounts or repeats what was open", "[ledger]") {
  ExperimentSnapshot snapshot;
  snapshot.exists = true;
  snapshot.trials = 3;
  snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] = 1;
  UnfinishedTrial waiting;
  waiting.trial = TrialId{2};
  snapshot.unfinished.push_back(waiting);
  UnfinishedTrial open;
  open.trial = TrialId{3};
  open.attempts = 1;
  open.open_run.emplace();
  open.open_run->run = RunId{TrialId{3}, 0};
  open.open_run->started = true;
  for (const std::uint32_t sequence : {0U, 2U})
    open.seen.insert(Metric(open.open_run->run, MetricKind::intermediate, sequence, "0.1", at(1)));
  snapshot.unfinished.push_back(open);
  Table table({.concurrency = 2, .max_trials = 3});
  table.ledger.restore(snapshot);
  REQUIRE(table.ledger.open_intents().size() == 1);
  CHECK(table.ledger.counts().finished == 1);
  JobReport report(RunId{TrialId{3}, 0}, JobReport::State::running);
  report.started = at(1);

  SECTION("a running one goes on; what it sends again is recognised") {
    table.ledger.adopted(report, at(9), table.out);
    CHECK(table.ledger.counts().running == 1);
    CHECK(table.records<RunStarted>().empty());  // recorded before
    table.report(report.run, MetricKind::intermediate, 0, "0.1");
    table.report(report.run, MetricKind::intermediate, 2, "0.1");
    CHECK(table.records<MetricReceived>().empty());
    table.report(report.run, MetricKind::intermediate, 1, "0.1");
    table.report(report.run, MetricKind::intermediate, 2, "0.2");
    CHECK(table.records<MetricReceived>().size() == 2);
  }
  SECTION("one that ended meanwhile is accounted with its exit code") {
    report.state = JobReport::State::ended;
    report.end = JobEnd{EndKind::exited, 7};
    table.ledger.adopted(report, at(9), table.out);
    CHECK(table.effects<Announce>()[0]->detail->exit_code == 7);
  }
  SECTION("one that was never submitted runs as the next attempt") {
    report.state = JobReport::State::never_started;
    table.ledger.adopted(report, at(9), table.out);
    CHECK(table.submit(TrialId{3}) == RunId{TrialId{3}, 1});
  }
  SECTION("one that nobody knows counts as lost and runs again") {
    report.state = JobReport::State::unknown;
    table.ledger.adopted(report, at(9), table.out);
    CHECK(table.records<RunEnded>()[0].end.kind == EndKind::lost);
    CHECK(table.ledger.counts().waiting == 2);
  }
}

TEST_CASE("ledger: a run whose final value the last manager recorded is over, however it was lost",
          "[ledger][resume]") {
  ExperimentSnapshot snapshot = one_open_run(true);
  snapshot.unfinished[0].final_value = "0.5";
  Table table({.max_retries = 2});
  table.ledger.restore(snapshot);
  JobReport report = report_of_open(JobReport::State::ended);

  SECTION("the platform does not know it any more") { report.state = JobReport::State::unknown; }
  SECTION("its keeper was killed") { report.end = JobEnd{EndKind::lost, 0, "gone"}; }
  SECTION("it was stopped with the experiment") { report.end = killed(StopReason::experiment_end); }
  table.ledger.adopted(report, at(9), table.out);

  REQUIRE(table.records<RunEnded>().size() == 1);
  CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::succeeded);
  CHECK(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<ReportOutcome>()[0]->outcome.value == 0.5);
}

TEST_CASE("ledger: the reason with which the last manager stopped a run counts, however the run exited",
          "[ledger][resume]") {
  Table table;
  table.ledger.restore(one_open_run(true));
  JobReport report = report_of_open(JobReport::State::ended);

  SECTION("the user") {
    report.end.why = StopReason::user;
    table.ledger.adopted(report, at(9), table.out);
    CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::user_canceled);
  }
  SECTION("the end of the experiment") {
    report.end.why = StopReason::experiment_end;
    table.ledger.adopted(report, at(9), table.out);
    CHECK_FALSE(table.records<RunEnded>()[0].final_attempt);
  }
}

TEST_CASE("ledger: a pause and the retries that are used up survive a resume", "[ledger][retry]") {
  using namespace std::chrono_literals;
  ExperimentSnapshot snapshot;
  snapshot.exists = true;
  snapshot.trials = 1;
  UnfinishedTrial& trial = snapshot.unfinished.emplace_back();
  trial.trial = TrialId{1};
  trial.attempts = 2;
  trial.retries = 2;
  trial.pause = 10s;
  trial.ended_at = at(100'000);
  Table table({.max_retries = 2});
  table.ledger.restore(snapshot);

  CHECK(table.ledger.counts().retrying == 1);
  CHECK_FALSE(table.ledger.next_waiting());
  CHECK_FALSE(table.ledger.finished());
  REQUIRE(table.ledger.pauses(at(103'000)).size() == 1);
  CHECK(table.ledger.pauses(at(103'000)).front().pause == 7s);
  CHECK(table.ledger.pauses(at(200'000)).front().pause == 0s);
  CHECK(table.ledger.pauses(at(1)).front().pause == 10s);  // a clock that stepped back makes no pause longer

  table.ledger.retry_due(TrialId{1});
  const RunId run = table.submit(TrialId{1});
  CHECK(run.attempt == 2);
  table.end(run, JobEnd{EndKind::lost, 0, "gone"});
  CHECK(table.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 1);
}

TEST_CASE("ledger: a trial that failed can be opened again, and its next attempt counts", "[ledger][resume]") {
  ExperimentSnapshot snapshot;
  snapshot.exists = true;
  snapshot.trials = 3;
  snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] = 2;
  snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] = 1;
  Table table({.concurrency = 2, .max_trials = 3});
  table.ledger.restore(snapshot);
  CHECK(table.ledger.finished());
  TrialJobDetail failed;
  failed.trial = TrialId{2};
  failed.attempts = 1;
  failed.status = TrialJobStatus::failed;
  failed.exit_code = 3;

  table.ledger.reopen(failed);

  CHECK_FALSE(table.ledger.finished());
  CHECK(table.ledger.counts().finished == 2);
  CHECK(table.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 1);
  const RunId run = table.submit(TrialId{2});
  CHECK(run == RunId{TrialId{2}, 1});
  table.report(run, MetricKind::final, 0, "0.5");
  table.end(run, JobEnd{});
  CHECK(table.effects<Announce>().back()->detail->exit_code == 0);
  CHECK(table.ledger.finished());
}

TEST_CASE("ledger: the place of a run that was never taken over is not given back", "[ledger][resume]") {
  const auto state = GENERATE(
      JobReport::State::running, JobReport::State::ended, JobReport::State::unknown, JobReport::State::never_started);
  Table table;
  table.ledger.restore(one_open_run(true));

  table.ledger.adopted(report_of_open(state), at(9), table.out);
  CHECK((table.ledger.placement(RunId{TrialId{1}, 0}) != nullptr) == (state == JobReport::State::running));
  table.end(RunId{TrialId{1}, 0}, JobEnd{});

  CHECK(table.effects<Release>().size() == (state == JobReport::State::running ? 1 : 0));
}

TEST_CASE("ledger: a platform is asked about an open run with everything that is known of it", "[ledger][resume]") {
  const bool started = GENERATE(false, true);
  Ledger ledger(LedgerOptions{});
  ledger.restore(one_open_run(started));

  REQUIRE(ledger.open_intents().size() == 1);
  CHECK(ledger.open_intents().front().started == started);
  CHECK(ledger.open_intents().front().at == at(7));
}

TEST_CASE("ledger: what began and ended while no manager was there is recorded as begun, and shown so",
          "[ledger][resume]") {
  const bool started = GENERATE(false, true);
  Table table;
  table.ledger.restore(one_open_run(started));

  table.ledger.adopted(report_of_open(JobReport::State::ended), at(9), table.out);

  CHECK(table.records<RunStarted>().size() == (started ? 0 : 1));
  CHECK(std::holds_alternative<RunEnded>(table.out.records.back()));
  const TrialJobDetail& shown = *table.effects<Announce>().front()->detail;
  CHECK(shown.start_time == at(3));
  CHECK(shown.end_time == at(8));
  CHECK(shown.working_directory == "/trials/1");
  CHECK(shown.environment == "first");
  CHECK(table.ledger.counts().running == 0);
}

TEST_CASE("ledger: what a store knows of an open trial is known again, and no report without it hides it",
          "[ledger][resume]") {
  Table table;
  table.ledger.restore(one_open_run(true));
  TrialJobDetail known;
  known.trial = TrialId{1};
  known.submit_time = at(1);
  known.url = "file:///trials/1";
  known.working_directory = "/trials/1";
  table.ledger.recall(known);
  JobReport report(RunId{TrialId{1}, 0}, JobReport::State::running);
  report.started = at(3);

  table.ledger.adopted(report, at(9), table.out);

  const TrialJobDetail shown = table.ledger.detail(TrialId{1}).value();
  CHECK(shown.submit_time == at(1));
  CHECK(shown.start_time == at(3));
  CHECK(shown.url == "file:///trials/1");
  CHECK(shown.working_directory == "/trials/1");
}

TEST_CASE("ledger: a pause that begins when a run is adopted is not one of those that were going on",
          "[ledger][resume][retry]") {
  Table table({.max_retries = 2});
  table.ledger.restore(one_open_run(true));
  JobReport report = report_of_open(JobReport::State::ended);
  report.end = JobEnd{EndKind::lost, 0, "gone"};

  table.ledger.adopted(report, at(9), table.out);

  CHECK(table.ledger.counts().retrying == 1);
  CHECK(table.effects<RetryLater>().size() == 1);
  CHECK(table.ledger.pauses(at(9)).empty());  // its effect has told of it
}

TEST_CASE("ledger: a run that was lost together with its manager uses up no retry, also when its messages come first",
          "[ledger][resume][retry]") {
  Table table({.max_retries = 2});
  table.ledger.restore(one_open_run(true));
  table.ledger.adopted(report_of_open(JobReport::State::running), at(9), table.out);

  table.ledger.lost_with_manager(JobEnded{RunId{TrialId{1}, 0}, JobEnd{EndKind::lost, 0, "gone"}, at(9)}, table.out);

  CHECK(table.ledger.counts().retrying == 0);
  CHECK(table.ledger.next_waiting() == TrialId{1});
  CHECK(table.records<RunEnded>().back().retries == 0);
}

TEST_CASE("ledger: a run that was lost while no manager was there is repeated, however often", "[ledger][resume]") {
  Table table({.max_losses = 0});
  table.ledger.restore(one_open_run(true));
  JobReport report = report_of_open(GENERATE(JobReport::State::ended, JobReport::State::unknown));
  report.end = JobEnd{EndKind::lost, 0, "the machine was restarted"};

  table.ledger.adopted(report, at(9), table.out);

  CHECK_FALSE(table.records<RunEnded>().back().final_attempt);
  CHECK(table.records<RunEnded>().back().losses == 0);
  CHECK(table.ledger.next_waiting() == TrialId{1});
}

TEST_CASE("ledger: how often a trial was lost is recorded and survives a resume", "[ledger][resume]") {
  Table table({.max_losses = 2});
  table.end(table.running(), JobEnd{EndKind::lost, 0, "gone"});
  CHECK(table.records<RunEnded>().back().losses == 1);

  ExperimentSnapshot snapshot;
  snapshot.exists = true;
  snapshot.trials = 1;
  UnfinishedTrial& trial = snapshot.unfinished.emplace_back();
  trial.trial = TrialId{1};
  trial.attempts = 2;
  trial.losses = 2;
  Table resumed({.max_losses = 2});
  resumed.ledger.restore(snapshot);
  resumed.end(resumed.submit(TrialId{1}), JobEnd{EndKind::lost, 0, "gone"});

  CHECK(resumed.records<RunEnded>().back().final_attempt);
  CHECK(resumed.ledger.counts().by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 1);
}
