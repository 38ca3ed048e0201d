// Tunes a Python program that uses NNI's own trial library, unchanged.
//
//   python_trial [PYTHON [TRIALS]]
//
// PYTHON is an interpreter with NNI 3.0, by default python3; scripts/install_python_nni.sh installs one and prints its path.

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
#include <nni/tuning/tpe.hpp>

int main(int argc, char** argv) try {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const std::string python = argc > 1 ? argv[1] : "python3";
  const std::uint64_t trials = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20;
  const auto script = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "python_trial.py";

  nni::SearchSpace space{nni::loguniform("learning_rate", 1e-3, 1.0), nni::uniform("momentum", 0.0, 0.99)};
  nni::Experiment experiment{
      nni::ExperimentOptions{
          .name = "python trials",
          .direction = nni::minimize,
          .concurrency = 2,
          .max_trials = trials,
          .trial_command = std::vector<std::string>{python, script.string()}},
      nni::platforms::Local{}, nni::tuning::Tpe{space, nni::seed(1)}};

  const nni::Summary summary = experiment.run();
  for (const nni::TrialJobDetail& failed : summary.failures)
    std::cerr << nni::console::describe_trial(failed.trial) << " failed: " << nni::console::describe_end(failed)
              << (failed.working_directory.empty() ? "" : ", see " + failed.working_directory) << '\n';
  if (!summary.best()) {
    std::cerr << "no trial succeeded; does \"" << python << " -c 'import nni'\" work?\n";
    return 1;
  }
  std::cout << "best of " << summary.finished << " trials: loss " << *summary.best()->final_value << " with "
            << summary.best()->parameters << '\n';
} catch (const std::exception& error) {
  std::cerr << "python_trial: " << error.what() << '\n';
  return 2;
}
