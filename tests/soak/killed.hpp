#pragma once

/// @file
/// Rounds of local trials whose manager is a process of its own, and is killed: the programs and the account of the
/// crash tests, with a search that changes from one manager to the next.

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "crash/search.hpp"
#include "soak/invariants.hpp"
#include "soak/plan.hpp"
#include "soak/readings.hpp"
#include "soak/stored.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

namespace nni_soak {

/// One life of the manager.
struct Life {
  enum class End { by_itself, manager, keeper, both };
  enum class Fault { none, keeper_frozen, manager_frozen, socket_gone, program_away };
  TunerKind tuner = TunerKind::random;
  std::size_t concurrency = 1;
  std::uint64_t max_trials = 1;
  End end = End::by_itself;           ///< who is killed
  std::chrono::milliseconds after{};  ///< from its start on
  Fault fault = Fault::none;          ///< before anybody is killed
  std::chrono::milliseconds lasts{};  ///< the fault
  std::chrono::milliseconds away{};   ///< so long nobody is there afterwards
};

struct KillPlan {
  StoreKind store = StoreKind::sqlite;
  std::vector<std::string> trial{};  ///< what each trial does: arguments of crash_trial, or `shell` and how often
  std::vector<Life> lives{};         ///< the last one ends by itself
  std::optional<StoreKind> convert_to{};
};

/// Nothing for a round without kills.
inline std::optional<KillPlan> draw_kill_plan(std::uint64_t seed) {
  // Numbers of their own: the plans of the other rounds are the same with and without these.
  std::mt19937_64 random(seed ^ 0x6b696c6c6b696c6cULL);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  if (!one_in(5)) return std::nullopt;
  const auto up_to = [&](std::uint64_t most) { return std::chrono::milliseconds(random() % (most + 1)); };
  KillPlan plan;
  plan.store = one_in(2) ? StoreKind::journal : StoreKind::sqlite;
  if (one_in(5))
    plan.trial = {"shell", std::to_string(random() % 3)};
  else if (one_in(6))
    plan.trial = {"threads", std::to_string(2 + random() % 3), std::to_string(1 + random() % 60)};
  else if (one_in(5))
    plan.trial = {one_in(2) ? "lingering" : "stray", std::to_string(random() % 8), std::to_string(random() % 400)};
  else if (one_in(2))
    plan.trial = {"timed", std::to_string(1 + random() % 12)};  // up to 0.24 s
  else
    plan.trial = {"values", std::to_string(1 + random() % 12), one_in(4) ? "20000" : "0"};
  Life life;
  life.tuner = static_cast<TunerKind>(random() % 3);
  life.concurrency = 1 + random() % 4;
  life.max_trials = 2 + random() % 7;
  int keepers = 0;  // a trial may lose its run so often only
  for (std::uint64_t kills = 1 + random() % 4; kills > 0; --kills) {
    life.end = one_in(6) ? Life::End::by_itself : Life::End::manager;
    if (one_in(6) && ++keepers <= 2) life.end = one_in(2) ? Life::End::keeper : Life::End::both;
    life.after = one_in(3) ? up_to(250) : up_to(900);
    life.fault = one_in(3) ? static_cast<Life::Fault>(1 + random() % 4) : Life::Fault::none;
    if (life.fault == Life::Fault::program_away && ++keepers > 2) life.fault = Life::Fault::none;
    life.lasts = up_to(600);
    life.away = one_in(2) ? up_to(0) : up_to(200);
    plan.lives.push_back(life);
    if (one_in(3)) life.tuner = static_cast<TunerKind>(random() % 3);
    if (one_in(2)) life.concurrency = 1 + random() % 4;
    if (one_in(2)) life.max_trials += 1 + random() % 3;
  }
  life.end = Life::End::by_itself;
  life.fault = Life::Fault::none;
  plan.lives.push_back(life);
  if (one_in(4)) plan.convert_to = static_cast<StoreKind>(random() % 3);
  return plan;
}

/// A round in one line, for people.
inline std::string text_of(const KillPlan& plan) {
  std::string text = std::string("local trials, ") + to_string(plan.store);
  for (const std::string& word : plan.trial) text += ' ' + word;
  constexpr const char* names[] = {"", "manager", "keeper", "manager and keeper"};
  constexpr const char* faults[] = {"", "keeper frozen", "manager frozen", "socket gone", "keeper's program away"};
  for (const Life& life : plan.lives) {
    text += "; " + std::string(to_string(life.tuner)) + " concurrency " + std::to_string(life.concurrency) +
            " max_trials " + std::to_string(life.max_trials);
    if (life.fault != Life::Fault::none)
      text += std::string(" ") + faults[static_cast<int>(life.fault)] + " after " + std::to_string(life.after.count()) +
              " ms for " + std::to_string(life.lasts.count()) + " ms";
    if (life.end != Life::End::by_itself)
      text += std::string(" kill ") + names[static_cast<int>(life.end)] + " after " +
              std::to_string(life.after.count()) + " ms, away " + std::to_string(life.away.count()) + " ms";
  }
  return text;
}

/// Kinds of findings of tests/crash/oracle.py, and what they are called here.
inline const std::map<std::string, const char*, std::less<>>& kill_invariants() {
  static const std::map<std::string, const char*, std::less<>> names{
      {"store", "killed: the store is whole"},
      {"status", "killed: the experiment and each of its trials come to their end"},
      {"count", "killed: as many trials as were asked for have run to their last line"},
      {"intent", "killed: each run that was started was recorded before"},
      {"doubled", "killed: no run was started twice"},
      {"attempt", "killed: a further attempt has a recorded reason"},
      {"adoption", "killed: live trials are adopted when only managers were killed"},
      {"parameters", "killed: each run was given the parameters that are recorded"},
      {"lost value", "killed: no acknowledged value is lost"},
      {"doubled value", "killed: no value is stored twice"},
      {"order", "killed: values are stored in their order"},
      {"tuner", "killed: every tuner is told of every end once, with its value"},
      {"process", "killed: no process is left"},
      {"sanitizer", "killed: no sanitizer complains of a keeper or a trial"}};
  return names;
}
inline constexpr const char* manager_ends = "killed: a manager that nobody kills ends well";
inline constexpr const char* manager_counts = "killed: the manager's counts are those of the store";
inline constexpr const char* search_goes_on = "killed: suggestions go on as without a kill";

/// What was killed so far: a process that had come to its end before does not count.
struct Kills {
  std::uint64_t rounds = 0;
  std::uint64_t managers = 0;
  std::uint64_t keepers = 0;
};

/// Carries out a plan.
class KilledRound {
 public:
  KilledRound(KillPlan plan, Invariants& invariants, Kills& kills)
      : plan_(std::move(plan)), invariants_(&invariants), kills_(&kills) {
    std::filesystem::create_symlink(nni_test::program("crash_manager"), keeper_program_);
  }
  ~KilledRound() {
    if (is_over_) return;
    try {
      // A round that failed leaves nothing running either.
      nni_test::run_child({"/usr/bin/env", "python3", oracle(), place_.path(), "--end"}, {});
    } catch (const std::exception&) {
    }
  }
  KilledRound(const KilledRound&) = delete;
  KilledRound& operator=(const KilledRound&) = delete;

