// A program with its own tuner: a small evolution strategy that uses the library only to run trials.
//
// It submits trials, listens to their results, stops unpromising ones early, and breeds from the best. The trials
// are calls of a function here; with nni::platforms::Local and a command they would be processes, without any other
// change.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nni/platforms/in_process.hpp>
#include <nni/session/training_session.hpp>

namespace {

constexpr int epochs = 12;

/// The trial: a simulated training whose loss converges to that of its parameters.
void train(nni::TrialHandle& trial) {
  const double x = trial.parameter<double>("x");
  const double y = trial.parameter<double>("y");
  const double loss = (1 - x) * (1 - x) + 10 * (y - x * x) * (y - x * x);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (trial.stop_requested()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the work
    trial.report_intermediate_result(loss + std::exp(-epoch));
  }
  trial.report_final_result(loss);
}

struct Individual {
  double x = 0;
  double y = 0;
  double loss = 0;
};

/// The best trials, and new candidates near them.
class Evolution {
 public:
  Individual child() {
    std::normal_distribution<double> step(0, step_);
    if (parents_.empty()) return {start_(random_), start_(random_), 0};
    const Individual& parent = parents_[std::uniform_int_distribution<std::size_t>(0, parents_.size() - 1)(random_)];
    return {parent.x + step(random_), parent.y + step(random_), 0};
  }

  void select(const std::vector<Individual>& children) {
    const bool better = !children.empty() && (parents_.empty() || children.front().loss < parents_.front().loss);
    step_ *= better ? 1.2 : 0.8;
    parents_.insert(parents_.end(), children.begin(), children.end());
    std::sort(parents_.begin(), parents_.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
    if (parents_.size() > 4) parents_.resize(4);
  }

  /// Returns the best trial; null while no trial has succeeded.
  const Individual* best() const { return parents_.empty() ? nullptr : &parents_.front(); }

 private:
  std::mt19937 random_{7};
  std::uniform_real_distribution<double> start_{-2, 2};
  double step_ = 0.5;
  std::vector<Individual> parents_;
};

}  // namespace

int main() try {
  nni::TrainingSession session{nni::TrainingSessionOptions{.concurrency = 4}, nni::platforms::InProcess{train}};

  // Listeners are called on the session's thread; calls of the session from there take effect at once.
  double hopeless = 1e9;
  const nni::Subscription watching = session.add_trial_job_metric_listener([&](const nni::TrialJobMetric& metric) {
    const bool bad = metric.scalar() && *metric.scalar() > hopeless + 1;
    if (bad && metric.kind() == nni::MetricKind::intermediate)
      session.cancel_trial_job(metric.id(), /*is_early_stopped=*/true);
    if (metric.kind() == nni::MetricKind::final && metric.scalar())
      hopeless = std::min(hopeless, 20 * *metric.scalar() + 1);
  });

  Evolution evolution;
  int stopped = 0;
  std::string problem;  // of the first trial without a result
  for (int generation = 0; generation < 30; ++generation) {
    std::vector<std::pair<nni::TrialId, Individual>> running;
    for (int number = 0; number < 8; ++number) {
      const Individual child = evolution.child();
      const nni::TrialJobDetail job =
          session.submit_trial_job(nni::ParametersWriter{}.add("x", child.x).add("y", child.y).finish());
      running.emplace_back(job.trial, child);
    }
    std::vector<Individual> finished;
    for (auto& [id, child] : running) {
      const nni::TrialJobDetail job = session.wait_trial_job(id);
      stopped += job.status == nni::TrialJobStatus::early_stopped ? 1 : 0;
      if (job.status == nni::TrialJobStatus::early_stopped) continue;
      if (const std::optional<double> loss = nni::final_number(job);
          loss && job.status == nni::TrialJobStatus::succeeded) {
        child.loss = *loss;
        finished.push_back(child);
      } else if (problem.empty()) {
        problem = job.message.empty() ? "it reported no number" : job.message;
      }
    }
    std::sort(finished.begin(), finished.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
    evolution.select(finished);
  }

  const std::size_t trials = session.list_trial_jobs().size();
  session.clean_up();
  const Individual* best = evolution.best();
  if (!best) {
    std::cerr << "own_tuner: none of " << trials << " trials has a result; the first failure: " << problem << '\n';
    return EXIT_FAILURE;
  }
  std::cout << trials << " trials, " << stopped << " of them stopped early; best loss " << best->loss
            << " at x = " << best->x << ", y = " << best->y << "\n";
  return best->loss < 0.05 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::cerr << "own_tuner: " << error.what() << '\n';
  return EXIT_FAILURE;
}
