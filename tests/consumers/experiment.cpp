// What a user's project does first: an experiment over a callable. Exit code 0 means that it found the minimum's side.
#include <cstdio>

#include <nni/nni.hpp>

int main() {
  nni::SearchSpace space{nni::uniform("x", -5.0, 5.0)};
  nni::Experiment experiment{
      nni::ExperimentOptions{.name = "consumer", .direction = nni::minimize, .concurrency = 2, .max_trials = 20},
      nni::platforms::InProcess{[](nni::TrialHandle& trial) {
        const double x = trial.parameter<double>("x");
        trial.report_final_result(x * x);
      }},
      nni::tuning::Random{space, nni::seed(1)}};

  const nni::Summary summary = experiment.run();
  std::printf("%llu trials\n", static_cast<unsigned long long>(summary.finished));
  return summary.finished == 20 && summary.best() ? 0 : 1;
}
