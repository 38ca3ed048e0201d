#include "support/catch.hpp"

#include <initializer_list>
#include <limits>
#include <string>

#include <nni/session/ledger.hpp>

using namespace nni;

namespace {

constexpr TimePoint at(long long ms) { return from_epoch_ms(ms); }

/// A ledger and everything that came out of it so far.
struct Table {
  explicit Table(LedgerOptions options = {}) : ledger(options) {}

  TrialId order(double x = 0.5) {
    ledger.requested(ledger.wanted());
    return ledger.order(NewTrial{ParameterId{next++}, ParametersWriter{}.add("x", x).finish()}, at(1), out);
  }
  RunId submit(TrialId trial) {
    ledger.intend(trial, TrialJobForm{}, at(2), out);
    return submitted().back()->run;
  }
  RunId running() {
    const RunId run = submit(order());
    ledger.event(JobStarted{run, JobId{"job"}, at(3)}, at(3), out);
    return run;
  }
  void report(RunId run, MetricKind kind, std::uint32_t sequence, std::string value, std::uint64_t receipt = 0) {
    ledger.message(TrialMessage{Metric{run, kind, sequence, std::move(value), at(4)}, Receipt{receipt}}, out);
  }
  void end(RunId run, JobEnd how) { ledger.event(JobEnded{run, std::move(how), at(5)}, at(5), out); }

  template <class A>
  std::vector<const A*> effects() const {
    std::vector<const A*> found;
    for (const Effect& effect : out.effects)
      if (const A* action = std::get_if<A>(&effect.action)) found.push_back(action);
    return found;
  }
  template <class A>
  Strength strength() const {
    for (const Effect& effect : out.effects)
      if (std::holds_alternative<A>(effect.action)) return effect.waits_for;
    throw std::logic_error("there is no such effect");
  }
  template <class R>
  std::vector<R> records() const {
    std::vector<R> found;
    for (const StoreEvent& event : out.records)
      if (const R* record = std::get_if<R>(&event)) found.push_back(*record);
    return found;
  }
  std::vector<const TrialJobForm*> submitted() const {
    std::vector<const TrialJobForm*> forms;
    for (const Submit* submit : effects<Submit>()) forms.push_back(submit->form.get());
    return forms;
  }

  Ledger ledger;
  Transition out;
  std::uint64_t next = 0;
};

JobEnd killed(StopReason why) {
  JobEnd end{EndKind::killed, 2};
  end.why = why;
  return end;
}

}  // namespace

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
  CHECK(table.strength<Submit>() == Strength::written);
  CHECK(table.submitted().front()->parameters.text() == R"({"x":0.25})");
}

