// The manager of the crash tests, and its own keeper.
//
//   crash_manager DIRECTORY SESSION TRIALS CONCURRENCY STORE SABOTAGE TRIAL [ARGUMENT...]
//
// Runs or resumes the experiment `crash` below DIRECTORY. SESSION counts the starts of this program, from 0. STORE is
// `sqlite` or `journal`; SABOTAGE is `none`, `no_intent`, `no_sync` or `no_deduplication`. What the tuner is told is
// appended to DIRECTORY/tuner, a line each: session, trial, value. On standard output: `begun NANOSECONDS ADOPTED` (the
// monotonic clock), `done STATUS`.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/datastore/journal.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/tuning/random.hpp>

#include "crash/sabotage.hpp"

namespace {

/// `tuning::Random` that writes down what it is told.
class AccountingTuner {
 public:
  using role = nni::role::tuner;

  AccountingTuner(nni::SearchSpace space, const std::string& account, std::string session)
      : random_(std::move(space), nni::seed(11)),
        file_(::open(account.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        session_(std::move(session)) {}

  [[nodiscard]] const nni::SearchSpace& search_space() const noexcept { return random_.search_space(); }
  [[nodiscard]] std::uint64_t seed() const noexcept { return random_.seed(); }
  void reseed(std::uint64_t seed) noexcept { random_.reseed(seed); }
  void start(const nni::SearchSpace& space, const nni::Objectives& goals) { random_.start(space, goals); }
  void update_search_space(const nni::SearchSpace& space) { random_.update_search_space(space); }
  std::optional<nni::Parameters> generate(nni::ParameterId id) { return random_.generate(id); }

  void observe(const nni::TrialOutcome& outcome) {
    char value[40] = "none";
    if (outcome.value) std::snprintf(value, sizeof value, "%.17g", *outcome.value);
    const std::string line = session_ + " " + std::to_string(outcome.trial.sequence()) + " " + value + "\n";
    (void)!::write(file_, line.data(), line.size());
    random_.observe(outcome);
  }

 private:
  nni::tuning::Random random_;
  int file_;
  std::string session_;
};

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
  const nni_test::Sabotage sabotage = parse_sabotage(argv[6]);
  nni::ExperimentOptions options;
  options.id = "crash";
  options.directory = directory;
  options.resume = nni::Resume::if_exists;
  options.concurrency = std::strtoul(argv[4], nullptr, 10);
  options.max_trials = std::strtoul(argv[3], nullptr, 10);
  options.trial_command = nni::Command(std::vector<std::string>(argv + 7, argv + argc));
  options.log = [](nni::LogLevel level, std::string_view module, std::string_view text) {
    std::fprintf(stderr, "%s (%s) %s\n", std::string(nni::to_string(level)).c_str(), std::string(module).c_str(),
                 std::string(text).c_str());
  };
  nni::SearchSpace space{nni::uniform("x", 0.0, 1.0), nni::randint("ms", 50, 2000)};
  nni::Experiment experiment{
      std::move(options),
      nni_test::CrashService{{.launch = nni::platforms::Launch::keeper, .keeper = "/proc/self/exe"}, sabotage, session},
      nni_test::CrashStore<Store>{std::move(store), sabotage},
      AccountingTuner{std::move(space), directory + "/tuner", argv[2]}};
  nni::Observer observer;
  observer.on_start = [](const nni::ExperimentStart& start) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    print("begun " + std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()) + " " +
          std::to_string(start.adopted));
  };
  experiment.observe(std::move(observer));
  const nni::Summary summary = experiment.run();
  print("done " + std::string(nni::to_string(summary.status)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  if (argc < 8) return 2;
  try {
    if (std::string_view(argv[5]) == "journal") return run(nni::datastore::Journal{{.directory = argv[1]}}, argv, argc);
    return run(nni::datastore::Sqlite{{.directory = argv[1]}}, argv, argc);
  } catch (const std::exception& error) {
    print(std::string("failed ") + error.what());
    return 1;
  }
}
