#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <nni/assessing/median_stop.hpp>
#include <nni/assessing/none.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/tuner.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace digits {

/// Returns the search space.
inline nni::SearchSpace search_space() {
  return nni::SearchSpace{
      nni::loguniform("learning_rate", 1e-4, 3e-2), nni::randint("hidden_units", 16, 193),
      nni::choice("batch_size", {16, 32, 64, 128}), nni::choice("activation", {"relu", "tanh", "sigmoid"}),
      nni::loguniform("weight_decay", 1e-4, 1.0)};
}

/// A tuner that is selected at run time. The policies of an experiment are fixed at compile time; a policy that
/// holds one of several others defers the choice.
class ChosenTuner {
 public:
  using role = nni::role::tuner;

  /// @param name  `tpe` or `random`
  ChosenTuner(const std::string& name, nni::Seed seed) : tuner_(nni::tuning::Tpe{digits::search_space(), seed}) {
    if (name == "random") tuner_ = nni::tuning::Random{digits::search_space(), seed};
  }

  [[nodiscard]] const nni::SearchSpace& search_space() const {
    return std::visit([](const auto& tuner) -> const nni::SearchSpace& { return tuner.search_space(); }, tuner_);
  }
  [[nodiscard]] std::uint64_t seed() const {
    return std::visit([](const auto& tuner) { return tuner.seed(); }, tuner_);
  }
  void reseed(std::uint64_t seed) {
    std::visit([seed](auto& tuner) { tuner.reseed(seed); }, tuner_);
  }
  void start(const nni::SearchSpace& space, const nni::Objectives& goals) {
    std::visit([&](auto& tuner) { tuner.start(space, goals); }, tuner_);
  }
  void update_search_space(const nni::SearchSpace& space) {
    std::visit([&](auto& tuner) { tuner.update_search_space(space); }, tuner_);
  }
  std::optional<nni::Parameters> generate(nni::ParameterId id) {
    return std::visit([id](auto& tuner) { return tuner.generate(id); }, tuner_);
  }
  void observe(const nni::TrialOutcome& outcome) {
    std::visit([&](auto& tuner) { tuner.observe(outcome); }, tuner_);
  }

 private:
  std::variant<nni::tuning::Tpe, nni::tuning::Random> tuner_;
};
static_assert(nni::Tuner<ChosenTuner>);

/// An assessor that stops trials early, or never.
class ChosenAssessor {
 public:
  using role = nni::role::assessor;

  explicit ChosenAssessor(bool stop_early) {
    // The first epochs mean little: a small learning rate starts slowly and may end well.
    if (stop_early) assessor_ = nni::assessing::MedianStop{{.start_step = 5}};
  }

  void start(const nni::Objectives& goals) {
    std::visit([&](auto& assessor) { assessor.start(goals); }, assessor_);
  }
  nni::Verdict assess(const nni::RunId& run, std::span<const double> history) {
    return std::visit([&](auto& assessor) { return assessor.assess(run, history); }, assessor_);
  }
  void trial_ended(const nni::RunId& run, bool succeeded) {
    std::visit([&](auto& assessor) { assessor.trial_ended(run, succeeded); }, assessor_);
  }

 private:
  std::variant<nni::assessing::None, nni::assessing::MedianStop> assessor_;
};
static_assert(nni::Assessor<ChosenAssessor>);

}  // namespace digits
