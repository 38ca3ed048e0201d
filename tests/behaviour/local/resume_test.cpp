// A manager that is killed while its processes run, and a resume in which everything else is another one: tuner, assessor,
// concurrency. The trials keep an account of their own, which no part of the library can lose.

#include "support/catch.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nni/assessing/median_stop.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/platforms/local.hpp>
#include <nni/tuning/grid.hpp>

#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

constexpr std::uint64_t all_trials = 12;
constexpr std::size_t first_concurrency = 3;

SearchSpace space() { return {choice("x", {1, 2, 3, 4, 5}), choice("kind", {"a", "b", "c", "d"})}; }

/// A place where trials and the test meet: a trial that writes to it has come there, one that reads from it waits.
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
    const std::string bytes(trials, 'x');
    REQUIRE(::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

/// Counts what it is told, and suggests what the tuner inside does.
class Counting {
 public:
  using role = nni::role::tuner;
  using Told = std::map<std::uint64_t, std::vector<TrialOutcome>>;

  Counting(tuning::Grid inside, std::shared_ptr<Told> told) : inside_(std::move(inside)), told_(std::move(told)) {}

  [[nodiscard]] const SearchSpace& search_space() const noexcept { return inside_.search_space(); }
  void start(const SearchSpace& in, const Objectives& goals) { inside_.start(in, goals); }
  void update_search_space(const SearchSpace& in) { inside_.update_search_space(in); }
  std::optional<Parameters> generate(ParameterId id) { return inside_.generate(id); }
  void adopt(ParameterId id, const Parameters& parameters) { inside_.adopt(id, parameters); }
  void observe(const TrialOutcome& outcome) {
    (*told_)[outcome.trial.number].push_back(outcome);
    inside_.observe(outcome);
  }

 private:
  tuning::Grid inside_;
  std::shared_ptr<Told> told_;
};

/// Keeps the whole history of each trial that has ended.
class Reading {
 public:
  using role = nni::role::assessor;
  using Histories = std::map<std::uint64_t, std::vector<double>>;

  explicit Reading(std::shared_ptr<Histories> ended) : ended_(std::move(ended)) {}

  void start(const Objectives&) {}
  Verdict assess(const RunId& run, std::span<const double> history) {
    live_[run.trial.number].assign(history.begin(), history.end());
    return Verdict::good;
  }
  void trial_ended(const RunId& run, bool) {
    CHECK_FALSE(ended_->contains(run.trial.number));
    (*ended_)[run.trial.number] = std::exchange(live_[run.trial.number], {});
  }

 private:
  Histories live_;
  std::shared_ptr<Histories> ended_;
};

class Bench {
 public:
  Bench() : reported(where.path() / "reported"), gate(where.path() / "gate") {}

  // A trial writes down that it begins, reports, waits at the gate, and reports its result.
  ExperimentOptions options(std::size_t concurrency) const {
    const std::string trial = nni_test::program("local_trial").string();
    ExperimentOptions result;
    result.id = "killed";
    result.directory = where.path();
    result.resume = Resume::if_exists;
    result.concurrency = concurrency;
    result.max_trials = all_trials;
    result.handle_signals = false;
    result.trial_command =
        Command("echo \"$NNI_TRIAL_SEQ_ID\" >> '" + account() + "'; exec '" + trial + "' metric 0.5 tell '" +
                reported.path() + "' wait '" + gate.path() + "' metric 0.25 final 0.125");
    return result;
  }
  platforms::Local local() const {
    platforms::LocalOptions result;
    result.launch = platforms::Launch::keeper;
    result.keeper = nni_test::program("nni-keeper").string();
    return platforms::Local(result);
  }
  std::string account() const { return (where.path() / "account").string(); }

  /// The sequence ids of all runs that have begun, in order.
  std::vector<std::uint64_t> begun() const {
    std::ifstream file(account());
    std::vector<std::uint64_t> found;
    for (std::uint64_t sequence = 0; file >> sequence;) found.push_back(sequence);
    std::sort(found.begin(), found.end());
    return found;
  }

  const nni_test::TemporaryDirectory where;
  Meeting reported;
  Meeting gate;
};

/// A manager in a process of its own; it ends by a kill.
pid_t start_manager(const std::function<void()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  try {
    work();
  } catch (...) {
  }
  ::_exit(7);
}

void kill_manager(pid_t manager) {
  ::kill(manager, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(manager, &status, 0) == manager);
  CHECK(WIFSIGNALED(status));
}

template <class Store>
awaitable<std::vector<std::string>> values_in(Context& context, Store& store, std::filesystem::path directory) {
  store.set_experiment_directory(directory, ExperimentId("killed"));
  auto opening = store.open(context, ExperimentId("killed"));
  co_await std::move(opening);
  std::vector<std::string> all;
  for (std::uint64_t number = 1; number <= all_trials; ++number) {
    auto reading = store.metrics(TrialId{number});
    const std::vector<Metric> metrics = co_await std::move(reading);
    std::string& text = all.emplace_back();
    for (const Metric& metric : metrics) text += metric.value + " ";
  }
  auto closing = store.close();
  co_await std::move(closing);
  co_return all;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "local: a killed manager's processes come to their results under another tuner, assessor and concurrency",
    "[local][resume][kill]", datastore::Sqlite, datastore::Journal) {
  Bench bench;
  const pid_t manager = start_manager([&bench] {
    Experiment experiment{bench.options(first_concurrency), bench.local(), TestType{}, tuning::Random{space(), seed(3)},
                          assessing::MedianStop{}};
    experiment.run();
  });
  bench.reported.wait_for(first_concurrency);
  bench.gate.let_go(2);
  bench.reported.wait_for(2);  // whose places they have: the two that ended are recorded
  kill_manager(manager);
  bench.gate.let_go(1);  // comes to its result while nobody is there, and waits until somebody keeps it
  CHECK(bench.begun().size() == 5);

  const auto told = std::make_shared<Counting::Told>();
  const auto histories = std::make_shared<Reading::Histories>();
  ExperimentStart start;
  std::size_t most = 0;
  std::set<std::uint64_t> announced;
  bench.gate.let_go(all_trials - 3);
  Experiment experiment{
      bench.options(5), bench.local(), TestType{}, Counting{tuning::Grid{space()}, told}, Reading{histories}};
  experiment.observe(
      {.on_start = [&start](const ExperimentStart& now) { start = now; },
       .on_trial_ended =
           [&announced](const TrialJobDetail& trial) {
             CHECK(announced.insert(trial.trial.number).second);
             CHECK(trial.submit_time.has_value());
             CHECK(trial.start_time.has_value());
           },
       .on_progress = [&most](const Progress& now) { most = std::max(most, now.running + now.waiting); }});
  const Summary summary = experiment.run();

  CHECK(start.resumed);
  CHECK(start.finished_before == 2);
  CHECK(start.adopted == 3);
  CHECK(announced.size() == all_trials - 2);
  CHECK(most <= 5);
  CHECK(most > first_concurrency);
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::succeeded) == all_trials);
  REQUIRE(summary.trials.size() == all_trials);
  std::set<std::string> suggestions;
  std::vector<std::uint64_t> sequences;
  for (const TrialJobDetail& trial : summary.trials) {
    INFO(trial.trial.number);
    CHECK(trial.trial.number == sequences.size() + 1);
    sequences.push_back(trial.trial.sequence());
    suggestions.insert(trial.parameters.text());
    CHECK(trial.attempts == 1);
    CHECK(trial.final_value == "0.125");
    CHECK(trial.exit_code == 0);
    CHECK(std::filesystem::is_directory(trial.working_directory));
    // The tuner has heard of each once, with its result; so has the assessor.
    REQUIRE(told->contains(trial.trial.number));
    CHECK(told->at(trial.trial.number).size() == 1);
    CHECK(told->at(trial.trial.number).front().value == 0.125);
    CHECK(histories->at(trial.trial.number) == std::vector<double>{0.5, 0.25});
  }
  CHECK(bench.begun() == sequences);  // each once, and the sequence goes on
  CHECK(suggestions.size() == all_trials);
  for (const TrialJobDetail& trial : summary.top) {
    CHECK(trial.start_time.has_value());
    CHECK(std::filesystem::is_directory(trial.working_directory));
  }
  Runtime runtime;
  TestType store;
  for (const std::string& values : runtime.run(values_in(runtime.context(), store, bench.where.path() / "killed")))
    CHECK(values == "0.5 0.25 0.125 ");
}
