#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nni/concepts/tuner.hpp>
#include <nni/core/error.hpp>
#include <nni/core/objectives.hpp>
#include <nni/space/search_space.hpp>
#include <nni/tuning/suggested.hpp>

namespace nni::tuning {

/// A tuner that also answers with plain values, without any JSON text.
///
/// The two hooks are optional. A model promises that `suggest` and `generate`, and `learn` and `observe`, do the
/// same: `suggest` answers false where `generate` answers nothing, and `learn` without a value tells of a failure.
template <class T>
concept PointTuner =
    Tuner<T> &&
    requires(T& tuner, const T& same, ParameterId id, Point& into, const Point& point, std::optional<double> value) {
      { tuner.suggest(id, into) } -> std::same_as<bool>;
      { tuner.learn(id, point, value) } -> std::same_as<void>;
      { same.search_space() } -> std::convertible_to<const SearchSpace&>;
    };

/// Drives a tuner by a plain loop: no experiment, no records, no Asio.
///
/// @code
/// nni::tuning::AskTell study{nni::tuning::Tpe{space}};
/// for (int round = 0; round < 100; ++round) {
///   auto trial = study.ask();
///   const double x = trial.parameters.get<double>("x");
///   study.tell(trial, (x - 2.0) * (x - 2.0));
/// }
/// std::cout << study.best()->parameters << '\n';
/// @endcode
///
/// Several trials may be asked before the first is told, and they may be told in any order. Trials must not outlive
/// the study that they came from.
///
/// @tparam T  a tuner that brings its search space: `const SearchSpace& search_space() const`
template <class T>
class AskTell {
  static_assert(Tuner<T>, "the type does not model nni::Tuner");

 public:
  /// Values with `get<double>("x")`: read directly from the tuner where it models `PointTuner`.
  using parameters_type = std::conditional_t<PointTuner<T>, Suggested, Parameters>;

  /// One suggestion.
  struct Trial {
    ParameterId id;              ///< counted from 0
    parameters_type parameters;  ///< what to try
  };

  /// The best suggestion so far.
  struct Best {
    ParameterId id;              ///< which suggestion
    parameters_type parameters;  ///< what was tried
    double value = 0.0;          ///< what it gave
  };

  /// @param tuner      is started here with its own space
  /// @param direction  which values are better
  /// @throws ConfigError  when the tuner cannot search its space
  explicit AskTell(T tuner, Direction direction = minimize) : tuner_(std::move(tuner)), goals_(direction) {
    const SearchSpace space = tuner_.search_space();
    tuner_.start(space, goals_);
  }

  AskTell(const AskTell&) = delete;
  AskTell& operator=(const AskTell&) = delete;

  /// The next suggestion; nothing when the tuner has none, perhaps only until it is told a result.
  [[nodiscard]] std::optional<Trial> try_ask() {
    const ParameterId id{told_.size()};
    std::optional<Trial> trial;
    if constexpr (PointTuner<T>) {
      trial.emplace(Trial{id, Suggested(tuner_.search_space())});
      if (!tuner_.suggest(id, trial->parameters.point())) trial.reset();
    } else if (std::optional<Parameters> parameters = tuner_.generate(id)) {
      trial.emplace(Trial{id, *std::move(parameters)});
    }
    if (trial) told_.push_back(false);
    return trial;
  }

  /// The next suggestion.
  /// @throws Error  `Errc::not_found` when the tuner has none
  [[nodiscard]] Trial ask() {
    std::optional<Trial> trial = try_ask();
    if (!trial)
      throw Error(Errc::not_found, "the tuner has nothing more to suggest; use try_ask() where that may happen");
    return *std::move(trial);
  }

  /// Tells the result of a suggestion (`trial`, from `ask`). A value that is not finite counts as a failure.
  /// @throws Error  `Errc::protocol` when this suggestion has a result already
  void tell(const Trial& trial, double value) {
    if (!std::isfinite(value)) return tell_failed(trial);
    settle(trial.id);
    learn(trial, value);
    if (!best_ || goals_.better(value, best_->value)) best_.emplace(Best{trial.id, trial.parameters, value});
  }

  /// Tells that a suggestion gave no result.
  /// @throws Error  `Errc::protocol` when this suggestion has a result already
  void tell_failed(const Trial& trial) {
    settle(trial.id);
    learn(trial, std::nullopt);
  }

  /// The best suggestion so far, nothing before the first result.
  [[nodiscard]] const std::optional<Best>& best() const noexcept { return best_; }

  /// Suggestions so far.
  [[nodiscard]] std::uint64_t asked() const noexcept { return told_.size(); }

  /// The tuner inside.
  [[nodiscard]] const T& tuner() const noexcept { return tuner_; }

 private:
  void settle(ParameterId id) {
    if (id.value >= told_.size() || told_[static_cast<std::size_t>(id.value)])
      throw Error(Errc::protocol, "suggestion " + std::to_string(id.value) +
                                      (id.value < told_.size() ? " has a result already" : " is not of this study"));
    told_[static_cast<std::size_t>(id.value)] = true;
  }

  void learn(const Trial& trial, std::optional<double> value) {
    if constexpr (PointTuner<T>) {
      tuner_.learn(trial.id, trial.parameters.point(), value);
    } else {
      TrialOutcome outcome;
      outcome.trial.number = trial.id.value + 1;
      outcome.parameter = trial.id;
      outcome.parameters = trial.parameters;
      outcome.status = value ? TrialJobStatus::succeeded : TrialJobStatus::failed;
      outcome.value = value;
      tuner_.observe(outcome);
    }
  }

  T tuner_;
  Objectives goals_;
  std::vector<bool> told_;
  std::optional<Best> best_;
};

}  // namespace nni::tuning
