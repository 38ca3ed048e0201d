// A platform that is away for a while costs nothing: what it could not start is submitted again, what it would not stop is
// asked for again, and only an outage that lasts ends the experiment, which can then be resumed.

#include "support/co_test.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/testing/flapping.hpp>
#include <nni/testing/manual_clock.hpp>

#include "desk.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using namespace nni_test;

namespace {

using Away = testing::Flapping<Platform>;

// A clock that moves when nothing else does, and the lines of the log.
struct Time {
  Time() : runtime(options()) { clock.attach(runtime.io()); }

  RuntimeOptions options() {
    RuntimeOptions result{.clock = clock};
    result.log = Log([this](LogLevel, std::string_view, std::string_view text) { (log += text) += "\n"; });
    return result;
  }

  std::string log;
  testing::ManualClock clock;
  Runtime runtime;
};

// As after a start that never reached the platform.
JobReport not_known(const Intent& intent) { return JobReport(intent.run, JobReport::State::never_started); }

}  // namespace

CO_TEST_CASE("experiment: a platform that is away for a while costs no trial, and why they wait is shown",
             "[experiment][outage]") {
  const TemporaryDirectory place;
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = GENERATE(1, 4);
  const auto outage = std::make_shared<testing::Outage>();
  outage->accepts = GENERATE(false, true);
  Experiment experiment{options(20, 4), Away{Platform{desk}, outage}, datastore::Sqlite{{.directory = place.path()}},
                        tuning::Random{line(), seed(1)}};
  std::set<std::string> reasons;
  std::string last;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.finished >= 5 && outage->starts + outage->requests == 0) outage->away = true;
    if (outage->starts + outage->requests >= 4) outage->away = false;
    reasons.insert(now.waiting_reason);
    last = now.waiting_reason;
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(outage->starts + outage->requests >= 4);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.ordered == 20);
  CHECK(summary.count(TrialJobStatus::succeeded) == 20);
  REQUIRE(summary.trials.size() == 20);
  for (const TrialJobDetail& trial : summary.trials) CHECK(trial.attempts == 1);
  CHECK(reasons.contains("no trial can be started for now, which is tried again: the platform is away"));
  CHECK(last.empty());
}

TEST_CASE("experiment: a platform that is away is tried again after pauses that grow from 0.1 s to 10 s",
          "[experiment][outage]") {
  Time time;
  const auto desk = std::make_shared<Desk>();
  const auto outage = std::make_shared<testing::Outage>();
  outage->away = true;
  Experiment experiment{options(1, 1), Away{Platform{desk}, outage}, Shared{std::make_shared<datastore::Memory>()},
                        tuning::Random{line(), seed(1)}};
  std::vector<Duration> pauses;
  std::size_t seen = 0;
  SteadyPoint before = time.clock.steady_now();
  experiment.observe(Observer{.on_progress = [&](const Progress&) {
    const std::size_t tries = outage->starts + outage->requests;
    if (tries == seen) return;
    seen = tries;
    pauses.push_back(time.clock.steady_now() - std::exchange(before, time.clock.steady_now()));
    if (tries == 11) outage->away = false;
  }});

  const Summary summary = time.clock.run(experiment.async_run(time.runtime.context()));

  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  const std::vector<Duration> expected{0ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 3200ms, 6400ms, 10s, 10s, 10s};
  CHECK(pauses == expected);
}

