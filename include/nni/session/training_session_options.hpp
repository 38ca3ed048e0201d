#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/fwd.hpp>

#include <nni/core/log.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/experiment/options.hpp>

namespace nni {

/// Settings of a training session. Every member has a default, so name only what matters. Those with a key of NNI's
/// original interface can be set by `TrainingSession::set_cluster_metadata` too.
struct TrainingSessionOptions {
  std::string id{};                   ///< `experimentId`: 1 to 64 letters, digits, `-`, `_`; empty: a random one
  std::filesystem::path directory{};  ///< parent of the session's directory; empty: `nni-experiments`
  Resume resume = Resume::never;      ///< of a session with this id, in a data store that keeps its records

  std::size_t concurrency = 100'000;             ///< live trials at most, 1 to 100,000; further ones wait
  std::optional<Duration> max_trial_duration{};  ///< above zero: a trial that runs longer is EARLY_STOPPED

  Command trial_command{};                 ///< `trial_config`, command: of trials whose form has none
  std::filesystem::path code_directory{};  ///< `trial_config`, codeDir: where commands start; empty: the current one
  std::optional<int> trial_gpu_number{};   ///< `trial_config`, gpuNum: absent: inherit; 0: none; n: that many
  EnvironmentVariables environment{};      ///< added to the environment of each trial

  /// How long the training service may start nothing, or be away, without a break, above zero; then the session ends with
  /// an error, and can be resumed. Absent: no limit.
  std::optional<Duration> platform_outage_limit = std::chrono::minutes(10);

  bool multi_phase = false;             ///< `multiPhase`: running trials may be sent further parameters
  bool version_check = true;            ///< `version_check`: for services that install a trial keeper of NNI's
  std::string log_collection = "none";  ///< `log_collection`, `http` or `none`: likewise
  std::string
      nni_manager_ip{};  ///< `nni_manager_ip`: host that trials are told, for transports that listen; empty: theirs

  bool handle_signals = false;  ///< Ctrl-C and SIGTERM end the session while it runs; for one session of a program
  Duration shutdown_limit = std::chrono::seconds(60);  ///< the longest that each step of the end may take, above zero
  std::size_t threads = 0;                             ///< threads for blocking calls; 0: by the machine, 2 to 8
  LogSink log{};                                       ///< where log lines go; empty: nowhere
  LogLevel log_level = LogLevel::info;                 ///< what is below it is not logged
};

namespace detail {

/// The options of the experiment that a session is.
[[nodiscard]] ExperimentOptions experiment_options(const TrainingSessionOptions& options);

/// The keys of NNI's original interface that a session binds to its options.
inline constexpr std::string_view session_keys[] = {
    "experimentId", "trial_config", "multiPhase", "nni_manager_ip", "version_check", "log_collection"};

/// True for a key of `session_keys`.
[[nodiscard]] bool is_session_key(std::string_view key) noexcept;

/// Binds a value to options.
/// @param value  JSON, or a string that holds the JSON text of an object, as NNI's launchers send it
/// @throws ConfigError  naming key, value and the accepted form; the options stay as they were
void bind_metadata(TrainingSessionOptions& options, std::string_view key, const boost::json::value& value);

/// The inverse: what the options say under a key, in the accepted form.
[[nodiscard]] boost::json::value metadata_of(const TrainingSessionOptions& options, std::string_view key);

/// The error for a key that neither the session nor its service has.
/// @param service_keys  those of the service
[[noreturn]] void throw_unknown_metadata(std::string_view key, std::string_view value, std::string_view platform,
                                         std::vector<std::string_view> service_keys);

}  // namespace detail

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/session/training_session_options_inl.hpp>
#endif
