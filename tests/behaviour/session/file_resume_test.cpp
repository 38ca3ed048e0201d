// The legacy file channel over a resume: what a trial wrote while no manager was there is heard, once.

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nni/async/event.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/session/training_session.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/transport/file_tail.hpp>

using namespace nni;

namespace {

/// A platform whose only job ended while nobody was there.
class Ended {
 public:
  using role = role::training_service;
  using mount_type = HostPath;
  static constexpr std::string_view platform = "ended";

  Capabilities capabilities() const noexcept { return {}; }
  awaitable<void> start(Context&) {
    never_ = std::make_unique<async::event>();
    co_return;
  }
  awaitable<ResourceSnapshot> resources() { co_return ResourceSnapshot(); }
  awaitable<JobId> submit_trial_job(TrialJobForm) { co_return JobId("job"); }
  awaitable<void> cancel_trial_job(RunId, StopReason) { co_return; }
  awaitable<JobEvent> next_event() {
    auto never = never_->wait();
    co_await std::move(never);
    co_return JobEvent{};
  }
  awaitable<void> clean_up() { co_return; }
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs) {
    std::vector<JobReport> reports;
    for (const Intent& intent : runs) {
      JobReport& report = reports.emplace_back(intent.run, JobReport::State::ended);
      report.end = JobEnd(EndKind::exited, 0);
      report.ended = from_epoch_ms(5000);
    }
    co_return reports;
  }

 private:
  std::unique_ptr<async::event> never_;
};
static_assert(ResumableService<Ended>);

constexpr RunId run{TrialId{1}, 0};

std::string record(MetricKind kind, std::uint32_t sequence, const std::string& value) {
  const std::string payload = channel::encode(channel::MetricPayload(kind, sequence, value));
  const std::string length = std::to_string(payload.size() + 1);
  return "ME" + std::string(6 - length.size(), '0') + length + payload + "\n";
}

// What a manager had recorded before it was killed: a run, and two of its values.
awaitable<void> record_first_manager(Context& context, std::filesystem::path directory) {
  datastore::Sqlite store({.directory = directory});
  store.set_experiment_directory(directory / "exp", ExperimentId("exp"));
  auto opening = store.open(context, ExperimentId("exp"));
  const ExperimentSnapshot nothing = co_await std::move(opening);
  CHECK_FALSE(nothing.exists);
  std::vector<StoreEvent> events;
  ProfileChanged profile;
  profile.id = ExperimentId("exp");
  profile.status = ExperimentStatus::running;
  events.emplace_back(profile);
  events.emplace_back(TrialOrdered(run.trial, ParameterId{0}, Parameters(), from_epoch_ms(1000)));
  events.emplace_back(RunIntended(run, Placement(), from_epoch_ms(1000)));
  events.emplace_back(RunStarted(JobStarted(run, JobId("job"), from_epoch_ms(2000))));
  for (std::uint32_t index = 0; index < 2; ++index)
    events.emplace_back(MetricReceived(
        Metric(run, MetricKind::intermediate, index, std::to_string(index) + ".0", from_epoch_ms(3000))));
  store.append(events);
  auto closing = store.close();
  co_await std::move(closing);
}

awaitable<std::vector<Metric>> metrics_of(Context& context, std::filesystem::path directory) {
  datastore::Sqlite store({.directory = directory});
  store.set_experiment_directory(directory / "exp", ExperimentId("exp"));
  auto opening = store.open(context, ExperimentId("exp"));
  co_await std::move(opening);
  auto reading = store.metrics(run.trial);
  std::vector<Metric> metrics = co_await std::move(reading);
  auto closing = store.close();
  co_await std::move(closing);
  co_return metrics;
}

}  // namespace

TEST_CASE("session: what a run left in its file while no manager was there is heard once, before its end",
          "[session][file_tail]") {
  const nni_test::TemporaryDirectory place;
  std::filesystem::create_directories(place.path() / "exp");
  {
    Runtime runtime;
    runtime.run(record_first_manager(runtime.context(), place.path()));
  }
  const std::filesystem::path files = place.path() / "files/trials" / to_string(run) / ".nni";
  std::filesystem::create_directories(files);
  {
    std::ofstream file(files / "metrics", std::ios::binary);
    for (std::uint32_t index = 0; index < 4; ++index)
      file << record(MetricKind::intermediate, index, std::to_string(index) + ".0");
    file << record(MetricKind::final, 0, "9.0");
  }

  TrainingSessionOptions options;
  options.id = "exp";
  options.directory = place.path();
  options.resume = Resume::always;
  options.trial_command = "true";
  options.handle_signals = false;
  TrainingSession session{
      options, Ended{}, transport::FileTail{}, storage::LocalDirectory({.root = place.path() / "files"}),
      datastore::Sqlite({.directory = place.path()})};
  std::vector<std::string> heard;
  const Subscription metrics =
      session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) { heard.push_back(metric.value()); });
  const Subscription changes = session.add_trial_job_status_listener([&](const TrialJobDetail& detail) {
    heard.emplace_back(to_string(detail.status));
  });
  const TrialJobDetail end = session.wait_trial_job(run.trial);
  session.clean_up();

  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(end.final_value == "9.0");
  CHECK(heard == std::vector<std::string>{"2.0", "3.0", "9.0", "SUCCEEDED"});
  Runtime runtime;
  std::string kept;
  for (const Metric& metric : runtime.run(metrics_of(runtime.context(), place.path()))) kept += metric.value + " ";
  CHECK(kept == "0.0 1.0 2.0 3.0 9.0 ");
}