TEST_CASE("experiment: an outage that lasts ends it with the reason, and a resume runs every trial once",
          "[experiment][outage]") {
  Time time;
  const auto desk = std::make_shared<Desk>();
  desk->report = not_known;
  const auto outage = std::make_shared<testing::Outage>();
  outage->away = true;
  outage->accepts = GENERATE(false, true);
  const auto kept = std::make_shared<datastore::Memory>();
  ExperimentOptions settings = options(6, 3);
  settings.id = "abc";
  settings.resume = Resume::if_exists;
  settings.platform_outage_limit = 2min;
  Experiment first{settings, Away{Platform{desk}, outage}, Shared{kept}, tuning::Random{line(), seed(1)}};
  const SteadyPoint begin = time.clock.steady_now();

  const std::string reason = time.clock.run(reason_of_end(first, time.runtime.context()));
  const Duration took = time.clock.steady_now() - begin;
  outage->away = false;
  Experiment second{settings, Away{Platform{desk}, outage}, Shared{kept}, tuning::Random{line(), seed(1)}};
  const Summary summary = time.clock.run(second.async_run(time.runtime.context()));

  CHECK_THAT(
      reason, Catch::Contains("could start no trial for 2") && Catch::Contains("the platform is away") &&
                  Catch::Contains(".resume = nni::Resume::if_exists") && Catch::Contains(".platform_outage_limit"));
  CHECK(took >= 2min);
  CHECK(took < 3min);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.ordered == 6);
  CHECK(summary.count(TrialJobStatus::succeeded) == 6);
}

TEST_CASE("experiment: while other trials run an outage of starts ends nothing", "[experiment][outage]") {
  Time time;
  const auto desk = std::make_shared<Desk>();
  desk->ends = false;
  const auto outage = std::make_shared<testing::Outage>();
  ExperimentOptions settings = options(2, 1);
  settings.platform_outage_limit = 1min;
  Experiment experiment{settings, Away{Platform{desk}, outage}, Shared{std::make_shared<datastore::Memory>()},
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  const SteadyPoint begin = time.clock.steady_now();
  bool is_over = false;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (!is_over && now.running == 1 && !outage->away) {
      outage->away = true;
      control.set_concurrency(2);  // for a second one, which cannot be started
    }
    if (time.clock.steady_now() - begin >= 5min) {
      is_over = true;
      outage->away = false;
      desk->ends = true;
    }
    if (is_over && now.finished == 1) control.cancel(TrialId{1});
  }});

  const Summary summary = time.clock.run(experiment.async_run(time.runtime.context()));

  CHECK(outage->starts + outage->requests > 10);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
}

TEST_CASE("experiment: a cancellation that the platform refuses is asked for again, and ends no experiment",
          "[experiment][outage]") {
  Time time;
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = GENERATE(1, 4);
  desk->ends = false;
  const auto outage = std::make_shared<testing::Outage>();
  Experiment experiment{options(2, 1), Away{Platform{desk}, outage}, Shared{std::make_shared<datastore::Memory>()},
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::set<std::string> reasons;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 1 && now.finished == 0 && outage->cancels == 0) {
      outage->away = true;
      control.cancel(TrialId{1});
    }
    if (outage->cancels >= 4) {
      outage->away = false;
      desk->ends = true;
    }
    reasons.insert(now.waiting_reason);
  }});

  const Summary summary = time.clock.run(experiment.async_run(time.runtime.context()));

  CHECK(outage->cancels == 4);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  CHECK(std::any_of(reasons.begin(), reasons.end(), [](const std::string& reason) {
    return reason.find("cannot be stopped for now, which is tried again: the platform is away") != std::string::npos;
  }));
}

TEST_CASE("experiment: a stop says what it waits for, and does not wait for ever", "[experiment][outage][stop]") {
  Time time;
  const auto desk = std::make_shared<Desk>();
  desk->ends = false;
  const auto outage = std::make_shared<testing::Outage>();
  Experiment experiment{options(1, 1), Away{Platform{desk}, outage}, Shared{std::make_shared<datastore::Memory>()},
                        tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running != 1) return;
    outage->away = true;
    control.stop();
  }});
  const SteadyPoint begin = time.clock.steady_now();

  const Summary summary = time.clock.run(experiment.async_run(time.runtime.context()));

  CHECK(summary.status == ExperimentStatus::stopped);
  CHECK(time.clock.steady_now() - begin <= 61s);
  CHECK_THAT(
      time.log, Catch::Contains("stopping: 1 runs have not ended yet (the platform is away); it is waited for up to"));
  CHECK_THAT(time.log, Catch::Contains("it is not waited for any longer"));
}