TEST_CASE("ledger: a submission that leaves this machine waits for its intent to be synced", "[ledger]") {
  Table table({.submit_strength = Strength::synced});

  table.submit(table.order());

  CHECK(table.strength<Submit>() == Strength::synced);
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

TEST_CASE("ledger: a trial gets its answer when its value is kept", "[ledger]") {
  Table table;
  const RunId run = table.running();

  SECTION("an intermediate value is written first") {
    table.report(run, MetricKind::intermediate, 0, "0.1", 41);
    CHECK(table.strength<Acknowledge>() == Strength::written);
    CHECK(table.effects<Acknowledge>()[0]->receipt.value == 41);
  }
  SECTION("a final value is synced first") {
    table.report(run, MetricKind::final, 0, "0.1");
    CHECK(table.strength<Acknowledge>() == Strength::synced);
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

  SECTION("unless it exits with 0 and a final value, because then it was faster") {
    Table table;
    const RunId run = table.running();
    table.ledger.cancel(run.trial, StopReason::early_stop, at(4), table.out);
    table.report(run, MetricKind::final, 0, "0.9");
    table.end(run, JobEnd{});
    CHECK(table.records<RunEnded>()[0].status == TrialJobStatus::succeeded);
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

TEST_CASE("ledger: a run that ends because the experiment stops stays unfinished", "[ledger]") {
  Table table({.concurrency = 2});
  const RunId run = table.running();
  table.ledger.stop_placing();
  table.ledger.cancel_all(at(4), table.out);

  table.end(run, killed(StopReason::experiment_end));

  CHECK_FALSE(table.records<RunEnded>()[0].final_attempt);
  CHECK(table.effects<ReportOutcome>().empty());
  CHECK(table.ledger.finished());
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
  open.intermediates = 2;
  open.open_run.emplace();
  open.open_run->run = RunId{TrialId{3}, 0};
  open.open_run->started = true;
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
    table.report(report.run, MetricKind::intermediate, 1, "0.1");
    CHECK(table.records<MetricReceived>().empty());
    table.report(report.run, MetricKind::intermediate, 2, "0.1");
    CHECK(table.records<MetricReceived>().size() == 1);
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

TEST_CASE("ledger: holds live trials only", "[ledger]") {
  Table table;
  const RunId run = table.running();
  CHECK(table.ledger.detail(run.trial).has_value());

  table.end(run, JobEnd{});

  CHECK_FALSE(table.ledger.detail(run.trial).has_value());
}

// ---- retries, pauses, changes -----------------------------------------------------------------------------------

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

TEST_CASE("ledger: when runs cannot start nothing starts any more, until a live one shows that they can",
          "[ledger][start]") {
  Table table({.concurrency = 2, .max_failed_starts = 2});
  const JobEnd failure =
      GENERATE(JobEnd(EndKind::not_started, 0, "no such program"), JobEnd(EndKind::exited, 127, "no such program"));
  const RunId first = table.running();
  table.end(table.running(), failure);
  CHECK(table.ledger.wanted() == 1);
  table.end(table.running(), failure);

  CHECK(table.ledger.wanted() == 0);
  CHECK(table.ledger.cannot_start().empty());  // one of them still runs
  CHECK_FALSE(table.ledger.finished());

  SECTION("it says something") {
    table.report(first, MetricKind::intermediate, 0, "1");
    CHECK(table.ledger.wanted() == 1);
  }
  SECTION("it ends by itself") {
    table.end(first, JobEnd{EndKind::exited, 1});
    CHECK(table.ledger.wanted() != 0);
    for (int more = 0; more < 5; ++more) table.end(table.running(), failure);
    CHECK(table.ledger.wanted() != 0);
  }
  SECTION("it is stopped, or lost") {
    const EndKind how = GENERATE(EndKind::killed, EndKind::lost);
    table.end(first, JobEnd{how});
    CHECK(table.ledger.wanted() == 0);
    CHECK_THAT(table.ledger.cannot_start(), Catch::StartsWith("no such program"));
  }
  SECTION("it could not start either") {
    table.end(first, failure);
    CHECK_THAT(table.ledger.cannot_start(), Catch::StartsWith("no such program"));
  }
  SECTION("it could not start either, and nobody knows why") {
    table.end(first, JobEnd{EndKind::not_started});
    CHECK_THAT(table.ledger.cannot_start(), Catch::Contains("no reason"));
  }
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

// ---- from one manager to the next -------------------------------------------------------------------------------

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

TEST_CASE("ledger: a live trial is shown with the machine that it was given", "[ledger]") {
  Table table;
  TrialJobForm form;
  form.placement = Placement("second");
  const TrialId trial = table.order();
  table.ledger.intend(trial, std::move(form), at(2), table.out);

  CHECK(table.ledger.detail(trial)->environment == "second");
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
    CHECK(table.strength<Cancel>() == Strength::now);
  }
  SECTION("not yet") {
    run = table.submit(table.order());
    table.ledger.cancel(run.trial, StopReason::user, at(4), table.out);
    CHECK(table.strength<Cancel>() == table.strength<Submit>());
  }
}
