#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// Environment variables of a process: name to value.
using EnvironmentVariables = std::map<std::string, std::string>;

/// The command of a trial: a shell line, as in NNI, or a list of arguments that no shell interprets.
class Command {
 public:
  Command() = default;
  /// @param line  for `/bin/bash -c`
  Command(std::string line) : words_{std::move(line)}, shell_(true) {}  // NOLINT: reads as text
  /// @param line  for `/bin/bash -c`
  Command(const char* line) : Command(std::string(line)) {}  // NOLINT: reads as text
  /// @param arguments  the program, found in `PATH`, and its arguments
  Command(std::vector<std::string> arguments) : words_(std::move(arguments)) {}  // NOLINT: reads as a list
  /// @param arguments  the program, found in `PATH`, and its arguments; `{"a b"}` is a list of one
  Command(std::initializer_list<const char*> arguments) : words_(arguments.begin(), arguments.end()) {}

  /// Returns true if there is no command.
  [[nodiscard]] bool empty() const noexcept { return words_.empty() || (words_.size() == 1 && words_[0].empty()); }
  /// Returns true for a shell line, false for a list of arguments.
  [[nodiscard]] bool is_shell() const noexcept { return shell_; }

  /// Returns the argument vector to execute: `/bin/bash -c LINE` for a shell line.
  [[nodiscard]] std::vector<std::string> arguments() const {
    if (!shell_) return words_;
    std::vector<std::string> result;
    result.reserve(3);
    result.emplace_back("/bin/bash");
    result.emplace_back("-c");
    result.push_back(words_.front());
    return result;
  }

  /// Returns a readable form: the line, or the arguments joined by blanks.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + word;
    return text;
  }

 private:
  std::vector<std::string> words_;
  bool shell_ = false;
};

/// The submission of a run: everything that a training service needs to start it.
class TrialJobForm {
 public:
  TrialJobForm() = default;

  RunId run;                         ///< identity of the run
  ParameterId parameter;             ///< suggestion of the tuner
  Parameters parameters;             ///< verbatim
  Command command;                   ///< empty for callables
  std::string working_directory;     ///< working directory of the command; empty: the current directory
  EnvironmentVariables environment;  ///< added to the variables of the service
  ResourceRequest request;           ///< resources that the trial needs
  Placement placement;               ///< machine and devices that the scheduler granted
  Mount mount;                       ///< access to the storage of the experiment
};

/// Kind of end of the process, job or callable of a run.
enum class EndKind : std::uint8_t {
  exited,       ///< on its own, with an exit code
  signalled,    ///< by a signal that the library did not send
  killed,       ///< stopped by the library, for the reason `JobEnd::why`
  not_started,  ///< could not be started; see the message
  threw,        ///< a callable threw; the message is the text of the exception
  lost,         ///< lost by the platform or keeper; see the message
  /// The platform cannot start runs for now (no process, file or disk space, no connection): the run has not started and
  /// will not, and may be submitted again. Not recorded. The message names the missing resource.
  deferred
};

/// Returns the name in records: `exited`, `signalled`, `killed`, `not started`, `threw`, `lost`, `deferred`.
[[nodiscard]] constexpr std::string_view to_string(EndKind kind) noexcept {
  constexpr std::string_view names[] = {"exited", "signalled", "killed", "not started", "threw", "lost", "deferred"};
  return names[static_cast<std::size_t>(kind)];
}

/// The end of a run.
class JobEnd {
 public:
  JobEnd() = default;
  /// @param end_kind  kind of end
  /// @param number    exit code, or the number of the signal
  /// @param text      readable message
  explicit JobEnd(EndKind end_kind, int number = 0, std::string text = {})
      : kind(end_kind), code(number), message(std::move(text)) {}

  /// Returns true for exit code 0.
  [[nodiscard]] bool succeeded() const noexcept { return kind == EndKind::exited && code == 0; }

