// How many calls run at a time, and what happens where the system gives no thread.

#include "support/catch.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>

#include <nni/nni.hpp>

using namespace nni;
using namespace std::chrono_literals;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool can_limit_memory = false;  // sanitizers reserve terabytes of addresses
#else
constexpr bool can_limit_memory = true;
#endif

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

/// Lets calls return when so many are inside at the same time.
class Meeting {
 public:
  explicit Meeting(std::size_t size) : size_(size) {}

  void join() {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++inside_);
    all_.notify_all();
    all_.wait_for(lock, 20s, [this] { return most_ >= size_; });
    --inside_;
  }
  std::size_t most() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  std::size_t size_;
  std::mutex mutex_;
  std::condition_variable all_;
  std::size_t inside_ = 0;
  std::size_t most_ = 0;
};

/// Calls a function in a child process that can have about ten more threads. @returns what it returned
std::string with_few_threads(const std::function<std::string()>& body) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit stack{8U << 20U, 8U << 20U};
    ::setrlimit(RLIMIT_STACK, &stack);
    const rlim_t most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{200} << 20U);
    rlimit memory{most, most};
    ::setrlimit(RLIMIT_AS, &memory);
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = error.what();
    }
    const auto sent = ::write(ends[1], text.data(), text.size());
    ::_exit(sent == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!WIFEXITED(status)) text += " (killed by signal " + std::to_string(WTERMSIG(status)) + ")";
  return text;
}

}  // namespace

TEST_CASE("in process: as many calls run at a time as the concurrency allows", "[in_process][threads]") {
  Meeting meeting(8);
  Experiment experiment{ExperimentOptions{.concurrency = 8, .max_trials = 8, .handle_signals = false},
                        platforms::InProcess{[&](TrialHandle&) { meeting.join(); }}, tuning::Random{line(), seed(1)}};

  static_cast<void>(experiment.run());

  CHECK(meeting.most() == 8);
}

TEST_CASE("in process: a larger concurrency while calls run brings further threads", "[in_process][threads]") {
  Meeting meeting(6);
  Experiment experiment{ExperimentOptions{.concurrency = 1, .max_trials = 6, .handle_signals = false},
                        platforms::InProcess{[&](TrialHandle&) { meeting.join(); }}, tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe({.on_progress = [&](const Progress& now) {
    if (now.running == 1 && now.concurrency == 1) control.set_concurrency(6);
  }});

  static_cast<void>(experiment.run());

  CHECK(meeting.most() == 6);
}

TEST_CASE("in process: no more calls at a time than .threads", "[in_process][threads]") {
  Meeting meeting(1);
  Experiment experiment{
      ExperimentOptions{.concurrency = 8, .max_trials = 50, .handle_signals = false},
      platforms::InProcess{[&](TrialHandle&) { meeting.join(); }, {.threads = 3}}, tuning::Random{line(), seed(1)}};

  static_cast<void>(experiment.run());

  CHECK(meeting.most() <= 3);
}

TEST_CASE("in process: threads that cannot be started are an error with their number and the reason",
          "[in_process][threads]") {
  if (!can_limit_memory) return;

  const std::string text = with_few_threads([] {
    Experiment experiment{ExperimentOptions{.max_trials = 1, .handle_signals = false},
                          platforms::InProcess{[](TrialHandle&) {}, {.threads = 500}}, tuning::Random{line(), seed(1)}};
    static_cast<void>(experiment.run());
    return std::string("it ran");
  });

  CHECK_THAT(text, Catch::Contains("in_process: thread ") && Catch::Contains(" of 500 could not be started: ") &&
                       Catch::Contains("set a smaller .threads"));
}

TEST_CASE("in process: where fewer threads can be started than the concurrency wants, calls take turns",
          "[in_process][threads]") {
  if (!can_limit_memory) return;

  const std::string text = with_few_threads([] {
    Experiment experiment{
        ExperimentOptions{.concurrency = 500, .max_trials = 500, .handle_signals = false},
        platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
        tuning::Random{line(), seed(1)}};
    const Summary summary = experiment.run();
    return std::to_string(summary.count(TrialJobStatus::succeeded)) + " succeeded";
  });

  CHECK(text == "500 succeeded");
}
