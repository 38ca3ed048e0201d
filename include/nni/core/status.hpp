#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace nni {

/// State of a trial, with NNI's meaning. The last five are terminal.
enum class TrialJobStatus : std::uint8_t {
  unknown,        ///< the platform has not answered yet
  waiting,        ///< ordered, not started
  running,        ///< its process has started
  succeeded,      ///< ended with exit code 0
  failed,         ///< ended otherwise, or could not start
  user_canceled,  ///< stopped by the user
  sys_canceled,   ///< stopped with the experiment
  early_stopped   ///< stopped by the assessor or by a limit on its duration
};

/// Returns true for a final state.
[[nodiscard]] constexpr bool is_terminal(TrialJobStatus status) noexcept { return status >= TrialJobStatus::succeeded; }

/// Returns NNI's name in REST replies and stores, for instance `EARLY_STOPPED`.
[[nodiscard]] constexpr std::string_view to_string(TrialJobStatus status) noexcept {
  constexpr std::string_view names[] = {
      "UNKNOWN", "WAITING", "RUNNING", "SUCCEEDED", "FAILED", "USER_CANCELED", "SYS_CANCELED", "EARLY_STOPPED"};
  return names[static_cast<std::size_t>(status)];
}

/// Parses the result of `to_string(TrialJobStatus)`.
[[nodiscard]] constexpr std::optional<TrialJobStatus> parse_trial_status(std::string_view name) noexcept {
  for (std::uint8_t value = 0; value < 8; ++value)
    if (to_string(static_cast<TrialJobStatus>(value)) == name) return static_cast<TrialJobStatus>(value);
  return std::nullopt;
}

/// State of an experiment, with the names and the meaning of NNI 3.0.
enum class ExperimentStatus : std::uint8_t {
  initialized,          ///< nothing has been started
  running,              ///< trials are ordered and run
  no_more_trial,        ///< budget used up, trials still running
  tuner_no_more_trial,  ///< the tuner has no more suggestions
  done,                 ///< all ordered trials have ended
  error,                ///< cannot continue; the reason is recorded
  stopping,             ///< no trial starts; live ones are being stopped
  stopped,              ///< stopped before the budget was used up
  viewed                ///< opened read-only
};

/// Returns NNI's name, for instance `TUNER_NO_MORE_TRIAL`.
[[nodiscard]] constexpr std::string_view to_string(ExperimentStatus status) noexcept {
  constexpr std::string_view names[] = {
      "INITIALIZED", "RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL", "DONE", "ERROR",
      "STOPPING",    "STOPPED", "VIEWED"};
  return names[static_cast<std::size_t>(status)];
}

/// Parses the result of `to_string(ExperimentStatus)`.
[[nodiscard]] constexpr std::optional<ExperimentStatus> parse_experiment_status(std::string_view name) noexcept {
  for (std::uint8_t value = 0; value < 9; ++value)
    if (to_string(static_cast<ExperimentStatus>(value)) == name) return static_cast<ExperimentStatus>(value);
  return std::nullopt;
}

/// The reason for stopping a run.
enum class StopReason : std::uint8_t {
  user,           ///< requested by a user or a program: USER_CANCELED
  early_stop,     ///< requested by the assessor or tuner: EARLY_STOPPED
  time_limit,     ///< it ran longer than `max_trial_duration`: EARLY_STOPPED
  experiment_end  ///< the experiment stops; a resume runs the trial again
};

/// Returns the status of a trial that was stopped.
[[nodiscard]] constexpr TrialJobStatus status_of(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::user: return TrialJobStatus::user_canceled;
    case StopReason::early_stop:
    case StopReason::time_limit: return TrialJobStatus::early_stopped;
    case StopReason::experiment_end: return TrialJobStatus::sys_canceled;
  }
  return TrialJobStatus::user_canceled;
}

/// Returns the name in records and messages: `user`, `early stop`, `time limit`, `experiment end`.
[[nodiscard]] constexpr std::string_view to_string(StopReason reason) noexcept {
  constexpr std::string_view names[] = {"user", "early stop", "time limit", "experiment end"};
  return names[static_cast<std::size_t>(reason)];
}

}  // namespace nni
