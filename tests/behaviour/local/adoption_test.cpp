#include "behaviour/local/harness.hpp"

#include <map>

using namespace nni;
using namespace nni_test;

CO_TEST_CASE("local: a killed manager's trials go on, and the next one gets their values and their real exit codes",
             "[local][adoption]") {
  Place place;
  Fifo reported(ctx, place, "reported");
  Fifo gate(ctx, place, "gate");
  JobId job;
  {
    ManagerProcess manager(
        ctx, place, 2, "keep",
        {program("local_trial").string(), "metric", "0.5", "tell", reported.path(), "wait", gate.path(), "metric",
         "0.75", "exit", "5"});
    co_await reported.told();
    co_await reported.told();
    const std::string line = co_await manager.line_of("submitted " + to_string(run_of(1)));
    job = JobId{line.substr(line.rfind(' ') + 1)};
    manager.kill();
  }
  CHECK(place.processes().size() == 2);
  gate.let_go();  // one of them ends while nobody is there
  const pid_t keeper = place.keeper();

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1)), intent_of(run_of(2)), intent_of(run_of(3))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  gate.let_go();
  std::map<RunId, std::vector<std::string>> values;
  std::map<RunId, JobEnd> ends;
  for (int count = 0; count < 4; ++count) {
    const Metric metric = co_await next_metric(local);
    values[metric.run].push_back(metric.value);
  }
  for (int count = 0; count < 2; ++count) {
    const JobEnded end = co_await next_end(local);
    co_await local.settle(end.run);
    ends[end.run] = end.end;
    local.recorded(end.run);
  }

  CHECK(place.keeper() == keeper);
  REQUIRE(reports.size() == 3);
  CHECK(reports[0].state == JobReport::State::running);
  CHECK(reports[0].job == job);
  CHECK(reports[0].started != TimePoint{});
  CHECK(reports[1].state == JobReport::State::running);
  CHECK(reports[2].state == JobReport::State::never_started);
  for (const RunId run : {run_of(1), run_of(2)}) {
    CHECK(values[run] == std::vector<std::string>{"0.5", "0.75"});
    CHECK(ends[run].kind == EndKind::exited);
    CHECK(ends[run].code == 5);
  }
  co_await local.clean_up();
  CHECK(place.processes().empty());
}

CO_TEST_CASE("local: a keeper without manager ends with its last trial, and the next manager still learns everything",
             "[local][adoption]") {
  Place place;
  Fifo there(ctx, place, "there");
  Fifo gate(ctx, place, "gate");
  {
    ManagerProcess manager(
        ctx, place, 1, "keep",
        {program("local_trial").string(), "metric", "1.5", "tell", there.path(), "wait", gate.path(), "signal", "9"});
    co_await there.told();
    co_await manager.line_of("submitted");
    manager.kill();
  }
  const pid_t keeper = place.keeper();
  gate.let_go();
  co_await ended(ctx, keeper);
  CHECK(place.keeper() == 0);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(reports.at(0).state == JobReport::State::running);  // its value comes first, then its end
  CHECK(metric.value == "1.5");
  CHECK(end.end.kind == EndKind::signalled);
  CHECK(end.end.code == 9);
  co_await local.clean_up();
}

CO_TEST_CASE("local: an end whose values are recorded already is told by the report", "[local][adoption]") {
  Place place;
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "exit", "3"});
    co_await manager.line_of("ended");
    manager.kill();
  }

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));

  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state == JobReport::State::ended);
  CHECK(reports[0].end.kind == EndKind::exited);
  CHECK(reports[0].end.code == 3);
  CHECK(reports[0].started != TimePoint{});
  co_await local.clean_up();
}

CO_TEST_CASE("local: ends that are recorded are not told again", "[local][adoption]") {
  Place place;
  Fifo gate(ctx, place, "gate");
  {
    // The first trial ends and is recorded, the second keeps the keeper alive.
    ManagerProcess manager(ctx, place, 1, "take", {program("local_trial").string(), "metric", "2", "exit", "0"});
    co_await manager.line_of("ended");
    manager.kill();
  }
  platforms::Local local = place.local();
  co_await local.start(ctx);
  const std::vector<JobReport> none = co_await local.adopt(std::vector<Intent>());
  co_await submit(local, trial_form(2, "exit 4"));
  const JobEnded end = co_await next_end(local);

  CHECK(none.empty());
  CHECK(end.run == run_of(2));
  co_await local.clean_up();
}

CO_TEST_CASE("local: a final value waits for the next manager, and the trial with it", "[local][adoption]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(
        ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "final", "0.9", "exit", "0"});
    co_await there.told();
    co_await manager.line_of("metric");  // it has it, but it never recorded it
    manager.kill();
  }
  CHECK(place.processes().size() == 1);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents{intent_of(run_of(1))};
  const std::vector<JobReport> reports = co_await local.adopt(std::move(intents));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(reports.at(0).state == JobReport::State::running);
  CHECK(metric.kind == MetricKind::final);
  CHECK(metric.value == "0.9");
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}

CO_TEST_CASE("local: further parameters go on where the manager before has stopped", "[local][adoption][multi-phase]") {
  Place place;
  TrialJobForm form = trial_form(3, "parameters parameters metric 1 parameters exit 0");
  form.environment["MULTI_PHASE"] = "true";
  {
    platforms::Local before = place.local();
    co_await before.start(ctx);
    co_await submit(before, form);
    co_await before.send(run_of(3), Parameters(R"({"x": 1.5})"));
    const TrialMessage message = co_await before.next_message();
    co_await before.acknowledge(message.receipt);
  }

  platforms::Local local = place.local();
  co_await local.start(ctx);
  std::vector<Intent> intents;
  intents.push_back(intent_of(run_of(3)));
  co_await local.adopt(std::move(intents));
  co_await local.send(run_of(3), Parameters(R"({"x": 2.5})"));
  const JobEnded end = co_await next_end(local);
  co_await local.clean_up();

  CHECK(end.end.succeeded());
  const std::string asked = place.read(place.trial(run_of(3)) / "trial.stdout");
  const std::string last = asked.substr(asked.find("1.5"));
  CHECK_THAT(last, Catch::Contains(R"(\"parameter_id\": 2)") && Catch::Contains(R"(\"parameter_index\": 2)"));
  CHECK_THAT(last, Catch::Contains("2.5"));
}

CO_TEST_CASE("local: a second manager is refused and told who is there", "[local][adoption]") {
  Place place;
  platforms::Local first = place.local();
  co_await first.start(ctx);
  platforms::Local second = place.local();

  std::string refusal;
  try {
    co_await second.start(ctx);
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::in_use));
    refusal = error.what();
  }
  co_await second.clean_up();

  CHECK(refusal.find("process " + std::to_string(::getpid())) != std::string::npos);
  co_await submit(first, trial_form(1, "exit 0"));  // the first one notices nothing
  const JobEnded end = co_await next_end(first);
  CHECK(end.end.succeeded());
  co_await first.clean_up();
}

CO_TEST_CASE("local: trials that no record knows are ended by the next manager", "[local][adoption]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(ctx, place, 1, "keep", {program("local_trial").string(), "tell", there.path(), "stop"});
    co_await there.told();
    manager.kill();
  }
  const std::vector<process::Identity> before = place.processes();
  REQUIRE(before.size() == 1);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await local.adopt(std::vector<Intent>());
  co_await ended(ctx, before[0].pid);

  CHECK(place.processes().empty());
  co_await local.clean_up();
}
