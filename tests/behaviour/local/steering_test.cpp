// Retries, cancels and changes of limits with processes as trials.

#include "support/catch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using namespace std::chrono_literals;

namespace {

platforms::Local local() {
  platforms::LocalOptions options;
  options.launch = platforms::Launch::keeper;
  options.keeper = nni_test::program("nni-keeper").string();
  return platforms::Local(options);
}

ExperimentOptions options(const std::filesystem::path& where, Command command) {
  ExperimentOptions options;
  options.id = "steered";
  options.directory = where;
  options.trial_command = std::move(command);
  options.handle_signals = false;
  return options;
}

}  // namespace

TEST_CASE("local: a trial that exits with an error is tried again after its pause", "[local][retry]") {
  const nni_test::TemporaryDirectory where;
  // It works the third time.
  const std::string counter = (where.path() / "counter").string();
  ExperimentOptions settings =
      options(where.path(), Command("echo x >> '" + counter + "'; [ $(wc -l < '" + counter + "') -ge 3 ] || exit 4"));
  settings.max_trials = 1;
  settings.max_retries = 5;
  settings.retry_on = RetryOn::failures;
  settings.retry_backoff = 1ms;
  Experiment experiment{settings, local(), tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}};

  const Summary summary = experiment.run();

  REQUIRE(summary.trials.size() == 1);
  CHECK(summary.trials[0].status == TrialJobStatus::succeeded);
  CHECK(summary.trials[0].attempts == 3);
}

TEST_CASE("local: a running process is cancelled by its trial, and a bigger concurrency starts others beside it",
          "[local][control]") {
  const nni_test::TemporaryDirectory where;
  ExperimentOptions settings = options(where.path(), Command({"sleep", "1000"}));
  settings.max_trials = 3;
  Experiment experiment{settings, local(), tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}};
  const Control control = experiment.control();
  std::size_t most = 0;
  experiment.observe(Observer{.on_progress = [&](const Progress& progress) {
    most = std::max(most, progress.running);
    if (progress.running == 1 && progress.ordered == 1) control.set_concurrency(3);
    if (progress.running == 3)
      for (std::uint64_t trial = 1; trial <= 3; ++trial) control.cancel(TrialId{trial});
  }});

  const Summary summary = experiment.run();

  CHECK(most == 3);
  CHECK(summary.count(TrialJobStatus::user_canceled) == 3);
}
