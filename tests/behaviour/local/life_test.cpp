// Programs that use the id of an experiment again. Trials of its earlier life may still run, and their results may wait in
// the spool of its keeper: a new life must neither take them for its own, nor run beside them.

#include "behaviour/local/harness.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <set>

#include <nni/datastore/journal.hpp>
#include <nni/nni.hpp>
#include <nni/session/training_session.hpp>

using namespace nni;
using namespace nni_test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t trials_of_a_life = 3;

/// A FIFO at which trials and the test meet.
class Meeting {
 public:
  explicit Meeting(std::filesystem::path path) : path_(std::move(path)) {
    REQUIRE(::mkfifo(path_.c_str(), 0600) == 0);
    file_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);  // both ends: nobody hangs up
    REQUIRE(file_ >= 0);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() { ::close(file_); }

  std::string path() const { return path_.string(); }
  void wait_for(std::size_t trials) {
    char byte = 0;
    for (std::size_t count = 0; count < trials; ++count) REQUIRE(::read(file_, &byte, 1) == 1);
  }
  void let_go(std::size_t trials) {
    const std::string bytes(trials, '\n');
    REQUIRE(::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// A manager in a process of its own, which the test kills.
class Manager {
 public:
  explicit Manager(const std::function<void()>& work) : pid_(::fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    try {
      work();
    } catch (...) {
    }
    ::_exit(7);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
  }

 private:
  pid_t pid_ = 0;
};

/// An experiment of a fixed id in a directory, whose trials report their own parameter.
class Bench {
 public:
  Bench() : there(where.path() / "there"), gate(where.path() / "gate") {}
  ~Bench() {
    try {
      (void)keeper::ask_keeper(directory(), true);
    } catch (const std::exception&) {
      // Its processes are killed below.
    }
    process::kill_and_wait(trials(), 5s);
  }

  std::filesystem::path directory() const { return where.path() / "again"; }

  /// Trials that come to the meeting, wait at the gate, and report.
  Command waiting_trial() const {
    return Command("x=$('" + keeper() + "' parameter x) && echo > '" + there.path() + "' && read line < '" +
                   gate.path() + "' && '" + keeper() + "' report final $x");
  }
  Command prompt_trial() const {
    return Command("x=$('" + keeper() + "' parameter x) && '" + keeper() + "' report final $x");
  }

  ExperimentOptions options(Command command) const {
    ExperimentOptions result;
    result.id = "again";
    result.directory = where.path();
    result.concurrency = trials_of_a_life;
    result.max_trials = trials_of_a_life;
    result.max_duration = 60s;
    result.handle_signals = false;
    result.trial_command = std::move(command);
    return result;
  }

  platforms::Local local() const {
    platforms::LocalOptions result;
    result.launch = platforms::Launch::keeper;
    result.keeper = keeper();
    return platforms::Local(result);
  }

  /// Processes of trials that live.
  std::vector<process::Identity> trials() const {
    std::vector<process::Identity> found;
    for (const auto& one : process::processes_with_variable("NNI_OUTPUT_DIR", directory().string() + "/"))
      found.push_back(one.process);
    return found;
  }

  pid_t keeper_process() const {
    std::ifstream lock(directory() / "keeper" / "lock");
    pid_t pid = 0;
    lock >> pid;
    return pid;
  }

  static std::string keeper() { return program("nni-keeper").string(); }
  static SearchSpace first_space() { return {choice("x", {1, 2, 3, 4, 5})}; }
  static SearchSpace second_space() { return {choice("x", {101, 102, 103, 104, 105})}; }

  const TemporaryDirectory where;
  Meeting there;
  Meeting gate;
};

/// Runs an experiment whose trials wait, and kills its manager while they do.
template <class... Store>
void run_and_kill(Bench& bench, Store... store) {
  Manager manager([&bench, &store...] {
    Experiment experiment{bench.options(bench.waiting_trial()), bench.local(), std::move(store)...,
                          tuning::Random{Bench::first_space(), seed(1)}};
    experiment.run();
  });
  bench.there.wait_for(trials_of_a_life);
  manager.kill();
}

/// Runs another experiment with the same id to its end.
template <class... Store>
void check_own_results(Bench& bench, Store... store) {
  Experiment experiment{bench.options(bench.prompt_trial()), bench.local(), std::move(store)...,
                        tuning::Random{Bench::second_space(), seed(2)}};
  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::done);
  REQUIRE(summary.trials.size() == trials_of_a_life);
  for (const TrialJobDetail& trial : summary.trials) {
    CHECK(trial.status == TrialJobStatus::succeeded);
    CHECK(trial.attempts == 1);  // nothing of the earlier life stood in its way
    REQUIRE(trial.final_value);
    CHECK(trial.parameters.text().find(*trial.final_value) != std::string::npos);
  }
}

}  // namespace

TEST_CASE(
    "local: a program with the id of a killed one, whose trials just end, gets results of its own parameters only",
    "[local][life]") {
  Bench bench;
  run_and_kill(bench);

  bench.gate.let_go(trials_of_a_life);

  check_own_results(bench);
}

TEST_CASE("local: a program with the id of a killed one whose records were removed stops its trials, and runs its own",
          "[local][life]") {
  Bench bench;
  run_and_kill(bench, datastore::Journal{});
  const std::vector<process::Identity> before = bench.trials();
  CHECK(before.size() >= trials_of_a_life);  // the experiment could be resumed, so they continue

  std::filesystem::remove_all(bench.directory() / "db");
  check_own_results(bench, datastore::Journal{});

  for (const process::Identity& trial : before) CHECK_FALSE(process::is_alive(trial));
}

TEST_CASE("local: a program without a data store takes nothing from one with the same id that has one",
          "[local][life]") {
  Bench bench;
  run_and_kill(bench, datastore::Journal{});

  check_own_results(bench);
}

TEST_CASE("local: trials of an experiment that nobody can resume end with their manager, and so does their keeper",
          "[local][life]") {
  Bench bench;
  Manager manager([&bench] {
    Experiment experiment{
        bench.options(bench.waiting_trial()), bench.local(), tuning::Random{Bench::first_space(), seed(1)}};
    experiment.run();
  });
  bench.there.wait_for(trials_of_a_life);
  const int end = static_cast<int>(::syscall(SYS_pidfd_open, bench.keeper_process(), 0));
  REQUIRE(end >= 0);

  manager.kill();
  boost::asio::io_context io;
  boost::asio::posix::stream_descriptor ended(io, end);
  ended.wait(boost::asio::posix::descriptor_base::wait_read);

  CHECK(bench.trials().empty());
  CHECK(bench.keeper_process() == 0);  // an orderly end
}

TEST_CASE("session: with the id of a killed one it gets values of its own trials only", "[local][life][session]") {
  Bench bench;
  const auto options = [&bench](Command command) {
    TrainingSessionOptions result;
    result.id = "again";
    result.directory = bench.where.path();
    result.trial_command = std::move(command);
    return result;
  };
  Manager manager([&] {
    TrainingSession session{options(bench.waiting_trial()), bench.local(), datastore::Journal{}};
    (void)session.submit_trial_job(Parameters(R"({"x": 1})"));
    session.run();
  });
  bench.there.wait_for(1);
  manager.kill();

  std::filesystem::remove_all(bench.directory() / "db");
  bench.gate.let_go(1);
  TrainingSession session{options(bench.prompt_trial()), bench.local(), datastore::Journal{}};
  const TrialId trial = session.submit_trial_job(Parameters(R"({"x": 2})")).trial;
  const TrialJobDetail detail = session.wait_trial_job(trial);
  session.clean_up();

  CHECK(detail.status == TrialJobStatus::succeeded);
  CHECK(detail.final_value == "2");
}

CO_TEST_CASE("local: a run that no record knows is over before another one of its name starts", "[local][life]") {
  Place place;
  Fifo there(ctx, place, "there");
  {
    ManagerProcess manager(
        ctx, place, 1, "keep", {program("local_trial").string(), "metric", "1", "tell", there.path(), "stop"});
    co_await there.told();
    manager.kill();
  }
  const std::vector<process::Identity> before = place.processes();
  REQUIRE(before.size() == 1);

  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await local.adopt(std::vector<Intent>());
  co_await submit(local, trial_form(1, "metric 2 exit 0"));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(metric.value == "2");
  CHECK(end.end.succeeded());
  CHECK_FALSE(process::is_alive(before[0]));
  co_await local.clean_up();
}

CO_TEST_CASE("local: more old values than a manager holds are none of the next run of the same name", "[local][life]") {
  Place place;
  {
    ManagerProcess manager(
        ctx, place, 1, "keep", {program("local_trial").string(), "flood", "12000", "1", "exit", "0"});
    co_await manager.line_of("ended");
    manager.kill();
  }

  platforms::Local local = place.local();
  co_await local.start(ctx);
  co_await local.adopt(std::vector<Intent>());
  co_await submit(local, trial_form(1, "metric 2 exit 0"));
  const Metric metric = co_await next_metric(local);
  const JobEnded end = co_await next_end(local);

  CHECK(metric.value == "2");
  CHECK(end.end.succeeded());
  co_await local.clean_up();
}
