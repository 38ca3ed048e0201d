#include "support/catch.hpp"
#include "support/paths.hpp"
#include "support/python_nni.hpp"
#include "support/temporary_directory.hpp"

#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>
#include <nni/transport/http.hpp>

using namespace nni;

namespace {

ExperimentOptions options_for(const std::string& python, const std::filesystem::path& directory, std::uint64_t trials) {
  ExperimentOptions options;
  options.directory = directory;
  options.direction = maximize;
  options.concurrency = 4;
  options.max_trials = trials;
  options.trial_command =
      std::vector<std::string>{python, (nni_test::source_dir() / "tests/wire/python_trial/identity.py").string()};
  options.environment = {{"OPENBLAS_NUM_THREADS", "1"}, {"no_proxy", "localhost"}, {"NO_PROXY", "localhost"}};
  options.handle_signals = false;
  return options;
}

void check_results(const Summary& summary, std::uint64_t trials) {
  CHECK(summary.finished == trials);
  CHECK(summary.garbage_messages == 0);
  for (const TrialJobDetail& failed : summary.failures)
    FAIL_CHECK(to_string(failed.trial) + " failed: " + failed.message);
  REQUIRE(summary.trials.size() == trials);
  for (const TrialJobDetail& trial : summary.trials) {
    INFO(to_string(trial.trial) << " " << trial.parameters);
    CHECK(trial.status == TrialJobStatus::succeeded);
    CHECK(final_number(trial) == trial.parameters.get<double>("x"));  // nobody ran with the parameters of another
  }
}

}  // namespace

TEST_CASE("python trial: fifty of them through the keeper, each with its own parameters", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  platforms::LocalOptions local;
  local.launch = platforms::Launch::keeper;
  local.keeper = nni_test::program("nni-keeper").string();
  Experiment experiment(options_for(python, directory.path(), 50), platforms::Local(local),
                        tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)});

  check_results(experiment.run(), 50);
}

TEST_CASE("python trial: the manager serves the channel itself where there is no keeper", "[python]") {
  const std::string python = nni_test::python_with_nni();
  if (python.empty()) NNI_SKIP_OR_FAIL(nni_test::no_python_nni);
  const nni_test::TemporaryDirectory directory;
  platforms::LocalOptions local;
  local.launch = platforms::Launch::direct;
  Experiment experiment(options_for(python, directory.path(), 8), platforms::Local(local), transport::Http{},
                        tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(2)});

  check_results(experiment.run(), 8);
}
