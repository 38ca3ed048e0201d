#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nni/core/macros.hpp>

namespace nni {

/// The id of an experiment: eight lower-case letters and digits, or a name that the user chose.
class ExperimentId {
 public:
  ExperimentId() = default;
  /// @param text  usable as the name of a directory, see `random`
  explicit ExperimentId(std::string text) : value(std::move(text)) {}

  /// Returns a fresh id from the system's source of randomness.
  [[nodiscard]] static ExperimentId random();

  friend auto operator<=>(const ExperimentId&, const ExperimentId&) = default;

  std::string value;  ///< the text
};

/// The id of a trial within its experiment.
///
/// Trials are numbered from 1 in the order of creation; 0 is no trial. The text form is five or
/// more characters, a letter first, as NNI's clients expect. It comes from the number through a fixed bijection,
/// so two trials never share an id, and an id can be parsed back into its number.
struct TrialId {
  std::uint64_t number = 0;  ///< from 1; 0 is no trial

  /// Returns the position in the order of creation, from 0: the sequence id of NNI.
  [[nodiscard]] constexpr std::uint64_t sequence() const noexcept { return number - 1; }

  friend constexpr auto operator<=>(const TrialId&, const TrialId&) = default;
};

/// Returns the text form: five lower-case letters and digits for the first 43 million trials, one more for each following range.
[[nodiscard]] std::string to_string(TrialId trial);

/// Parses the result of `to_string`; nothing for a text that no trial has.
[[nodiscard]] std::optional<TrialId> parse_trial_id(std::string_view text);

/// The id of a run: one attempt of a trial. A retry is the next attempt of the same trial.
struct RunId {
  TrialId trial;              ///< the trial
  std::uint32_t attempt = 0;  ///< from 0

  friend constexpr auto operator<=>(const RunId&, const RunId&) = default;
};

/// Returns `abcde` for the first attempt, `abcde.1` for the second: a name for logs, directories and platform jobs.
[[nodiscard]] std::string to_string(RunId run);

/// Parses the result of `to_string(RunId)`.
[[nodiscard]] std::optional<RunId> parse_run_id(std::string_view text);

/// The id of a suggestion of a tuner, counted from 0. Suggestion k is a function of seed, k and the results so far.
struct ParameterId {
  std::uint64_t value = 0;  ///< from 0

  friend constexpr auto operator<=>(const ParameterId&, const ParameterId&) = default;
};

/// The id of imported results; no suggestion has it.
inline constexpr ParameterId imported_parameter{~std::uint64_t{0}};

/// The identifier of a run on its platform.
class JobId {
 public:
  JobId() = default;
  explicit JobId(std::string text) : value(std::move(text)) {}

  /// Returns true when there is no job.
  [[nodiscard]] bool empty() const noexcept { return value.empty(); }
  friend auto operator<=>(const JobId&, const JobId&) = default;

  std::string value;  ///< the text
};

/// The id of an environment (a worker) of a platform.
class EnvironmentId {
 public:
  EnvironmentId() = default;
  explicit EnvironmentId(std::string text) : value(std::move(text)) {}

  friend auto operator<=>(const EnvironmentId&, const EnvironmentId&) = default;

  std::string value;  ///< the text
};

}  // namespace nni

template <>
struct std::hash<nni::TrialId> {
  std::size_t operator()(nni::TrialId trial) const noexcept { return std::hash<std::uint64_t>{}(trial.number); }
};
template <>
struct std::hash<nni::RunId> {
  std::size_t operator()(nni::RunId run) const noexcept {
    return std::hash<std::uint64_t>{}(run.trial.number * 0x9e3779b97f4a7c15ULL + run.attempt);
  }
};

#if NNI_HEADER_ONLY
#include <nni/core/ids_inl.hpp>
#endif
