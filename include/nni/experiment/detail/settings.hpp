#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nni/core/time.hpp>
#include <nni/experiment/options.hpp>
#include <nni/space/search_space.hpp>

namespace nni::detail {

/// What can be changed while an experiment runs, and what it is when it is resumed.
///
/// Two versions are recorded: what the options said at the last start, and what is in force. A resume compares its own
/// options with the former: what the user has edited since wins, and what is as it was leaves changes made while it ran
/// in force. So a change survives a kill of the process, and an edit of the program is never ignored.
class Settings {
 public:
  /// Limits that options and `Control` can set.
  struct Limits {
    std::size_t concurrency = 1;
    std::optional<std::uint64_t> max_trials{};
    std::optional<Duration> max_duration{};
  };

  /// A search space, and the sequence id of the first trial that may come from it.
  struct Epoch {
    std::uint64_t from = 0;
    std::string space{};  ///< NNI's form as JSON text
  };

  Settings() = default;

  /// Of a new experiment.
  Settings(const ExperimentOptions& options, const SearchSpace& space);

  /// Of an experiment that is resumed.
  /// @param recorded  what `to_json` gave; empty: nothing was recorded
  /// @param ordered   trials ordered so far
  /// @throws Error    `Errc::store_corrupt` when it cannot be read
  Settings(const std::string& recorded, const ExperimentOptions& options, const SearchSpace& space,
           std::uint64_t ordered);

  /// The space in force.
  [[nodiscard]] SearchSpace space() const;

  /// From now on suggestions come from another space.
  void begin_space(const SearchSpace& space, std::uint64_t ordered);

  /// True when earlier trials may not fit the space in force.
  [[nodiscard]] bool changed_space() const noexcept { return spaces.size() > 1; }

  [[nodiscard]] std::string to_json() const;

  Limits given;
  Limits in_force;
  std::string given_space;
  std::vector<Epoch> spaces;  ///< at least one; the last is in force
  bool paused = false;        ///< by the user

  /// Random id of a start with nothing recorded, kept over resumes: by it a service tells runs of this experiment from
  /// those of an earlier one with the same id. Empty where it was not recorded.
  std::string life;
};

/// The limits that options say.
[[nodiscard]] Settings::Limits limits_of(const ExperimentOptions& options);

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/experiment/detail/settings_inl.hpp>
#endif