  EndKind kind = EndKind::exited;  ///< kind of end
  int code = 0;                    ///< exit code, or the number of the signal
  /// The reason for which the run was stopped, however it ended then; absent if it was not stopped.
  std::optional<StopReason> why;
  std::string message;  ///< readable text; empty where the code is sufficient
};

/// The recorded intent to submit a run, written before any external effect.
class Intent {
 public:
  Intent() = default;

  RunId run;             ///< trial and attempt
  TimePoint at{};        ///< wall time of the record
  JobId job;             ///< empty if the answer to the submission was not recorded
  bool started = false;  ///< its start was recorded
  Placement placement;   ///< machine and devices that it occupies
};

/// The state of a run on its platform, for instance for a restarted manager.
class JobReport {
 public:
  /// State of the run.
  enum class State : std::uint8_t {
    running,        ///< alive; its events follow
    ended,          ///< ended meanwhile, see `end`
    never_started,  ///< never submitted: submit it
    unknown         ///< the platform does not know: counts as lost
  };

  JobReport() = default;
  /// @param run_id     the run in question
  /// @param run_state  its state
  JobReport(RunId run_id, State run_state) : run(run_id), state(run_state) {}

  RunId run;                      ///< the run in question
  State state = State::unknown;   ///< its state
  JobId job;                      ///< its job on the platform; empty if it was never submitted
  TimePoint started{};            ///< zero if unknown
  TimePoint ended{};              ///< zero unless `ended`
  JobEnd end;                     ///< end of the run, for `ended`
  std::string url;                ///< page of the run, for users; empty if unknown
  std::string working_directory;  ///< directory of its output files; likewise
  std::vector<std::string> tags;  ///< labels of the platform; likewise
};

/// The outcome of a trial, as reported to a tuner.
class TrialOutcome {
 public:
  TrialOutcome() = default;

  TrialId trial;                                    ///< the trial
  ParameterId parameter;                            ///< suggestion of the tuner
  Parameters parameters;                            ///< the values, verbatim
  TrialJobStatus status = TrialJobStatus::unknown;  ///< final status
  /// The number of its final result, absent if it is not finite; for a trial that was stopped early without one, the
  /// last finite number among its intermediate results.
  std::optional<double> value;

  /// Returns true if the trial succeeded and has a value.
  [[nodiscard]] bool succeeded() const noexcept { return status == TrialJobStatus::succeeded && value.has_value(); }

  /// Returns true if there is a value to learn from, possibly the last one before an early stop.
  [[nodiscard]] bool informative() const noexcept {
    return value.has_value() && (status == TrialJobStatus::succeeded || status == TrialJobStatus::early_stopped);
  }
};

/// The details of a trial, with the fields of NNI's original interface.
class TrialJobDetail {
 public:
  TrialJobDetail() = default;

  TrialId trial;                                    ///< the trial
  std::uint32_t attempts = 0;                       ///< number of runs so far
  TrialJobStatus status = TrialJobStatus::unknown;  ///< current status
  ParameterId parameter;                            ///< suggestion of the tuner
  Parameters parameters;                            ///< its first values, verbatim
  std::uint32_t parameter_index = 0;  ///< index of the newest parameters: above 0 if the running trial received others
  std::optional<TimePoint> submit_time;    ///< wall time of its creation
  std::optional<TimePoint> start_time;     ///< start of its last run; absent before
  std::optional<TimePoint> end_time;       ///< end of its last run; absent before
  std::optional<std::string> final_value;  ///< JSON text of the first final result
  JobId job;                               ///< job of its last run on the platform
  std::vector<std::string> tags;           ///< labels of the platform for its last run
  std::string url;                         ///< page of its last run, for users
  std::string working_directory;           ///< directory of its output files
  std::string environment;                 ///< `envId` of NNI's interface: its machine or environment
  std::string message;                     ///< readable reason of its end or of its waiting
  std::optional<int> exit_code;            ///< if its last run ended on its own
  std::optional<int> signal;               ///< number of the signal that ended its last run
  bool is_early_stopped = false;           ///< stopped by an assessor, the caller or a time limit
};

}  // namespace nni
