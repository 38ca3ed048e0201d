// Rows `in_process_memory` and `in_process_durable`: empty trials as callables, one real parameter by random search,
// one final value each.
//
//   in_process --store memory|sqlite --directory DIR --trials N --concurrency C --threads T
//
// Prints us_per_trial (wall time of the whole experiment, opening and closing the store included), bytes_per_trial
// (growth of the resident memory between a tenth of the trials and all of them, without the texts of the parameters
// where the store keeps them in memory), parameter_bytes (size of such a text), cpu_us_per_trial, and commits (of SQLite).

#include <sqlite3.h>

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>

#include "support/arguments.hpp"

namespace {

std::int64_t resident_bytes() {
  std::ifstream numbers("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  numbers >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

std::atomic<std::uint64_t> commits = 0;

// SQLite calls this for every database that is opened.
int count_commits(sqlite3* database, const char**, const void*) {
  const auto count = [](void*) {
    ++commits;
    return 0;
  };
  sqlite3_commit_hook(database, count, nullptr);
  return SQLITE_OK;
}

struct Counts {
  std::atomic<std::uint64_t> trials = 0;
  std::atomic<std::uint64_t> parameter_bytes = 0;
  std::atomic<std::int64_t> resident_early = 0;
  std::atomic<std::int64_t> resident_late = 0;
};

template <class Store>
nni::Summary run(const nni::benchmarks::Arguments& arguments, Counts& counts, Store store) {
  const std::uint64_t trials = arguments.number("trials");
  nni::ExperimentOptions options;
  options.directory = arguments.text("directory");
  options.concurrency = arguments.number("concurrency");
  options.max_trials = trials;

  const auto trial = [&counts, trials](nni::TrialHandle& handle) {
    handle.report_final_result(0.0);
    counts.parameter_bytes += handle.parameters().text().size();
    const std::uint64_t count = ++counts.trials;
    if (count == trials / 10) counts.resident_early = resident_bytes();
    if (count == trials) counts.resident_late = resident_bytes();
  };
  nni::Experiment experiment{
      std::move(options), nni::platforms::InProcess{trial, {.threads = arguments.number("threads")}}, std::move(store),
      nni::tuning::Random{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}, nni::seed(7)}};
  return experiment.run();
}

}  // namespace

int main(int argc, char** argv) try {
  const nni::benchmarks::Arguments arguments(argc, argv);
  const std::string& store = arguments.text("store");
  const auto trials = static_cast<double>(arguments.number("trials"));
  Counts counts;
  nni::Summary summary;
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(count_commits));

  const auto start = std::chrono::steady_clock::now();
  if (store == "memory")
    summary = run(arguments, counts, nni::datastore::Memory{});
  else if (store == "sqlite")
    summary = run(arguments, counts, nni::datastore::Sqlite{{.directory = arguments.text("directory")}});
  else
    throw std::invalid_argument("--store must be memory or sqlite, not " + store);
  const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;

  if (static_cast<double>(summary.count(nni::TrialJobStatus::succeeded)) != trials)
    throw std::runtime_error("not every trial succeeded: " + summary.to_json().substr(0, 500));
  const double parameter_bytes = static_cast<double>(counts.parameter_bytes) / trials;
  const double grown = static_cast<double>(counts.resident_late - counts.resident_early) / (trials * 0.9);
  std::cout << "{\"us_per_trial\": " << spent.count() / trials << ", \"bytes_per_trial\": "
            << grown - (store == "memory" ? parameter_bytes : 0.0) << ", \"parameter_bytes\": " << parameter_bytes
            << ", \"cpu_us_per_trial\": " << cpu_seconds() * 1e6 / trials << ", \"commits\": " << commits << "}\n";
} catch (const std::exception& error) {
  std::cerr << "in_process: " << error.what() << '\n';
  return 1;
}