  /// @throws Violation  when an invariant does not hold
  void run() {
    ++kills_->rounds;
    for (const Life& life : plan_.lives) live(life);
    ask_oracle();
    is_over_ = true;
    const AnyStore plain = plain_store(plan_.store, place_.path());
    const Stored stored = read(plain, id_, nni::minimize, 3);
    check_readings(*invariants_, stored, nni::minimize);
    check_counts(stored);
    check_search(stored);
    if (plan_.convert_to) check_copy(*invariants_, stored, plain, *plan_.convert_to, id_, nni::minimize);
  }

 private:
  static std::string oracle() { return nni_test::source_dir() / "tests" / "crash" / "oracle.py"; }

  /// @returns true when a process has ended by then
  static bool has_ended(pid_t process, std::chrono::milliseconds limit) {
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
    if (handle < 0) throw std::runtime_error("a process cannot be watched: pidfd_open failed");
    pollfd ends{handle, POLLIN, 0};
    const bool ended = ::poll(&ends, 1, static_cast<int>(limit.count())) == 1;
    ::close(handle);
    return ended;
  }

  nni_test::Child start(const Life& life) {
    std::vector<std::string> words{
        nni_test::program("crash_manager"),
        place_.path(),
        std::to_string(session_++),
        std::to_string(life.max_trials),
        std::to_string(life.concurrency),
        to_string(plan_.store),
        to_string(life.tuner),
        "none"};
    const std::vector<std::string> trial = command();
    words.insert(words.end(), trial.begin(), trial.end());
    return nni_test::Child(std::move(words), {{"NNI_CRASH_KEEPER", keeper_program_.string()}});
  }

