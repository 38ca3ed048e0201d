// Tunes a shell script: trial.sh, next to the program under the name shell_trial.sh.
//
//   shell_trial [TRIALS]

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <nni/console/screen.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

int main(int argc, char** argv) try {
  // Without an installed nni-keeper, this program is started in its place, by the library and by trials.
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const std::uint64_t trials = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8;
  const auto script = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "shell_trial.sh";

  nni::SearchSpace space{nni::loguniform("rate", 0.01, 1.0), nni::uniform("start", -1.0, 1.0)};
  nni::Experiment experiment{
      nni::ExperimentOptions{
          .name = "shell trials",
          .direction = nni::minimize,
          .concurrency = 2,
          .max_trials = trials,
          .trial_command = std::vector<std::string>{"/bin/sh", script.string()}},
      nni::platforms::Local{}, nni::tuning::Random{space, nni::seed(1)}};

  const nni::Summary summary = experiment.run();
  for (const nni::TrialJobDetail& failed : summary.failures)
    std::cerr << nni::console::describe_trial(failed.trial) << " failed: " << nni::console::describe_end(failed)
              << '\n';
  if (!summary.best()) return 1;
  std::cout << "best of " << summary.finished << " trials: loss " << *summary.best()->final_value << " with "
            << summary.best()->parameters << '\n';
} catch (const std::exception& error) {
  std::cerr << "shell_trial: " << error.what() << '\n';
  return 2;
}
