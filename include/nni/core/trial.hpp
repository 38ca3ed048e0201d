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

/// Variables of a process: name to value.
using EnvironmentVariables = std::map<std::string, std::string>;

/// What a trial runs: one shell line, as NNI's users write it, or a list of arguments that no shell touches.
class Command {
 public:
  Command() = default;
  /// @param line  for `/bin/bash -c`
  Command(std::string line) : words_{std::move(line)}, shell_(true) {}  // NOLINT: reads as text
  /// @param line  for `/bin/bash -c`
  Command(const char* line) : Command(std::string(line)) {}  // NOLINT: reads as text
  /// @param arguments  the program, looked for in `PATH`, and what it is given
  Command(std::vector<std::string> arguments) : words_(std::move(arguments)) {}  // NOLINT: reads as a list
  /// @param arguments  the program, looked for in `PATH`, and what it is given; `{"a b"}` is a list of one
  Command(std::initializer_list<const char*> arguments) : words_(arguments.begin(), arguments.end()) {}

  /// True when there is nothing to run.
  [[nodiscard]] bool empty() const noexcept { return words_.empty() || (words_.size() == 1 && words_[0].empty()); }
  /// True for a shell line, false for a list of arguments.
  [[nodiscard]] bool is_shell() const noexcept { return shell_; }

  /// The argument vector to execute: `/bin/bash -c LINE` for a shell line.
  [[nodiscard]] std::vector<std::string> arguments() const {
    if (!shell_) return words_;
    std::vector<std::string> result;
    result.reserve(3);
    result.emplace_back("/bin/bash");
    result.emplace_back("-c");
    result.push_back(words_.front());
    return result;
  }

  /// For people: the line, or the arguments joined by blanks.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const std::string& word : words_) text += (text.empty() ? "" : " ") + word;
    return text;
  }

 private:
  std::vector<std::string> words_;
  bool shell_ = false;
};

/// Everything that a training service needs to start one run. The session fills it in one place.
class TrialJobForm {
 public:
  TrialJobForm() = default;

  RunId run;                         ///< the identity that the service keeps
  ParameterId parameter;             ///< which suggestion it carries
  Parameters parameters;             ///< verbatim
  Command command;                   ///< empty where trials are callables
  std::string working_directory;     ///< where the command starts; empty: the current directory
  EnvironmentVariables environment;  ///< added to what the service sets
  ResourceRequest request;           ///< what the trial asks of a machine
  Placement placement;               ///< what the scheduler chose
  Mount mount;                       ///< how the run reaches the storage of the experiment
};

/// How the process, job or callable of a run ended.
enum class EndKind : std::uint8_t {
  exited,       ///< by itself, with an exit code
  signalled,    ///< by a signal that we did not send
  killed,       ///< interrupted because we asked; `JobEnd::why` says who
  not_started,  ///< could not be started; the message says why
  threw,        ///< a callable threw; the message is the exception's text
  lost,         ///< the platform or keeper lost it; the message says how
  /// The platform could start nothing for now (no process, file or disk space, no connection); the run has not begun and
  /// never will, and the same run may be submitted again. It is not recorded. The message says what is missing.
  deferred
};

/// Name for records: `exited`, `signalled`, `killed`, `not started`, `threw`, `lost`, `deferred`.
[[nodiscard]] constexpr std::string_view to_string(EndKind kind) noexcept {
  constexpr std::string_view names[] = {"exited", "signalled", "killed", "not started", "threw", "lost", "deferred"};
  return names[static_cast<std::size_t>(kind)];
}

/// The end of a run.
class JobEnd {
 public:
  JobEnd() = default;
  /// @param how     kind of end
  /// @param number  exit code, or the number of the signal
  /// @param text    for people
  explicit JobEnd(EndKind how, int number = 0, std::string text = {})
      : kind(how), code(number), message(std::move(text)) {}

  /// True when it did what it was asked to: exit code 0.
  [[nodiscard]] bool succeeded() const noexcept { return kind == EndKind::exited && code == 0; }

