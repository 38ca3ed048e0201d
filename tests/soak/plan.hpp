#pragma once

/// @file
/// What happens in a round: a random experiment, and what is done to it.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <nni/core/objectives.hpp>
#include <nni/space/search_space.hpp>

namespace nni_soak {

enum class StoreKind { memory, journal, sqlite };
enum class TunerKind { random, grid, tpe };

inline const char* to_string(StoreKind kind) {
  constexpr const char* names[] = {"memory", "journal", "sqlite"};
  return names[static_cast<int>(kind)];
}
inline const char* to_string(TunerKind kind) {
  constexpr const char* names[] = {"random", "grid", "tpe"};
  return names[static_cast<int>(kind)];
}

/// Something that is asked of a running experiment.
struct Step {
  enum class What { set_concurrency, set_max_trials, update_space, pause, resume, cancel, status, recorded, stop };
  What what = What::status;
  std::size_t after = 0;    ///< calls of trials that have begun before, in this run
  std::uint64_t value = 0;  ///< of what is set; of which trial is cancelled
};

/// One run of the experiment: the first, or a resume.
struct Phase {
  TunerKind tuner = TunerKind::random;
  std::size_t concurrency = 1;
  std::uint64_t max_trials = 1;
  std::size_t space = 0;
  bool assesses = false;            ///< `MedianStop` judges the trials
  std::size_t imports = 0;          ///< so many results from elsewhere are told
  std::size_t import_space = 0;     ///< that they come from
  std::uint64_t import_series = 0;  ///< another phase with the same series has some of the same results
  bool retry_failed = false;
  std::uint32_t max_retries = 0;
  bool limits_duration = false;
  std::optional<std::size_t> fault{};  ///< the store's n-th write, sync or truncation after the start fails once
  bool no_space = false;               ///< by a full disk rather than by an error of the device
  std::vector<Step> steps{};
};

struct Plan {
  std::uint64_t seed = 0;
  StoreKind store = StoreKind::memory;
  nni::Direction direction = nni::minimize;
  std::vector<Phase> phases{};
  std::optional<StoreKind> convert_to{};
};

/// The spaces that rounds choose from. Some are small, so that they come to an end.
constexpr std::size_t space_count = 8;

inline nni::SearchSpace space_number(std::size_t number) {
  using nni::branch, nni::choice, nni::loguniform, nni::normal, nni::quniform, nni::randint, nni::uniform;
  switch (number) {
    case 0: return {uniform("x", -5.0, 5.0)};
    case 1: return {uniform("x", -2.0, 5.0), choice("kind", {"a", "b", "c \"quoted\""})};
    case 2: return {choice("a", {1, 2, 3}), randint("n", 0, 5), choice("flag", {true, false})};
    case 3:
      return {
          choice("model", {branch("deep", {loguniform("lr", 1e-4, 1e-1)}), branch("flat")}), uniform("y", 0.0, 1.0)};
    case 4: return {quniform("q", 0.0, 10.0, 1.0), choice("a", {1, 2, 3})};
    case 5: return {normal("n", 0.0, 1.0), uniform("u", 0.0, 1.0), randint("k", -3, 3)};
    // What comes from 2 may fit these two, with more than they ask for.
    case 6: return {choice("a", {2, 3, 4}), randint("n", 2, 7)};
    default: return {choice("flag", {false, true}), choice("a", {1, 2, 3, 4})};
  }
}

/// A small space, or any.
inline std::size_t draw_space(std::mt19937_64& random, bool small) {
  constexpr std::size_t small_ones[] = {2, 4, 6, 7};
  return small ? small_ones[random() % std::size(small_ones)] : random() % space_count;
}

inline std::vector<Step> draw_steps(std::mt19937_64& random, std::uint64_t trials, bool small) {
  std::vector<Step> steps;
  std::size_t after = 0;
  for (std::uint64_t count = random() % 7; count > 0; --count) {
    after += random() % 6;
    const auto add = [&](Step::What what, std::uint64_t value = 0) { steps.push_back(Step{what, after, value}); };
    switch (random() % 10) {
      case 0:
      case 1: add(Step::What::set_concurrency, 1 + random() % 8); break;
      case 2: add(Step::What::set_max_trials, 1 + random() % (2 * trials)); break;
      case 3: add(Step::What::update_space, draw_space(random, small)); break;
      case 4:
      case 5:
        add(Step::What::pause);
        if (random() % 2 == 0) add(Step::What::recorded);
        if (random() % 3 == 0) add(Step::What::set_concurrency, 1 + random() % 8);
        if (random() % 6 == 0) add(Step::What::stop);
        add(Step::What::resume);
        break;
      case 6:
      case 7: add(Step::What::cancel, 1 + random() % (trials + 1)); break;
      case 8: add(Step::What::status); break;
      default: add(Step::What::recorded); break;
    }
  }
  if (random() % 3 == 0) steps.push_back(Step{Step::What::stop, after + random() % (trials + 1)});
  return steps;
}

inline Plan draw_plan(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  Plan plan;
  plan.seed = seed;
  plan.store = static_cast<StoreKind>(random() % 3);
  plan.direction = one_in(2) ? nni::minimize : nni::maximize;
  Phase phase;
  phase.tuner = static_cast<TunerKind>(random() % 3);
  const bool small = one_in(2);
  phase.space = draw_space(random, small);
  phase.concurrency = 1 + random() % 8;
  phase.max_trials = 1 + random() % 30;
  phase.assesses = one_in(4);
  if (one_in(5)) phase.max_retries = 1 + static_cast<std::uint32_t>(random() % 2);
  phase.limits_duration = one_in(7);
  const bool has_faults = plan.store != StoreKind::memory && one_in(3);
  for (std::uint64_t count = 1 + random() % 3; count > 0; --count) {
    phase.steps = draw_steps(random, phase.max_trials, small);
    phase.imports = one_in(4) ? 1 + random() % 12 : 0;
    phase.import_space = one_in(2) ? phase.space : draw_space(random, small);
    phase.import_series = random() % 2;
    phase.fault = has_faults && one_in(2) ? std::optional<std::size_t>(1 + random() % 60) : std::nullopt;
    phase.no_space = one_in(2);
    plan.phases.push_back(phase);
    if (!one_in(3)) phase.max_trials += 1 + random() % 12;
    if (one_in(2)) phase.concurrency = 1 + random() % 8;
    if (one_in(3)) phase.tuner = static_cast<TunerKind>(random() % 3);
    if (one_in(3)) phase.space = draw_space(random, small);
    if (one_in(4)) phase.assesses = !phase.assesses;
    phase.retry_failed = one_in(4);
  }
  if (one_in(4)) plan.convert_to = static_cast<StoreKind>(random() % 3);
  return plan;
}

/// A round in one line, for people.
inline std::string text_of(const Plan& plan) {
  std::string text = std::string(to_string(plan.store)) + ' ' + nni::to_string(plan.direction);
  for (const Phase& phase : plan.phases) {
    text += "; " + std::string(to_string(phase.tuner)) + " space " + std::to_string(phase.space) + " concurrency " +
            std::to_string(phase.concurrency) + " max_trials " + std::to_string(phase.max_trials);
    if (phase.max_retries != 0) text += " max_retries " + std::to_string(phase.max_retries);
    if (phase.limits_duration) text += " max_trial_duration";
    if (phase.assesses) text += " median_stop";
    if (phase.imports != 0)
      text += " imports " + std::to_string(phase.imports) + " of space " + std::to_string(phase.import_space) +
              " series " + std::to_string(phase.import_series);
    if (phase.retry_failed) text += " retry_failed";
    if (phase.fault)
      text += (phase.no_space ? " full disk at call " : " fault at call ") + std::to_string(*phase.fault);
    constexpr const char* names[] = {
        "concurrency", "max_trials", "space", "pause", "resume", "cancel", "status", "recorded", "stop"};
    for (const Step& step : phase.steps)
      text += " @" + std::to_string(step.after) + ' ' + names[static_cast<int>(step.what)] + ' ' +
              std::to_string(step.value);
  }
  return text;
}

}  // namespace nni_soak
