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

/// The platform keeps a run waiting; `reason` is for people.
class JobQueued {
 public:
  JobQueued() = default;
  /// @param which  run
  /// @param why  one sentence for people
  JobQueued(RunId which, std::string why) : run(which), reason(std::move(why)) {}
  RunId run;           ///< which run
  std::string reason;  ///< for people: one sentence, with numbers
};

/// A run has begun.
class JobStarted {
 public:
  JobStarted() = default;
  /// @param which  run
  /// @param name  its job
  /// @param when  wall time
  JobStarted(RunId which, JobId name, TimePoint when) : run(which), job(std::move(name)), at(when) {}
  RunId run;                      ///< which run
  JobId job;                      ///< what the platform calls it
  TimePoint at{};                 ///< when, by the wall clock
  std::string url;                ///< where a person can look at it
  std::string working_directory;  ///< where its output files are
  std::vector<std::string> tags;  ///< words of the platform about how it runs, for people and their filters
};

/// A run has ended. Exactly one per submitted run.
class JobEnded {
 public:
  JobEnded() = default;
  /// @param which  run
  /// @param how  its end
  /// @param when  wall time
  JobEnded(RunId which, JobEnd how, TimePoint when) : run(which), end(std::move(how)), at(when) {}
  RunId run;       ///< which run
  JobEnd end;      ///< how it ended
  TimePoint at{};  ///< when, by the wall clock
};

/// Machines or devices came, went or changed: waiting trials may fit now.
struct EnvironmentChanged {};

/// What a training service tells.
using JobEvent = std::variant<JobQueued, JobStarted, JobEnded, EnvironmentChanged>;

/// An advisor wants a trial with these parameters.
class NewTrial {
 public:
  NewTrial() = default;
  /// @param which  number of the suggestion
  /// @param values  what the trial shall try
  NewTrial(ParameterId which, Parameters values) : parameter(which), parameters(std::move(values)) {}
  ParameterId parameter;  ///< which suggestion of the tuner
  Parameters parameters;  ///< the values, verbatim
};

/// An advisor sends another set of parameters to a running trial (multi-phase).
class SendParameters {
 public:
  SendParameters() = default;
  TrialId trial;          ///< a trial that runs
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
  /// @param which  trial to stop
  explicit KillTrial(TrialId which) : trial(which) {}
  TrialId trial;  ///< which trial
};

/// What an advisor asks for.
using Order = std::variant<NewTrial, SendParameters, NoMoreTrials, KillTrial>;

/// Names one delivery of a message, so that it can be acknowledged. Opaque to the session.
struct Receipt {
  std::uint64_t value = 0;  ///< chosen by the channel
};

/// A message of a running trial.
class TrialMessage {
 public:
  /// What a message holds.
  enum class Kind : std::uint8_t {
    metric,  ///< `metric` holds it
    garbage  ///< could not be understood; `text` says what arrived, shortened
  };

  TrialMessage() = default;
  /// @param what  the value
  /// @param delivery  names this delivery
  TrialMessage(Metric what, Receipt delivery) : metric(std::move(what)), receipt(delivery) {}

  /// A message that cannot be understood.
  /// @param from      the run, known from the channel
  /// @param what      what arrived, shortened
  /// @param delivery  names this delivery
  static TrialMessage not_understood(RunId from, std::string what, Receipt delivery) {
    TrialMessage message;
    message.kind = Kind::garbage;
    message.metric.run = from;
    message.text = std::move(what);
    message.receipt = delivery;
    return message;
  }

  Kind kind = Kind::metric;  ///< what it holds
  Metric metric;             ///< `metric.run` is set for every kind
  std::string text;          ///< only for garbage: what arrived, shortened
  Receipt receipt;           ///< gives the delivery back when it is recorded
};

}  // namespace nni
