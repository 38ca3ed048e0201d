#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni {

/// What an experiment came to.
class Summary {
 public:
  Summary() = default;

  /// The succeeded trial with the best final value, by the experiment's direction; null when none has a value. It belongs
  /// to this object, so `experiment.run().best()` is refused: keep the summary, or call `best_or_throw`.
  [[nodiscard]] const TrialJobDetail* best() const& noexcept { return top.empty() ? nullptr : &top.front(); }
  const TrialJobDetail* best() const&& = delete;  ///< would return a pointer into a temporary

  /// Returns the trial that `best` points to.
  /// @throws Error  `Errc::not_found` when no trial succeeded with a value, with the reason and the first failure's text
  NNI_LAZY [[nodiscard]] const TrialJobDetail& best_or_throw() const&;

  /// Returns a copy, as this object is about to go: `std::cout << experiment.run().best_or_throw().parameters`.
  /// @throws Error  `Errc::not_found`, likewise
  NNI_LAZY [[nodiscard]] TrialJobDetail best_or_throw() &&;

  /// Returns the number of trials that ended with a status.
  [[nodiscard]] std::uint64_t count(TrialJobStatus trial_status) const noexcept {
    return by_status[static_cast<std::size_t>(trial_status)];
  }

  /// Everything above and the listed trials as one JSON object.
  NNI_LAZY [[nodiscard]] std::string to_json() const;

  /// The listed trials, one line each: id, sequence, status, value, duration in seconds, then one column per parameter.
  NNI_LAZY [[nodiscard]] std::string to_csv() const;

  ExperimentId id;                                          ///< which experiment
  std::string name;                                         ///< for people
  std::filesystem::path directory;                          ///< empty when nothing was written
  ExperimentStatus status = ExperimentStatus::initialized;  ///< how it ended
  std::string message;                                      ///< why it is in `error`
  Direction direction = minimize;                           ///< of the final value
  std::uint64_t seed = 0;                                   ///< of everything that was drawn; draws it again
  Duration duration{};                                      ///< active time, previous sessions included
  std::uint64_t ordered = 0;                                ///< trials ever ordered
  std::uint64_t finished = 0;                               ///< trials that ended
  std::uint64_t by_status[8] = {};                          ///< of these, by `TrialJobStatus`
  std::uint64_t unfitting = 0;         ///< results that do not fit the search space in force at the end
  std::uint64_t garbage_messages = 0;  ///< messages that could not be understood
  std::uint64_t late_messages = 0;     ///< messages that arrived after the end of their run
  std::uint64_t without_value = 0;     ///< succeeded trials whose final result has no finite number, or that have none
  std::string no_value;                ///< why the first of these has none, for people
  std::vector<TrialJobDetail> top;     ///< the best trials, best first, 10 at most
  std::vector<TrialJobDetail> failures;  ///< the first failed trials, 10 at most
  std::vector<TrialJobDetail> trials;    ///< in the order of their ids, `summary_trials` at most
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/summary_inl.hpp>
#endif
