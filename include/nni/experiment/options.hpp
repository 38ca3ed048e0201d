#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nni/core/log.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/search_space.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// What to do when the experiment's id names one that exists.
enum class Resume {
  never,      ///< it must be new; an existing one is an error that says how to go on
  if_exists,  ///< go on with it, or start it
  always      ///< it must exist
};

/// Settings of an experiment. Every member has a default, so name only what matters:
/// `nni::ExperimentOptions{.name = "mnist", .direction = nni::maximize, .max_trials = 100}`.
struct ExperimentOptions {
  std::string name{};                 ///< for people; empty: the id
  std::string id{};                   ///< 1 to 64 letters, digits, `-`, `_`; empty: a random one
  std::filesystem::path directory{};  ///< parent of the experiment's directory; empty: `nni-experiments`
  Resume resume = Resume::never;

  Direction direction = minimize;  ///< which final results are better
  std::size_t concurrency = 1;     ///< live trials at most, 1 to 100,000
  std::optional<std::uint64_t>
      max_trials{};                        ///< trials in all; absent: until the tuner has no more or a limit is reached
  std::optional<Duration> max_duration{};  ///< active time after which no trial starts; running ones end by themselves
  std::optional<Duration> max_trial_duration{};  ///< a trial that runs longer is stopped as EARLY_STOPPED

  Command trial_command{};                 ///< a shell line or a list of arguments; for services that run commands
  std::filesystem::path code_directory{};  ///< where the command starts; empty: the current directory
  EnvironmentVariables environment{};      ///< added to the environment of each trial
  std::optional<int> trial_gpu_number{};   ///< absent: inherit; 0: none; n: that many

  bool handle_signals = true;  ///< Ctrl-C and SIGTERM stop in two phases while `run()` is active
  Duration shutdown_limit = std::chrono::seconds(60);
  std::size_t threads = 0;              ///< threads for blocking calls; 0: by the machine, 2 to 8
  std::size_t summary_trials = 10'000;  ///< trials that the summary lists at most
  LogSink log{};                        ///< where log lines go; empty: nowhere
  LogLevel log_level = LogLevel::info;
};

/// Checks what can be checked without a platform.
///
/// @param needs_command  the service runs commands
/// @throws ConfigError   with every problem: key path, value, and what would be right
void check(const ExperimentOptions& options, bool needs_command);

/// The options and the search space as NNI's clients read them from a store: JSON text with NNI's keys.
[[nodiscard]] std::string describe_params(const ExperimentOptions& options, const SearchSpace& space);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/impl/options.ipp>
#endif
