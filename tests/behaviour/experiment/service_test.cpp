// What an experiment owes to its training service, and what it makes of one that breaks a promise: nothing hangs, and
// nothing that was recorded is lost.

#include "support/co_test.hpp"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

#include "desk.hpp"

using namespace nni;
using namespace nni_test;

CO_TEST_CASE("experiment: a platform gets no more submissions at a time than it takes", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 3;
  Experiment experiment{
      options(20, 10), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 20);
  CHECK(desk->most == 3);
}

CO_TEST_CASE("experiment: a cancellation that comes while its run is submitted follows the submission",
             "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 4;
  desk->holds = true;
  desk->ends = false;
  Experiment experiment{
      options(1, 1), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  bool asked = false;
  experiment.observe(Observer{.on_progress = [&](const Progress&) {
    if (desk->inside == 0 || std::exchange(asked, true)) return;
    control.cancel(TrialId{1});
    boost::asio::co_spawn(ctx.executor(), let_go(ctx, desk), boost::asio::detached);
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(asked);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 1);
  CHECK(desk->cancelled.size() == 1);
}

CO_TEST_CASE(
    "experiment: at a stop live trials are stopped beside each other, no more at a time than the platform takes",
    "[experiment][service][stop]") {
  const auto desk = std::make_shared<Desk>();
  desk->max_in_flight = 4;
  desk->ends = false;
  Experiment experiment{
      options(6, 6), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 6) control.stop();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.status == ExperimentStatus::stopped);
  CHECK(desk->cancelled.size() == 6);
  CHECK(desk->most_stopping == 4);
}

CO_TEST_CASE(
    "experiment: a value is acknowledged while a platform that takes one request at a time is busy with another",
    "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->ends = false;
  Experiment experiment{
      options(2, 1), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  bool asked = false;
  bool reported = false;
  std::size_t acknowledged = 0;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 1 && !std::exchange(asked, true)) {
      desk->holds = true;
      control.set_concurrency(2);
    }
    if (desk->holds && desk->inside == 1 && !std::exchange(reported, true)) {
      const Metric value(RunId{TrialId{1}, 0}, MetricKind::intermediate, 0, "0.5", long_ago);
      desk->messages.emplace_back(value, Receipt{1});
      desk->changed.notify();
    }
    if (desk->acknowledged == 0 || !desk->holds) return;
    acknowledged = desk->acknowledged;
    desk->holds = false;
    desk->changed.notify();
    control.stop();
  }});

  auto running = experiment.async_run(ctx);
  co_await std::move(running);

  CHECK(acknowledged == 1);
}

CO_TEST_CASE("experiment: a run whose messages take their time keeps back no other's end", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->unsettled.insert(RunId{TrialId{1}, 0});
  Experiment experiment{
      options(6, 3), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  std::vector<std::uint64_t> ended;
  experiment.observe(Observer{.on_trial_ended = [&](const TrialJobDetail& trial) {
    ended.push_back(trial.trial.number);
    if (ended.size() != 5) return;
    desk->unsettled.clear();
    desk->changed.notify();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 6);
  REQUIRE(ended.size() == 6);
  CHECK(ended.back() == 1);
}

CO_TEST_CASE("experiment: while its last trials run there are no more, with NNI's name for that",
             "[experiment][service][status]") {
  const bool by_tuner = GENERATE(false, true);
  const auto desk = std::make_shared<Desk>();
  desk->unsettled.insert(RunId{TrialId{3}, 0});
  ExperimentOptions settings = options(3, 4);
  if (by_tuner) settings.max_trials.reset();
  const SearchSpace space = by_tuner ? SearchSpace{choice("kind", {"a", "b", "c"})} : line();
  Experiment experiment{
      settings, Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{space, seed(1)}};
  const ExperimentStatus expected = by_tuner ? ExperimentStatus::tuner_no_more_trial : ExperimentStatus::no_more_trial;
  std::set<ExperimentStatus> shown;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    shown.insert(now.status);
    if (now.status != expected || now.finished != 2) return;
    desk->unsettled.clear();
    desk->changed.notify();
  }});

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(shown == std::set<ExperimentStatus>{ExperimentStatus::running, expected});
}

CO_TEST_CASE("experiment: why a platform kept a run waiting is forgotten when the run has begun",
             "[experiment][service][status]") {
  const auto desk = std::make_shared<Desk>();
  desk->ends = false;
  desk->queued = "three jobs are before it";
  Experiment experiment{
      options(1, 1), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  std::optional<std::string> reason;
  experiment.observe(Observer{.on_progress = [&](const Progress& now) {
    if (now.running == 0 || reason) return;
    reason = now.waiting_reason;
    control.stop();
  }});

  auto running = experiment.async_run(ctx);
  co_await std::move(running);

  CHECK(reason == "");
}

CO_TEST_CASE("experiment: one whose runs cannot start ends with the reason, and may be mended and resumed",
             "[experiment][service][start]") {
  const auto desk = std::make_shared<Desk>();
  desk->gives_up = true;
  const auto kept = std::make_shared<datastore::Memory>();
  ExperimentOptions settings = options(1, 3);
  settings.id = "abc";
  settings.max_trials.reset();
  settings.max_failed_starts = 5;
  std::string reason;
  try {
    Experiment experiment{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};
    auto running = experiment.async_run(ctx);
    co_await std::move(running);
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::spawn_failed));
    reason = error.what();
  }

  CHECK_THAT(reason, Catch::Contains("5 runs in a row") && Catch::Contains("the line is dead"));
  auto opening = kept->open(ctx, ExperimentId("abc"));
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  auto closing = kept->close();
  co_await std::move(closing);
  CHECK(snapshot.profile.status == ExperimentStatus::error);
  CHECK_THAT(snapshot.profile.message, Catch::Contains("the line is dead"));
  CHECK(snapshot.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] >= 5);
  CHECK(snapshot.trials <= 8);

  desk->gives_up = false;
  settings.resume = Resume::always;
  settings.max_trials = 10;
  Experiment again{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};
  auto running = again.async_run(ctx);
  const Summary summary = co_await std::move(running);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 10);
}

CO_TEST_CASE("experiment: a submission that its platform cancels itself fails the trial", "[experiment][service]") {
  for (std::size_t in_flight = 1; in_flight <= 4; in_flight += 3) {
    const auto desk = std::make_shared<Desk>();
    desk->max_in_flight = in_flight;
    desk->gives_up = true;
    Experiment experiment{
        options(2, 2), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};

    auto running = experiment.async_run(ctx);
    const Summary summary = co_await std::move(running);

    CHECK(summary.count(TrialJobStatus::failed) == 2);
    CHECK_THAT(summary.failures.front().message, Catch::Contains("the line is dead"));
  }
}

CO_TEST_CASE("experiment: a platform whose events end by themselves ends it with a reason", "[experiment][service]") {
  const auto desk = std::make_shared<Desk>();
  desk->stops_events = true;
  Experiment experiment{
      options(2, 2), Platform{desk}, Shared{std::make_shared<datastore::Memory>()}, tuning::Random{line(), seed(1)}};

  auto running = reason_of_end(experiment, ctx);
  const std::string reason = co_await std::move(running);

  CHECK_THAT(reason, Catch::Contains("events of the training service"));
}
