// NNI's unmodified Python library as the writer of the legacy metrics file.

#include "support/catch.hpp"
#include "support/paths.hpp"
#include "support/python_nni.hpp"
#include "support/temporary_directory.hpp"

#include <future>
#include <string>
#include <vector>

#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>
#include <nni/session/training_session.hpp>
#include <nni/transport/file_tail.hpp>

using namespace nni;

namespace {

Command script(const std::string& python, const char* name) {
  return std::vector<std::string>{python, (nni_test::source_dir() / "tests/wire/python_trial" / name).string()};
}

platforms::Local local() {
  platforms::LocalOptions options;
  options.launch = platforms::Launch::keeper;
  options.keeper = nni_test::program("nni-keeper").string();
  return platforms::Local(options);
}

}  // namespace

TEST_CASE("python trial: the library reports into files, each trial with its own parameters", "[python][file_tail]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  ExperimentOptions options;
  options.directory = directory.path();
  options.concurrency = 2;
  options.max_trials = 6;
  options.trial_command = script(python, "identity.py");
  options.environment = {{"OPENBLAS_NUM_THREADS", "1"}};
  options.handle_signals = false;
  Experiment experiment(
      options, local(), transport::FileTail{}, tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(3)});

  const Summary summary = experiment.run();

  CHECK(summary.finished == 6);
  CHECK(summary.garbage_messages == 0);
  REQUIRE(summary.trials.size() == 6);
  for (const TrialJobDetail& trial : summary.trials) {
    INFO(trial.message);
    CHECK(trial.status == TrialJobStatus::succeeded);
    CHECK(final_number(trial) == trial.parameters.get<double>("x"));
  }
}

TEST_CASE("python trial: the library finds further parameters in files", "[python][file_tail]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  TrainingSessionOptions options;
  options.directory = directory.path();
  options.multi_phase = true;
  options.trial_command = script(python, "phases.py");
  options.environment = {{"OPENBLAS_NUM_THREADS", "1"}};
  TrainingSession session{options, local(), transport::FileTail{}};
  std::vector<std::string> heard;
  const Subscription metrics =
      session.add_trial_job_metric_listener([&](const TrialJobMetric& metric) { heard.push_back(metric.value()); });
  const auto x_is = [](double x) { return ParametersWriter{}.add("x", x).finish(); };

  const TrialId trial = session.submit_trial_job(x_is(1.5)).trial;
  session.update_trial_job(trial, x_is(2.5));
  session.update_trial_job(trial, x_is(-3.5));
  const TrialJobDetail end = session.wait_trial_job(trial);
  session.clean_up();

  INFO(end.message);
  CHECK(end.status == TrialJobStatus::succeeded);
  CHECK(heard == std::vector<std::string>{"1.5", "2.5", "-3.5"});
}
