#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// A run is waiting in a queue of the platform.
class JobQueued {
 public:
  JobQueued() = default;
  JobQueued(RunId run_id, std::string explanation) : run(run_id), reason(std::move(explanation)) {}
  RunId run;           ///< the run
  std::string reason;  ///< one readable sentence, with numbers
};

/// A run has begun.
class JobStarted {
 public:
  JobStarted() = default;
  JobStarted(RunId run_id, JobId job_id, TimePoint time) : run(run_id), job(std::move(job_id)), at(time) {}
  RunId run;                      ///< the run
  JobId job;                      ///< its job on the platform
  TimePoint at{};                 ///< wall time of the start
  std::string url;                ///< page of the run, for users
  std::string working_directory;  ///< directory of its output files
  std::vector<std::string> tags;  ///< labels that the platform gives the run, for users and their filters
};

/// A run has ended. Exactly one per submitted run.
class JobEnded {
 public:
  JobEnded() = default;
  JobEnded(RunId run_id, JobEnd job_end, TimePoint time) : run(run_id), end(std::move(job_end)), at(time) {}
  RunId run;       ///< the run
  JobEnd end;      ///< kind of end, exit code and message
  TimePoint at{};  ///< wall time of the end
};

/// Machines or devices were added, removed or changed: waiting trials may fit now.
struct EnvironmentChanged {};

/// An event of a training service.
using JobEvent = std::variant<JobQueued, JobStarted, JobEnded, EnvironmentChanged>;

/// An advisor wants a trial with these parameters.
class NewTrial {
 public:
  NewTrial() = default;
  NewTrial(ParameterId parameter_id, Parameters values) : parameter(parameter_id), parameters(std::move(values)) {}
  ParameterId parameter;  ///< suggestion of the tuner
  Parameters parameters;  ///< the values, verbatim
};

/// An advisor sends another set of parameters to a running trial (multi-phase).
class SendParameters {
 public:
  SendParameters() = default;
  TrialId trial;          ///< the running trial
  Parameters parameters;  ///< the values, verbatim
};

/// An advisor has nothing more to suggest for now.
class NoMoreTrials {
 public:
  NoMoreTrials() = default;
};

/// An advisor stops a running trial.
class KillTrial {
 public:
  KillTrial() = default;
  explicit KillTrial(TrialId trial_id) : trial(trial_id) {}
  TrialId trial;  ///< the trial to stop
};

/// A request of an advisor.
using Order = std::variant<NewTrial, SendParameters, NoMoreTrials, KillTrial>;

/// A handle of one delivery of a message, for its acknowledgement. Opaque to the experiment.
struct Receipt {
  std::uint64_t value = 0;  ///< chosen by the channel
};

/// A message of a running trial.
class TrialMessage {
 public:
  /// Content of a message.
  enum class Kind : std::uint8_t {
    metric,  ///< a value, in `metric`
    garbage  ///< unreadable; `text` holds an excerpt
  };

  TrialMessage() = default;
  /// @param value     the reported value
  /// @param delivery  handle of this delivery
  TrialMessage(Metric value, Receipt delivery) : metric(std::move(value)), receipt(delivery) {}

  /// Returns a message of unreadable content.
  /// @param run       the run, known from the channel
  /// @param excerpt   of the content
  /// @param delivery  handle of this delivery
  static TrialMessage not_understood(RunId run, std::string excerpt, Receipt delivery) {
    TrialMessage message;
    message.kind = Kind::garbage;
    message.metric.run = run;
    message.text = std::move(excerpt);
    message.receipt = delivery;
    return message;
  }

  Kind kind = Kind::metric;  ///< content of the message
  Metric metric;             ///< `metric.run` is set for every kind
  std::string text;          ///< only for garbage: an excerpt of the content
  Receipt receipt;           ///< handle of the delivery, for the acknowledgement
};

}  // namespace nni
