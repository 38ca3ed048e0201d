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

/// A tuner that also suggests plain values, without JSON text.
///
/// Both hooks are optional. A model promises that `suggest` is equivalent to `generate`, and `learn` to `observe`:
/// `suggest` returns false where `generate` returns nothing, and `learn` without a value reports a failure.
template <class T>
concept PointTuner =
    Tuner<T> &&
    requires(T& tuner, const T& same, ParameterId id, Point& into, const Point& point, std::optional<double> value) {
      { tuner.suggest(id, into) } -> std::same_as<bool>;
      { tuner.learn(id, point, value) } -> std::same_as<void>;
      { same.search_space() } -> std::convertible_to<const SearchSpace&>;
    };

/// An ask-and-tell interface to a tuner: no experiment, no records, no Asio.
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
/// Several trials may be asked for before the first result, and results may come in any order. Trials must not outlive
/// their study.
///
/// @tparam T  a tuner that owns its search space: `const SearchSpace& search_space() const`
template <class T>
class AskTell {
  static_assert(Tuner<T>, "the type does not model nni::Tuner");

 public:
  /// Type of the values, read with `get<double>("x")`; without JSON text where the tuner models `PointTuner`.
  using parameters_type = std::conditional_t<PointTuner<T>, Suggested, Parameters>;

  /// A suggestion.
  struct Trial {
    ParameterId id;              ///< counted from 0
    parameters_type parameters;  ///< values to evaluate
  };

  /// The best suggestion so far.
  struct Best {
    ParameterId id;              ///< id of the suggestion
    parameters_type parameters;  ///< its values
    double value = 0.0;          ///< its result
  };

  /// @param tuner      started here with its own space
  /// @param direction  the better direction
  /// @throws ConfigError  if the tuner does not support its space
  explicit AskTell(T tuner, Direction direction = minimize) : tuner_(std::move(tuner)), goals_(direction) {
    const SearchSpace space = tuner_.search_space();
    tuner_.start(space, goals_);
  }

  AskTell(const AskTell&) = delete;
  AskTell& operator=(const AskTell&) = delete;

  /// Returns the next suggestion; nothing if the tuner has none, possibly only until the next result.
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

  /// Returns the next suggestion.
  /// @throws Error  `Errc::not_found` if the tuner has none
  [[nodiscard]] Trial ask() {
    std::optional<Trial> trial = try_ask();
    if (!trial) throw Error(Errc::not_found, "the tuner has no more suggestions; use try_ask() if that may happen");
    return *std::move(trial);
  }

  /// Reports the result of a suggestion (`trial`, from `ask`). A value that is not finite counts as a failure.
  /// @throws Error  `Errc::protocol` if this suggestion has a result already
  void tell(const Trial& trial, double value) {
    if (!std::isfinite(value)) return tell_failed(trial);
    settle(trial.id);
    learn(trial, value);
    if (!best_ || goals_.better(value, best_->value)) best_.emplace(Best{trial.id, trial.parameters, value});
  }

  /// Reports that a suggestion has no result.
  /// @throws Error  `Errc::protocol` if this suggestion has a result already
  void tell_failed(const Trial& trial) {
    settle(trial.id);
    learn(trial, std::nullopt);
  }

  /// Returns the best suggestion so far, nothing before the first result.
  [[nodiscard]] const std::optional<Best>& best() const noexcept { return best_; }

  /// Returns the number of suggestions so far.
  [[nodiscard]] std::uint64_t asked() const noexcept { return told_.size(); }

  /// Returns the wrapped tuner.
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
