#pragma once

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

namespace nni::benchmarks {

/// One experiment with trials as processes and its records in SQLite.
struct LocalRun {
  std::filesystem::path directory{};  ///< parent of the experiment
  std::uint64_t trials = 1;
  std::uint64_t concurrency = 1;
  platforms::Launch launch = platforms::Launch::keeper;
  std::vector<std::string> command{};
};

/// What it came to. Processor times are microseconds per trial.
struct LocalResult {
  Summary summary{};
  double seconds = 0.0;      ///< wall time of `Experiment::run`
  double manager_us = 0.0;   ///< of this process
  double keeper_us = 0.0;    ///< of the keeper, without its trials
  double children_us = 0.0;  ///< of the trials
  std::uint64_t failed = 0;  ///< trials that did not succeed
};

namespace detail {

inline double seconds_of(const rusage& used) {
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

inline double cpu_seconds(int who) {
  rusage used{};
  getrusage(who, &used);
  return seconds_of(used);
}

/// Own processor time of a process that has ended and was not waited for yet: seconds, its children not counted.
inline double own_seconds_of_ended(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  // The name, in parentheses, may hold anything; 11 fields follow it before the times.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0.0;
  double system = 0.0;
  if (!(fields >> user >> system)) throw std::runtime_error("the times of the keeper cannot be read");
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Waits for the keeper, which ends by itself once the experiment is over, and adds up its time.
/// @returns {own, of its trials}, seconds
inline std::pair<double, double> collect_keeper() {
  double own = 0.0;
  double trials = 0.0;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT | WNOHANG) != 0) {
      if (errno == ECHILD) return {own, trials};
      throw std::runtime_error("waiting for the keeper failed");
    }
    if (ended.si_pid == 0) {
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("the keeper has not ended within 60 s");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    const double mine = own_seconds_of_ended(ended.si_pid);
    rusage used{};
    wait4(ended.si_pid, nullptr, 0, &used);
    own += mine;
    trials += seconds_of(used) - mine;
  }
}

}  // namespace detail

/// Runs it. This process becomes the parent of its keeper, whose time can be read only by a parent.
/// @throws what the experiment throws, and std::runtime_error when the keeper does not end
inline LocalResult run(LocalRun what) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  ExperimentOptions options;
  options.directory = what.directory;
  options.concurrency = what.concurrency;
  options.max_trials = what.trials;
  options.trial_command = Command(std::move(what.command));
  options.log = [](LogLevel level, std::string_view module, std::string_view text) {
    std::cerr << to_string(level) << " (" << module << ") " << text << '\n';
  };
  options.log_level = LogLevel::warning;
  Experiment experiment{
      std::move(options), platforms::Local{{.launch = what.launch, .keeper = "/proc/self/exe"}},
      datastore::Sqlite{{.directory = what.directory}}, tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(7)}};

  LocalResult result;
  const auto start = std::chrono::steady_clock::now();
  result.summary = experiment.run();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const auto per_trial = 1e6 / static_cast<double>(what.trials);
  const double waited_for = detail::cpu_seconds(RUSAGE_CHILDREN);
  const auto [keeper, its_trials] = detail::collect_keeper();
  result.manager_us = detail::cpu_seconds(RUSAGE_SELF) * per_trial;
  result.keeper_us = keeper * per_trial;
  result.children_us = (waited_for + its_trials) * per_trial;
  result.failed = what.trials - result.summary.count(TrialJobStatus::succeeded);
  for (const TrialJobDetail& failure : result.summary.failures)
    std::cerr << "a trial failed: " << failure.message << '\n';
  return result;
}

}  // namespace nni::benchmarks