  std::vector<std::string> command() const {
    const std::string account = place_.path() / "account";
    if (plan_.trial.front() == "shell")
      return {"/usr/bin/env",
              "bash",
              nni_test::source_dir() / "tests" / "crash" / "trial.sh",
              account,
              nni_test::program("nni-keeper"),
              plan_.trial.back()};
    std::vector<std::string> words{nni_test::program("crash_trial"), account};
    words.insert(words.end(), plan_.trial.begin(), plan_.trial.end());
    return words;
  }

  void live(const Life& life) {
    std::optional<nni_test::Child> manager(start(life));
    const bool is_disturbed = life.end != Life::End::by_itself || life.fault != Life::Fault::none;
    const bool runs = is_disturbed && !has_ended(manager->pid(), life.after);
    if (runs) disturb(life, manager->pid());
    if (runs && life.end != Life::End::by_itself) {
      if (life.end != Life::End::manager) kill_keeper();
      if (life.end != Life::End::keeper) {
        ::kill(manager->pid(), SIGKILL);
        manager->wait();
        ++kills_->managers;
        if (life.away.count() > 0) ::poll(nullptr, 0, static_cast<int>(life.away.count()));
        return;
      }
    }
    // One whose keeper dies at once cannot go on, and says so; whoever starts it again finds all there was.
    for (int starts = 1; !ends_well(*manager); ++starts) {
      invariants_->check(manager_ends, keepers_killed_ && starts < 4, [&] { return said_; });
      manager.emplace(start(life));
    }
  }

  /// @returns false for one that could not start its keeper
  bool ends_well(nni_test::Child& manager) {
    const bool hangs = !has_ended(manager.pid(), std::chrono::seconds(60));
    if (hangs) ::kill(manager.pid(), SIGKILL);
    const nni_test::ChildEnd end = manager.wait();
    said_ =
        (hangs ? "it hangs, and" : "it ended with " + std::to_string(end.code) + ", and") + " printed: " + end.output;
    const std::size_t done = end.output.rfind("done ");
    if (end.code == 0 && done != std::string::npos) done_ = end.output.substr(done);
    const bool has_no_keeper = end.output.find("keeper could not be started") != std::string::npos;
    invariants_->check(manager_ends, !hangs && (end.code == 0 || has_no_keeper), [&] { return said_; });
    return end.code == 0;
  }

  // What happens to processes and files beside their deaths; it is over when this returns.
  void disturb(const Life& life, pid_t manager) {
    const auto wait = [&life] { ::poll(nullptr, 0, static_cast<int>(life.lasts.count())); };
    if (life.fault == Life::Fault::keeper_frozen || life.fault == Life::Fault::manager_frozen) {
      const pid_t victim = life.fault == Life::Fault::manager_frozen ? manager : keeper();
      if (victim <= 0) return;
      ::kill(victim, SIGSTOP);
      wait();
      ::kill(victim, SIGCONT);
    } else if (life.fault == Life::Fault::socket_gone) {
      std::filesystem::remove(place_.path() / id_.value / "keeper" / "socket");
    } else if (life.fault == Life::Fault::program_away) {
      const std::filesystem::path away = keeper_program_.string() + ".away";
      std::filesystem::rename(keeper_program_, away);
      kill_keeper();
      wait();
      std::filesystem::rename(away, keeper_program_);
    }
  }