  EndKind kind = EndKind::exited;  ///< kind of end
  int code = 0;                    ///< exit code, or the number of the signal
  /// The reason with which the run was told to stop, however it ended then; absent when nobody told it.
  std::optional<StopReason> why;
  std::string message;  ///< for people; empty where the code says it all
};

/// A run that was about to be submitted: recorded before anything outside changes.
class Intent {
 public:
  Intent() = default;

  RunId run;             ///< trial and attempt
  TimePoint at{};        ///< when it was recorded, wall clock
  JobId job;             ///< empty when the answer to the submission was not recorded any more
  bool started = false;  ///< its start was recorded
  Placement placement;   ///< machine and devices that it holds
};

/// What a platform says of one run, for instance to a manager that was restarted.
class JobReport {
 public:
  /// How the run stands.
  enum class State : std::uint8_t {
    running,        ///< it is alive; its events follow
    ended,          ///< it ended meanwhile; `end` says how
    never_started,  ///< it was never submitted: submit it
    unknown         ///< the platform cannot say: it counts as lost
  };

  JobReport() = default;
  /// @param which  the run that was asked about
  /// @param what   how it stands
  JobReport(RunId which, State what) : run(which), state(what) {}

  RunId run;                      ///< the run that was asked about
  State state = State::unknown;   ///< how it stands
  JobId job;                      ///< what the platform calls it; empty for one that was never submitted
  TimePoint started{};            ///< zero when unknown
  TimePoint ended{};              ///< zero unless `ended`
  JobEnd end;                     ///< how it ended, for `ended`
  std::string url;                ///< where a person can look at it; empty when the platform does not say
  std::string working_directory;  ///< where its output files are; likewise
  std::vector<std::string> tags;  ///< words of the platform about how it runs; likewise
};

/// What a tuner is told when a trial has ended.
class TrialOutcome {
 public:
  TrialOutcome() = default;

  TrialId trial;                                    ///< which
  ParameterId parameter;                            ///< which suggestion of the tuner
  Parameters parameters;                            ///< the values, verbatim
  TrialJobStatus status = TrialJobStatus::unknown;  ///< how it ended
  /// The number of its final result, absent when it is not finite; for a trial that was stopped early without one, the
  /// last finite number among its intermediate results.
  std::optional<double> value;

  /// True when it ended well and has a value.
  [[nodiscard]] bool succeeded() const noexcept { return status == TrialJobStatus::succeeded && value.has_value(); }

  /// True when there is a value to learn from, be it the last one before an early stop.
  [[nodiscard]] bool informative() const noexcept {
    return value.has_value() && (status == TrialJobStatus::succeeded || status == TrialJobStatus::early_stopped);
  }
};

/// Everything that is known of a trial, with the fields of NNI's original interface.
class TrialJobDetail {
 public:
  TrialJobDetail() = default;

  TrialId trial;                                    ///< which
  std::uint32_t attempts = 0;                       ///< runs so far
  TrialJobStatus status = TrialJobStatus::unknown;  ///< how it stands
  ParameterId parameter;                            ///< which suggestion of the tuner
  Parameters parameters;                            ///< its first values, verbatim
  std::uint32_t parameter_index = 0;       ///< of the newest parameters: above 0 when a running trial was sent others
  std::optional<TimePoint> submit_time;    ///< when it was ordered, wall clock
  std::optional<TimePoint> start_time;     ///< when its last run began; absent before
  std::optional<TimePoint> end_time;       ///< when its last run ended; absent before
  std::optional<std::string> final_value;  ///< JSON text of the first final result
  JobId job;                               ///< what the platform calls its last run
  std::vector<std::string> tags;           ///< words of the platform about its last run
  std::string url;                         ///< where a person can look at it
  std::string working_directory;           ///< where it writes
  std::string environment;                 ///< `envId` of NNI's interface: the machine or environment that it ran on
  std::string message;                     ///< why it ended, for people
  std::optional<int> exit_code;            ///< when its last run ended by itself
  std::optional<int> signal;               ///< number of the signal that ended its last run
  bool is_early_stopped = false;           ///< an assessor or the caller stopped it before its end
};

}  // namespace nni
