// What becomes of the values of a process that is stopped, loses its keeper, or reports in no order.

#include "behaviour/local/harness.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>

#include "support/temporary_directory.hpp"

using namespace nni;
using namespace nni_test;

namespace {

/// One trial, a helper program, with records in a directory.
ExperimentOptions one_trial(const TemporaryDirectory& records, const std::string& words) {
  ExperimentOptions options;
  options.id = "one";
  options.directory = records.path();
  options.resume = Resume::if_exists;
  options.max_trials = 1;
  options.trial_command = trial_form(1, words).command;
  options.handle_signals = false;
  return options;
}

platforms::Local local_in(const Place& place, platforms::Launch launch) {
  platforms::LocalOptions options;
  options.directory = place.path();
  options.launch = launch;
  return platforms::Local(options);
}

tuning::Random any_tuner() { return tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}; }

awaitable<void> when_told(Fifo& fifo, std::function<void()> act) {
  auto telling = fifo.told();
  co_await std::move(telling);
  act();
}

/// Runs the experiment of `one_trial`, and does something when its trial tells.
awaitable<Summary> run_one(Context& ctx, ExperimentOptions options, platforms::Local service, Fifo* fifo,
                           std::function<void(const Control&)> act) {
  Experiment experiment{std::move(options), std::move(service), datastore::Sqlite{}, any_tuner()};
  const Control control = experiment.control();
  const std::function<void()> acting = [&act, &control] { act(control); };
  if (fifo) boost::asio::co_spawn(ctx.executor(), when_told(*fifo, acting), boost::asio::detached);
  auto running = experiment.async_run(ctx);
  co_return co_await std::move(running);
}

void check_only_trial(const Summary& summary, TrialJobStatus status, const char* value) {
  REQUIRE(summary.trials.size() == 1);
  CHECK(summary.trials[0].status == status);
  CHECK(summary.trials[0].final_value == value);
  CHECK(summary.trials[0].attempts == 1);
  CHECK((summary.best() != nullptr) == (status == TrialJobStatus::succeeded));
}

}  // namespace

CO_TEST_CASE("local: a run that loses its keeper after its final value was acknowledged is over with that value",
             "[local][keeper]") {
  Place place;
  TemporaryDirectory records;
  Fifo there(ctx, place, "there");
  const ExperimentOptions options = one_trial(records, "final 0.5 tell " + there.path() + " stop");
  const auto kill_keeper = [&place](const Control&) { ::kill(place.keeper(), SIGKILL); };

  auto running = run_one(ctx, options, local_in(place, platforms::Launch::keeper), &there, kill_keeper);
  const Summary summary = co_await std::move(running);

  check_only_trial(summary, TrialJobStatus::succeeded, "0.5");
  CHECK_THAT(summary.trials[0].message, Catch::StartsWith("its final value was recorded before its end: "));
}

LAUNCH_TEST_CASE("local: a run that is stopped with the experiment after its final value is over, also for a resume",
                 "[local][resume]") {
  Place place;
  TemporaryDirectory records;
  Fifo there(ctx, place, "there");
  const ExperimentOptions options = one_trial(records, "final 0.5 tell " + there.path() + " stop");
  const auto stop = [](const Control& control) { control.stop(); };

  auto running = run_one(ctx, options, local_in(place, launch), &there, stop);
  const Summary summary = co_await std::move(running);
  auto resuming = run_one(ctx, options, local_in(place, launch), nullptr, {});
  const Summary resumed = co_await std::move(resuming);

  check_only_trial(summary, TrialJobStatus::succeeded, "0.5");
  check_only_trial(resumed, TrialJobStatus::succeeded, "0.5");
}

LAUNCH_TEST_CASE("local: a process that reports its final value when it is told to stop, and exits with 0",
                 "[local][control]") {
  Place place;
  TemporaryDirectory records;
  Fifo there(ctx, place, "there");
  const ExperimentOptions options =
      one_trial(records, "defer metric 1 tell " + there.path() + " leave final 0.5 exit 0");
  std::function<void(const Control&)> act;
  TrialJobStatus expected = TrialJobStatus::unknown;
  SECTION("keeps it, and the status of the reason, when the user stopped it") {
    act = [](const Control& control) { control.cancel(TrialId{1}); };
    expected = TrialJobStatus::user_canceled;
  }
  SECTION("has succeeded with it when the experiment stopped") {
    act = [](const Control& control) { control.stop(); };
    expected = TrialJobStatus::succeeded;
  }

  auto running = run_one(ctx, options, local_in(place, launch), &there, act);
  const Summary summary = co_await std::move(running);

  check_only_trial(summary, expected, "0.5");
  CHECK(summary.trials[0].exit_code == 0);
}

LAUNCH_TEST_CASE("local: every value that was acknowledged is kept, in the order of arrival and each once", "[local]") {
  Place place;
  TemporaryDirectory records;
  const ExperimentOptions options =
      one_trial(records, "value 1 1.0 value 0 0.0 value 3 3.0 value 0 5.0 value 0 0.0 value 2 2.0 final 7 final 8");

  auto running = run_one(ctx, options, local_in(place, launch), nullptr, {});
  const Summary summary = co_await std::move(running);

  CHECK(summary.count(TrialJobStatus::succeeded) == 1);
  datastore::Sqlite store{{.directory = records.path(), .read_only = true}};
  auto opening = store.open(ctx, ExperimentId("one"));
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  auto listing = store.metrics(TrialId{1});
  const std::vector<Metric> metrics = co_await std::move(listing);
  std::string values;
  for (const Metric& metric : metrics) values += metric.value + " ";
  auto closing = store.close();
  co_await std::move(closing);
  CHECK(values == "1.0 0.0 3.0 5.0 2.0 7 8 ");
  CHECK(snapshot.trials == 1);
}