  /// @returns 0 when there is none
  pid_t keeper() const {
    pid_t keeper = 0;
    std::ifstream(place_.path() / id_.value / "keeper" / "lock") >> keeper;
    if (keeper <= 0) return 0;
    std::ifstream command("/proc/" + std::to_string(keeper) + "/cmdline");
    const std::string words{std::istreambuf_iterator<char>(command), {}};
    // A keeper of another experiment may have its number by now.
    return words.find(place_.path().string()) == std::string::npos ? 0 : keeper;
  }

  void kill_keeper() {
    const pid_t keeper = this->keeper();
    if (keeper == 0) return;
    keepers_killed_ = true;
    ::kill(keeper, SIGKILL);
    ++kills_->keepers;
  }

  void ask_oracle() {
    std::uint64_t trials = 0;
    for (const Life& life : plan_.lives) trials = std::max(trials, life.max_trials);
    std::vector<std::string> words{"/usr/bin/env", "python3", oracle(), place_.path(), std::to_string(trials)};
    if (keepers_killed_) words.emplace_back("--keepers-killed");
    if (plan_.trial.front() == "threads") words.emplace_back("--unordered");
    const nni_test::ChildEnd end = nni_test::run_child(words, {});
    if (end.code != 0) throw std::runtime_error("tests/crash/oracle.py failed: " + end.output);
    // `looked N KIND`, then `wrong KIND: SENTENCE`
    std::istringstream lines(end.output);
    for (std::string what; lines >> what;) {
      std::string rest;
      std::uint64_t count = 0;
      if (what == "looked") lines >> count;
      std::getline(lines >> std::ws, rest);
      const std::string kind = rest.substr(0, rest.find(':'));
      const auto name = kill_invariants().find(kind);
      if (name == kill_invariants().end() || (what != "looked" && what != "wrong"))
        throw std::runtime_error("tests/crash/oracle.py says: " + what + " " + rest);
      invariants_->check(name->second, what == "looked", [&] { return rest; }, count);
    }
  }

  void check_counts(const Stored& stored) {
    std::istringstream words(done_);
    std::string done, status;
    std::uint64_t ordered = 0, finished = 0, succeeded = 0;
    words >> done >> status >> ordered >> finished >> succeeded;
    const std::uint64_t* const counts = stored.snapshot.by_status;
    std::uint64_t ended = 0;
    for (std::size_t at = 0; at < std::size(stored.snapshot.by_status); ++at) ended += counts[at];
    invariants_->check(
        manager_counts,
        ordered == stored.trials.size() && finished == ended &&
            succeeded == counts[static_cast<std::size_t>(nni::TrialJobStatus::succeeded)],
        [&] { return done_ + "the store has " + std::to_string(stored.trials.size()) + " trials"; });
  }

  // Those of a tuner that learns depend on what was known when they were made.
  void check_search(const Stored& stored) {
    const TunerKind first = plan_.lives.front().tuner;
    const bool same =
        std::all_of(plan_.lives.begin(), plan_.lives.end(), [&](const Life& life) { return life.tuner == first; });
    if (!same || first == TunerKind::tpe) return;
    AnyTuner reference = nni_test::crash_tuner(to_string(first));
    reference.start(nni_test::crash_space(), nni::Objectives(nni::minimize));
    for (const nni::TrialJobDetail& trial : stored.trials) {
      const auto expected = reference.generate(nni::ParameterId{trial.trial.sequence()});
      invariants_->check(search_goes_on, expected && *expected == trial.parameters, [&] {
        return text_of(trial) + "\n  expected " + (expected ? expected->text() : "nothing more");
      });
    }
  }

  KillPlan plan_;
  Invariants* invariants_;
  Kills* kills_;
  nni_test::TemporaryDirectory place_;
  std::filesystem::path keeper_program_ = place_.path() / "keeper-program";
  nni::ExperimentId id_{"crash"};
  std::uint32_t session_ = 0;
  bool keepers_killed_ = false;
  bool is_over_ = false;  // no process is left
  std::string said_;      // by the last manager
  std::string done_;      // what the last one that came to its end counted
};

}  // namespace nni_soak
