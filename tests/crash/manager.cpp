// The manager of the crash tests, and its own keeper.
//
//   crash_manager DIRECTORY SESSION TRIALS CONCURRENCY STORE TUNER SABOTAGE TRIAL [ARGUMENT...]
//
// Runs or resumes the experiment `crash` below DIRECTORY. SESSION counts the starts of this program, from 0. STORE is
// `sqlite`, `journal` or `memory`, with which each start is a new experiment that draws other numbers; TUNER is `random`,
// `grid` or `tpe`; SABOTAGE is `none`, `no_intent`, `no_sync` or `no_deduplication`. What the tuner is told is appended to
// DIRECTORY/tuner, a line each: session, trial, value. On standard output: `begun NANOSECONDS ADOPTED` (the monotonic
// clock), `ended SEQUENCE VALUE PARAMETERS` for each trial, `done STATUS ORDERED FINISHED SUCCEEDED`. The variable
// NNI_CRASH_KEEPER names the keeper's program; without it this program is the keeper.
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/keeper/run_if_asked.hpp>

#include "crash/sabotage.hpp"
#include "crash/search.hpp"

namespace {

nni_test::Sabotage parse_sabotage(std::string_view name) {
  nni_test::Sabotage sabotage;
  sabotage.no_intent = name == "no_intent";
  sabotage.no_sync = name == "no_sync";
  sabotage.no_deduplication = name == "no_deduplication";
  return sabotage;
}

void print(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

template <class Store>
int run(Store store, char** argv, int argc) {
  const std::string directory = argv[1];
  const auto session = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  const nni_test::Sabotage sabotage = parse_sabotage(argv[7]);
  nni::ExperimentOptions options;
  options.id = "crash";
  options.directory = directory;
  options.resume = nni::Resume::if_exists;
  options.concurrency = std::strtoul(argv[4], nullptr, 10);
  options.max_trials = std::strtoul(argv[3], nullptr, 10);
  options.trial_command = nni::Command(std::vector<std::string>(argv + 8, argv + argc));
  options.log = [](nni::LogLevel level, std::string_view module, std::string_view text) {
    std::fprintf(stderr, "%s (%s) %s\n", std::string(nni::to_string(level)).c_str(), std::string(module).c_str(),
                 std::string(text).c_str());
  };
  const char* const keeper = std::getenv("NNI_CRASH_KEEPER");
  const std::uint64_t seed = std::same_as<Store, nni::datastore::Memory> ? 11 + session : 11;
  nni::Experiment experiment{
      std::move(options),
      nni_test::CrashService{
          {.launch = nni::platforms::Launch::keeper, .keeper = keeper ? keeper : "/proc/self/exe"}, sabotage, session},
      nni_test::CrashStore<Store>{std::move(store), sabotage},
      nni_test::AccountingTuner{nni_test::crash_tuner(argv[6], seed), directory + "/tuner", argv[2]}};
  nni::Observer observer;
  observer.on_start = [](const nni::ExperimentStart& start) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    print("begun " + std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + " " +
          std::to_string(start.adopted));
  };
  observer.on_trial_ended = [](const nni::TrialJobDetail& trial) {
    print("ended " + std::to_string(trial.trial.sequence()) + " " + trial.final_value.value_or("none") + " " +
          trial.parameters.text());
  };
  experiment.observe(std::move(observer));
  const nni::Summary summary = experiment.run();
  print("done " + std::string(nni::to_string(summary.status)) + " " + std::to_string(summary.ordered) + " " +
        std::to_string(summary.finished) + " " + std::to_string(summary.count(nni::TrialJobStatus::succeeded)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  if (argc < 9) return 2;
  try {
    if (std::string_view(argv[5]) == "memory") return run(nni::datastore::Memory{}, argv, argc);
    if (std::string_view(argv[5]) == "journal") return run(nni::datastore::Journal{{.directory = argv[1]}}, argv, argc);
    return run(nni::datastore::Sqlite{{.directory = argv[1]}}, argv, argc);
  } catch (const std::exception& error) {
    print(std::string("failed ") + error.what());
    return 1;
  }
}
