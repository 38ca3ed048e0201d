// What an experiment makes of runs that an earlier manager left on a platform.

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

CO_TEST_CASE("experiment: one whose runs cannot be adopted keeps everything that was recorded of it",
             "[experiment][service][resume]") {
  const auto kept = std::make_shared<datastore::Memory>();
  auto recording = record_first_manager(ctx, kept, 1);
  co_await std::move(recording);
  ExperimentOptions settings = options(4, 1);
  settings.id = "abc";
  settings.resume = Resume::always;
  Experiment experiment{settings, Platform{std::make_shared<Desk>()}, Shared{kept}, tuning::Random{line(), seed(1)}};

  auto running = reason_of_end(experiment, ctx);
  const std::string reason = co_await std::move(running);

  CHECK_THAT(reason, Catch::Contains("the cluster does not answer"));
  auto opening = kept->open(ctx, ExperimentId("abc"));
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  CHECK(snapshot.profile.status == ExperimentStatus::error);
  CHECK(snapshot.profile.id == ExperimentId("abc"));
  CHECK(snapshot.profile.name == "kept");
  CHECK(snapshot.profile.seed == 77);
  CHECK(snapshot.profile.start_time == long_ago);
  CHECK(snapshot.profile.exec_duration >= 5min);
  CHECK(snapshot.profile.exec_duration < 6min);
  REQUIRE(snapshot.unfinished.size() == 1);
  CHECK(snapshot.unfinished.front().open_run.has_value());
}

CO_TEST_CASE("experiment: a run that was lost with its manager after its final value was recorded is over with it",
             "[experiment][service][resume]") {
  const auto kept = std::make_shared<datastore::Memory>();
  auto recording = record_first_manager(ctx, kept, 1);
  co_await std::move(recording);
  auto opening = kept->open(ctx, ExperimentId("abc"));
  const ExperimentSnapshot before = co_await std::move(opening);
  const RunId run = before.unfinished.at(0).open_run.value().run;
  const std::vector<StoreEvent> result(1, MetricReceived(Metric(run, MetricKind::final, 0, "0.125", long_ago)));
  kept->append(result);
  auto closing = kept->close();
  co_await std::move(closing);
  const auto desk = std::make_shared<Desk>();
  desk->report = [](const Intent& intent) { return JobReport(intent.run, JobReport::State::unknown); };
  ExperimentOptions settings = options(1, 1);
  settings.id = "abc";
  settings.resume = Resume::always;
  Experiment experiment{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  REQUIRE(summary.best());
  CHECK(final_number(*summary.best()) == 0.125);
  CHECK(summary.best()->attempts == 1);
}

TEST_CASE("experiment: of adopted runs the one that has run longest reaches its limit first",
          "[experiment][service][resume][limits]") {
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  const auto kept = std::make_shared<datastore::Memory>();
  runtime.run(record_first_manager(runtime.context(), kept, 2));
  const auto desk = std::make_shared<Desk>();
  desk->report = [&clock](const Intent& intent) {
    JobReport report(intent.run, JobReport::State::running);
    report.started = clock.now() - (intent.run.trial.number == 1 ? 10min : 50min);
    return report;
  };
  ExperimentOptions settings = options(2, 2);
  settings.id = "abc";
  settings.resume = Resume::always;
  settings.max_trial_duration = 1h;
  Experiment experiment{settings, Platform{desk}, Shared{kept}, tuning::Random{line(), seed(1)}};

  const Summary summary = clock.run(experiment.async_run(runtime.context()));

  CHECK(summary.count(TrialJobStatus::early_stopped) == 2);
  REQUIRE(desk->cancelled.size() == 2);
  CHECK(desk->cancelled[0].run.trial == TrialId{2});
  CHECK(desk->cancelled[1].at - desk->cancelled[0].at == 40min);
}

CO_TEST_CASE("experiment: an advisor of the caller's is told the history of each trial after a resume",
             "[experiment][service][resume]") {
  const auto kept = std::make_shared<datastore::Memory>();
  auto recording = record_first_manager(ctx, kept, 1);
  co_await std::move(recording);
  auto ending = record_result(ctx, kept);
  co_await std::move(ending);
  ExperimentOptions settings = options(1, 1);
  settings.id = "abc";
  settings.resume = Resume::always;
  const auto lessons = std::make_shared<std::vector<Learner::Lesson>>();
  Experiment experiment{settings, Platform{std::make_shared<Desk>()}, Shared{kept}, Learner{lessons}};

  auto running = experiment.async_run(ctx);
  const Summary summary = co_await std::move(running);

  CHECK(summary.finished == 1);
  REQUIRE(lessons->size() == 1);
  CHECK(lessons->front().first.value == 0.125);
  CHECK(lessons->front().second == std::vector<double>{0.5, 0.25});
}
