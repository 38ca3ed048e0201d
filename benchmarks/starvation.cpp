// Rows `starvation*`: callables that report without a break on all processors, and how long it takes until what is due
// happens nevertheless.
//
//   starvation --directory DIR --threads T --milliseconds M
//
// Three experiments of M milliseconds each. In the first the trials reach their limit on time, in the second a program
// stops the experiment, in the third the process is sent SIGINT. Prints limit_ms, stop_ms and ctrl_c_ms: the time from the
// moment in which each is due until the last trial has seen its stop token; worst_ms, the longest of them; values, how many
// were reported in all; and grown_bytes, the largest growth of the resident memory of one experiment. Values are kept by
// SQLite, on the disk: records in memory would grow with each of them.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>

#include "support/arguments.hpp"

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t resident_bytes() {
  std::ifstream numbers("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  numbers >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// Reads the size of this process every few milliseconds.
class Watch {
 public:
  explicit Watch(std::int64_t& most) : most_(most) {}
  void run(const std::stop_token& over) {
    while (!over.stop_requested()) {
      most_ = std::max(most_, resident_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

 private:
  std::int64_t& most_;
};

struct Flood {
  std::atomic<std::uint64_t> values = 0;
  std::atomic<std::int64_t> first = 0;    // when the first trial began, in nanoseconds
  std::atomic<std::int64_t> stopped = 0;  // when the last one saw its stop token
};

std::int64_t nanoseconds() { return Clock::now().time_since_epoch().count(); }

enum class Due { limit, stop, ctrl_c };

/// One experiment. @returns milliseconds from the moment in which the stop was due
double flood_until(Due due, const nni::benchmarks::Arguments& arguments, Flood& flood) {
  const auto span = std::chrono::milliseconds(arguments.number("milliseconds"));
  const std::uint64_t threads = arguments.number("threads");
  nni::ExperimentOptions options;
  options.directory = arguments.text("directory");
  options.concurrency = threads;
  options.max_trials = threads;
  if (due == Due::limit) options.max_trial_duration = span;

  const auto trial = [&flood](nni::TrialHandle& handle) {
    std::int64_t unset = 0;
    flood.first.compare_exchange_strong(unset, nanoseconds());
    std::uint64_t count = 0;
    while (!handle.stop_requested()) {
      handle.report_intermediate_result(1.0);
      ++count;
    }
    flood.stopped = nanoseconds();
    flood.values += count;
  };
  nni::Experiment experiment{
      std::move(options), nni::platforms::InProcess{trial, {.threads = threads}},
      nni::datastore::Sqlite{{.directory = arguments.text("directory")}},
      nni::tuning::Random{nni::SearchSpace{nni::uniform("x", 0.0, 1.0)}, nni::seed(7)}};
  std::atomic<std::int64_t> asked = 0;
  std::jthread stopper;
  if (due != Due::limit)
    stopper = std::jthread([&] {
      while (flood.first == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(span);
      asked = nanoseconds();
      if (due == Due::stop)
        experiment.request_stop();
      else
        ::kill(::getpid(), SIGINT);
    });
  static_cast<void>(experiment.run());
  const std::int64_t due_at = due == Due::limit ? flood.first + std::chrono::nanoseconds(span).count() : asked.load();
  return static_cast<double>(flood.stopped - due_at) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) try {
  const nni::benchmarks::Arguments arguments(argc, argv);
  double milliseconds[3] = {};
  std::int64_t grown = 0;
  std::uint64_t values = 0;
  for (const Due due : {Due::limit, Due::stop, Due::ctrl_c}) {
    Flood flood;
    const std::int64_t before = resident_bytes();
    std::int64_t most = before;
    {
      std::jthread watching([&most](const std::stop_token& over) { Watch(most).run(over); });
      milliseconds[static_cast<int>(due)] = flood_until(due, arguments, flood);
    }
    grown = std::max(grown, most - before);
    values += flood.values;
  }
  std::cout << "{\"limit_ms\": " << milliseconds[0] << ", \"stop_ms\": " << milliseconds[1] << ", \"ctrl_c_ms\": "
            << milliseconds[2] << ", \"worst_ms\": " << *std::max_element(milliseconds, milliseconds + 3)
            << ", \"grown_bytes\": " << grown << ", \"values\": " << values << "}\n";
} catch (const std::exception& error) {
  std::cerr << "starvation: " << error.what() << '\n';
  return 1;
}
