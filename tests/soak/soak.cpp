// Random experiments, random operations on them, and what must hold all the same.
//
//   soak [--kills] [--seconds N] [--seed N] [--round K]
//
// Round k of a seed always draws the same plan, which `--round` repeats alone; what threads and processes make of it
// may differ. With `--kills` every fifth round or so is one of local trials whose manager, or keeper, is killed: that
// needs the programs of the crash tests, as new as this one. The last line is "N passed, N failed, N skipped":
// invariants that held, that did not, that no round asked for.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>

#include "soak/killed.hpp"
#include "soak/round.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds round_limit{120};

struct Arguments {
  std::chrono::seconds time{60};
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> round{};
  bool kills = false;
};

Arguments parse(int argc, char** argv) {
  Arguments result;
  result.seed = std::random_device{}();
  for (int index = 1; index < argc; ++index) {
    const std::string_view name = argv[index];
    if (name == "--kills") {
      result.kills = true;
      continue;
    }
    if (index + 1 == argc || (name != "--seconds" && name != "--seed" && name != "--round")) {
      std::fprintf(stderr, "usage: soak [--kills] [--seconds N] [--seed N] [--round K]\n");
      std::exit(2);
    }
    const std::uint64_t value = std::strtoull(argv[++index], nullptr, 10);
    if (name == "--seconds") result.time = std::chrono::seconds(value);
    if (name == "--seed") result.seed = value;
    if (name == "--round") result.round = value;
  }
  return result;
}

std::uint64_t seed_of_round(std::uint64_t seed, std::uint64_t round) {
  std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                         static_cast<std::uint32_t>(round), static_cast<std::uint32_t>(round >> 32)};
  return std::mt19937_64(sequence)();
}

// Ends the program with a reason when a round hangs.
class Watchdog {
 public:
  void begin(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    deadline_ = Clock::now() + round_limit;
    changed_.notify_all();
  }

 private:
  void watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      const auto deadline = deadline_;
      changed_.wait_until(lock, stop, deadline, [&] { return deadline_ != deadline; });
      if (stop.stop_requested() || deadline_ != deadline) continue;
      std::printf("violated: a round ends within %d s\n  %s\n0 passed, 1 failed, 0 skipped\n",
                  static_cast<int>(round_limit.count()), what_.c_str());
      std::fflush(stdout);
      std::_Exit(1);
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string what_;
  Clock::time_point deadline_ = Clock::now() + round_limit;
  std::jthread thread_{[this](const std::stop_token& stop) { watch(stop); }};  // the last member, so it ends first
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  nni_soak::Invariants invariants{
      "sequence ids have no holes and none is there twice",
      "page() and load() agree",
      "small and large pages agree",
      "page() of one state gives those trials",
      "the store's counts add up",
      "the ranking of the store is that of a direct search",
      "no finished trial is lost or changed by a resume",
      "a trial whose end was told has ended in the store, with the same value",
      "no end is told twice",
      "each end is told in the run in which it came",
      "every progress report adds up",
      "progress never goes back",
      "status() adds up",
      "the summary's counts are those of the store",
      "the summary lists the trials of the store",
      "best() is right by a direct search",
      "an experiment that was not stopped is done, with every trial ended",
      "there are as many trials as were asked for",
      "never more trials at once than were asked for",
      "no run is called twice",
      "a call that began is a trial of the store, with the same parameters",
      "a trial ended as its call did",
      "every reported intermediate value is in the store once",
      "every reported final value is in the store once",
      "intermediate values are numbered without holes",
      "the store holds no value that no trial reported",
      "a suggestion comes from a space that was in force",
      "no suggestion has the id of another",
      "results from elsewhere are kept in their order, each once",
      "nothing is suggested twice, in a small space or by the grid",
      "nothing is suggested that was imported, in a small space or by the grid",
      "suggestions go on as without a resume",
      "a request is refused only when the experiment has ended",
      "records are waited for in vain only when the experiment has ended",
      "behind the end nothing is taken any more",
      "an experiment outlives one failed call of its store",
      "an experiment fails only when its store does",
      "a copy in another store is equal"};
  if (arguments.kills) {
    for (const auto& [kind, name] : nni_soak::kill_invariants()) invariants.add(name);
    for (const char* name : {nni_soak::manager_ends, nni_soak::manager_counts, nni_soak::search_goes_on})
      invariants.add(name);
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(arguments.seed));
  std::fflush(stdout);
  Watchdog watchdog;
  const auto begin = Clock::now();
  auto next_line = begin + std::chrono::seconds(30);
  std::uint64_t round = arguments.round.value_or(0);
  std::uint64_t done = 0;
  nni_soak::Kills killed;
  do {
    const std::uint64_t seed = seed_of_round(arguments.seed, round);
    const nni_soak::Plan plan = nni_soak::draw_plan(seed);
    const auto kills = arguments.kills ? nni_soak::draw_kill_plan(seed) : std::nullopt;
    const std::string what =
        "--seed " + std::to_string(arguments.seed) + " --round " + std::to_string(round) + ": " +
        (kills ? text_of(*kills) : text_of(plan));
    if (arguments.round) std::printf("%s\n", what.c_str());
    watchdog.begin(what);
    try {
      if (kills)
        nni_soak::KilledRound(*kills, invariants, killed).run();
      else
        nni_soak::Round(plan, invariants).run();
    } catch (const std::exception& problem) {
      std::printf("violated: %s\n  %s\n", problem.what(), what.c_str());
      invariants.print(true);
      return 1;
    }
    ++done;
    ++round;
    if (Clock::now() >= next_line) {
      std::printf("%4d s: %llu rounds, %llu checks\n",
                  static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count()),
                  static_cast<unsigned long long>(done), static_cast<unsigned long long>(invariants.checks()));
      std::fflush(stdout);
      next_line += std::chrono::seconds(30);
    }
  } while (!arguments.round && Clock::now() - begin < arguments.time);
  std::printf("%llu rounds", static_cast<unsigned long long>(done));
  if (arguments.kills)
    std::printf(
        ", %llu of them with kills: %llu managers, %llu keepers", static_cast<unsigned long long>(killed.rounds),
        static_cast<unsigned long long>(killed.managers), static_cast<unsigned long long>(killed.keepers));
  std::printf("\n");
  invariants.print(false);
  return 0;
}
