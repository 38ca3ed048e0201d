// An experiment over callables that keeps a journal and kills itself, for tests of what is left then.
//
//   journal_manager DIRECTORY TRIALS KILL_AT
//
// KILL_AT is the number of values reported by this process after which it dies with SIGKILL; 0: never.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include <unistd.h>

#include <nni/datastore/journal.hpp>
#include <nni/nni.hpp>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long kill_at = std::strtol(argv[3], nullptr, 10);
  std::atomic<long> reported = 0;
  try {
    nni::Experiment experiment{
        nni::ExperimentOptions{
            .id = "parabola",
            .directory = argv[1],
            .resume = nni::Resume::if_exists,
            .concurrency = 2,
            .max_trials = std::strtoull(argv[2], nullptr, 10),
            .handle_signals = false},
        nni::platforms::InProcess{[&reported, kill_at](nni::TrialHandle& trial) {
          const double x = trial.parameter<double>("x");
          trial.report_intermediate_result(x);
          if (++reported == kill_at) ::kill(::getpid(), SIGKILL);
          trial.report_final_result(x * x);
        }},
        nni::datastore::Journal{}, nni::tuning::Random{{nni::uniform("x", -1.0, 1.0)}, nni::seed(5)}};
    const nni::Summary summary = experiment.run();
    std::printf("%llu\n", static_cast<unsigned long long>(summary.finished));
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
