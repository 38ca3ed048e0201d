// Row `resume_latency`: an experiment in a directory, resumed if it exists, that reports when all of its trials are live.
//
//   resume_latency --directory DIR --trials N -- COMMAND [ARGUMENT...]
//
// Prints `live NANOSECONDS` (the monotonic clock) once N trials run at the same time, be they its own or adopted, and
// `adopted COUNT` before. It runs until it is killed, or stopped by SIGTERM.

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <utility>

#include <nni/datastore/sqlite.hpp>
#include <nni/keeper/run_if_asked.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>

#include "support/arguments.hpp"

int main(int argc, char** argv) try {
  if (const auto code = nni::keeper::run_if_asked(argc, argv)) return *code;
  const nni::benchmarks::Arguments arguments(argc, argv);
  const std::uint64_t trials = arguments.number("trials");
  nni::ExperimentOptions options;
  options.id = "latency";
  options.directory = arguments.text("directory");
  options.resume = nni::Resume::if_exists;
  options.concurrency = trials;
  options.max_trials = trials;
  options.trial_command = nni::Command(arguments.command());
  nni::Experiment experiment{
      std::move(options), nni::platforms::Local{{.launch = nni::platforms::Launch::keeper, .keeper = "/proc/self/exe"}},
      nni::datastore::Sqlite{{.directory = arguments.text("directory")}},
      nni::tuning::Random{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}, nni::seed(7)}};
  bool reported = false;
  nni::Observer observer;
  observer.on_start = [](const nni::ExperimentStart& start) { std::cout << "adopted " << start.adopted << std::endl; };
  observer.on_progress = [&reported, trials](const nni::Progress& progress) {
    if (progress.running < trials || std::exchange(reported, true)) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::cout << "live " << std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() << std::endl;
  };
  experiment.observe(std::move(observer));
  experiment.run();
} catch (const std::exception& error) {
  std::cerr << "resume_latency: " << error.what() << '\n';
  return 1;
}
