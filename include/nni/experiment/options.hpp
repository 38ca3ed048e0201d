#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nni/core/error.hpp>
#include <nni/core/log.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/retry.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

/// What to do when the experiment's id names one that exists.
enum class Resume {
  never,      ///< it must be new; an existing one is an error that says how to go on
  if_exists,  ///< go on with it, or start it
  always      ///< it must exist
};

/// Settings of an experiment.
///
/// When an experiment is resumed, `concurrency`, `max_trials` and `max_duration` may have been changed by a `Control`
/// while it ran. An option that says something else than it did at the last start wins; one that says the same leaves
/// the change in force. All others are what these options say now. Every member has a default, so name only what matters:
/// `nni::ExperimentOptions{.name = "mnist", .direction = nni::maximize, .max_trials = 100}`.
struct ExperimentOptions {
  std::string name{};  ///< for people; empty: the id
  std::string id{};    ///< 1 to 64 letters, digits, `-`, `_`; empty: a random one
  /// Parent of the experiment's directory; empty: the one of the data store, or `nni-experiments`.
  std::filesystem::path directory{};
  Resume resume = Resume::never;  ///< what to do with an experiment of this id that exists

  Direction direction = minimize;  ///< which final results are better
  std::size_t concurrency = 1;     ///< live trials at most, 1 to 100,000
  /// Trials in all, 1 or more; absent: until the tuner has no more or a limit is reached.
  std::optional<std::uint64_t> max_trials{};
  /// Active time, above zero, after which no trial starts; running ones end by themselves. Absent: no limit.
  std::optional<Duration> max_duration{};
  /// A trial that runs longer, above zero, is stopped as EARLY_STOPPED. Absent: no limit.
  std::optional<Duration> max_trial_duration{};

  /// Further attempts of a trial after an end that `retry_on` names; 0: none, but a run that the platform lost is then
  /// repeated at once, at most `max_losses` times.
  std::uint32_t max_retries = 0;
  /// Runs of a trial that the platform may lose before the trial counts as failed, where there are no retries. Losses
  /// while no manager was there, because that had died, do not count.
  std::uint32_t max_losses = 3;
  RetryOn retry_on = RetryOn::losses;  ///< which ends of a run are followed by another attempt
  /// Pause before the first retry, zero for none; it doubles with each further one.
  Duration retry_backoff = std::chrono::seconds(1);
  Duration retry_backoff_limit = std::chrono::minutes(10);  ///< the longest pause, not below `retry_backoff`
  /// Runs that could not be started, in a row from the start of the experiment on, after which it ends with the status
  /// ERROR and the last reason; 0: never. A run counts that the platform could not start or no machine fits, or that exits
  /// with 126 or 127, which is how shells say that a program cannot be executed or found. Once a run has reported
  /// anything, or has ended by itself in another way, no failure counts until the next start.
  std::uint32_t max_failed_starts = 20;
  /// How long the training service may start nothing, or be away, without a break, above zero; then the experiment ends
  /// with the status ERROR, and can be resumed. Trials that could not be started meanwhile wait, at no cost; while other
  /// trials run, failed starts alone do not end it. Absent: no limit.
  std::optional<Duration> platform_outage_limit = std::chrono::minutes(10);
  bool retry_failed = false;  ///< on a resume trials that had failed run again, as their next attempts

  Command trial_command{};                 ///< a shell line or a list of arguments; for services that run commands
  std::filesystem::path code_directory{};  ///< where the command starts; empty: the current directory
  EnvironmentVariables environment{};      ///< added to the environment of each trial
  std::optional<int> trial_gpu_number{};   ///< absent: inherit; 0: none; n: that many

  bool handle_signals = true;  ///< Ctrl-C and SIGTERM stop in two phases while `run()` is active
  Duration shutdown_limit = std::chrono::seconds(60);  ///< the longest that each step of the end may take, above zero
  std::size_t threads = 0;                             ///< threads for blocking calls; 0: by the machine, 2 to 8
  std::size_t summary_trials = 10'000;                 ///< trials that the summary lists at most
  LogSink log{};                                       ///< where log lines go; empty: nowhere
  LogLevel log_level = LogLevel::info;                 ///< what is below it is not logged
};

/// Checks what can be checked without a platform.
///
/// @param options         to check
/// @param needs_command   the service runs commands: true asks for a `trial_command`, false refuses one
/// @param hands_out_gpus  the scheduler can give devices to trials: false refuses a `trial_gpu_number` above zero
/// @throws ConfigError    with every problem: key path, value, and what would be right
void check(const ExperimentOptions& options, bool needs_command, bool hands_out_gpus = true);

namespace detail {

/// @name The checks of single options, for changes while an experiment runs.
/// @{
void check_concurrency(std::size_t trials, ProblemList& problems);
void check_max_trials(const std::optional<std::uint64_t>& trials, ProblemList& problems);
void check_duration(const char* key, const std::optional<Duration>& duration, ProblemList& problems);
/// Why so many GPUs cannot be asked of a scheduler that counts none.
[[nodiscard]] std::string no_gpus(int wanted);
/// @}

/// True when `params`, which `describe_params` wrote at an earlier start, name the other direction.
[[nodiscard]] bool turns_direction(const std::string& params, Direction now);

}  // namespace detail

/// The options and the search space as NNI's clients read them from a store: JSON text with NNI's keys.
[[nodiscard]] std::string describe_params(const ExperimentOptions& options, const SearchSpace& space);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/options_inl.hpp>
#endif
