// The smallest experiment: a callable as the trial, random search, everything in this process.

#include <exception>
#include <iostream>

#include <nni/nni.hpp>

int main() try {
  nni::SearchSpace space{nni::uniform("x", -5.0, 5.0), nni::choice("kind", {"a", "b"})};

  nni::Experiment experiment{
      nni::ExperimentOptions{.name = "parabola", .direction = nni::minimize, .concurrency = 4, .max_trials = 40},
      nni::platforms::InProcess{[](nni::TrialHandle& trial) {
        const double x = trial.parameter<double>("x");
        trial.report_final_result((x - 2.0) * (x - 2.0));
      }},
      nni::tuning::Random{space, nni::seed(7)}};

  const nni::Summary summary = experiment.run();  // blocks; Ctrl-C stops cleanly
  std::cout << "best of " << summary.finished << " trials: " << summary.best_or_throw().parameters << '\n';
} catch (const std::exception& problem) {
  std::cerr << "01_quickstart: " << problem.what() << '\n';
  return 1;
}
