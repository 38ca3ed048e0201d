#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/seen_metrics.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni {

/// The experiment as a whole: written at the start, on every change of status, and every ten seconds.
class ProfileChanged {
 public:
  ProfileChanged() = default;

  ExperimentId id;         ///< which experiment
  std::string name;        ///< for people
  std::string params;      ///< JSON text: options and search space as NNI's clients read them
  std::uint64_t seed = 0;  ///< of everything that is drawn
  ExperimentStatus status = ExperimentStatus::initialized;  ///< in force from now on
  std::string message;                                      ///< why it is in `error`
  Duration exec_duration{};                                 ///< active time so far, summed over resumes
  TimePoint start_time{};                                   ///< first start, wall clock
  std::optional<TimePoint> end_time;                        ///< absent while it runs
  std::uint64_t next_sequence = 0;                          ///< sequence id of the next trial
  std::string log_directory;                                ///< empty when no log is written
  std::string settings;  ///< JSON text: limits and search spaces in force, for a resume; a store keeps it verbatim
};

/// The advisor (or a user) ordered a trial.
class TrialOrdered {
 public:
  TrialOrdered() = default;
  TrialOrdered(TrialId trial_id, ParameterId parameter_id, Parameters values, TimePoint time)
      : trial(trial_id), parameter(parameter_id), parameters(std::move(values)), at(time) {}
  TrialId trial;          ///< the new trial
  ParameterId parameter;  ///< suggestion of the tuner
  Parameters parameters;  ///< the values, verbatim
  TimePoint at{};         ///< wall time
};

/// A run is about to be submitted. Nothing outside has changed yet.
class RunIntended {
 public:
  RunIntended() = default;
  RunIntended(RunId run_id, Placement granted, TimePoint time) : run(run_id), placement(std::move(granted)), at(time) {}
  RunId run;            ///< trial and attempt
  Placement placement;  ///< machine and devices that the scheduler granted
  TimePoint at{};       ///< wall time
};

/// A run has started.
class RunStarted {
 public:
  RunStarted() = default;
  explicit RunStarted(JobStarted event) : started(std::move(event)) {}
  JobStarted started;  ///< as the training service reported it
};

/// A trial reported a value. Run, kind, sequence and text together are unique.
class MetricReceived {
 public:
  MetricReceived() = default;
  explicit MetricReceived(Metric value) : metric(std::move(value)) {}
  Metric metric;  ///< the value and the run that reported it
};

/// The retries that a trial has used up. Recorded with each end of a run and returned on a resume: a base class of both
/// types, so that whatever it holds is copied as one value.
class RetryState {
 public:
  RetryState() = default;
  std::uint32_t retries = 0;  ///< retries used up, including the one that follows the last end
  std::uint32_t losses = 0;   ///< losses that were repeated without using up a retry
  Duration pause{};           ///< wait between the last end and the next attempt; zero: none
};

/// A run has ended. With `final_attempt` the trial has ended too, with `status`; a later `RunIntended` of the same trial
/// opens it again.
class RunEnded : public RetryState {
 public:
  RunEnded() = default;
  RunId run;                                        ///< trial and attempt
  JobEnd end;                                       ///< how it ended
  TrialJobStatus status = TrialJobStatus::unknown;  ///< of the trial, from now on
  bool final_attempt = true;                        ///< false: the trial gets another run
  TimePoint at{};                                   ///< wall time
};

/// A result that was obtained elsewhere: the advisor learns from it, and it is no trial of this experiment.
class ResultImported {
 public:
  ResultImported() = default;

  Parameters parameters;        ///< what was tried, verbatim
  double value = 0.0;           ///< its final result, finite
  std::vector<double> history;  ///< intermediate results, oldest first; may be empty
  std::uint64_t after = 0;      ///< trials that were ordered before the advisor learned of it
};

/// A record of a data store. Replaying the events in order rebuilds the ledger exactly.
using StoreEvent =
    std::variant<ProfileChanged, TrialOrdered, RunIntended, RunStarted, MetricReceived, RunEnded, ResultImported>;

/// How far a store has come: the number of events appended so far.
struct StorePosition {
  std::uint64_t value = 0;  ///< events appended so far
  friend constexpr auto operator<=>(const StorePosition&, const StorePosition&) = default;
};

/// A trial that had not ended when the store was last written. Its `pause` is zero while a run is open.
class UnfinishedTrial : public RetryState {
 public:
  UnfinishedTrial() = default;

  TrialId trial;                   ///< which
  ParameterId parameter;           ///< suggestion of the tuner
  Parameters parameters;           ///< the values, verbatim
  std::uint32_t attempts = 0;      ///< runs intended so far
  std::optional<Intent> open_run;  ///< the last run, if it has not ended
  std::vector<double>
      history;       ///< a number for each intermediate value of the open run, in the order of arrival; not a
                     ///< number where there was none
  SeenMetrics seen;  ///< all values of the open run, so that what comes again is recognized
  std::optional<std::string> final_value;  ///< JSON text of its first final value
  TimePoint ended_at{};                    ///< of its last run, when that has ended
  std::optional<JobEnd> last_end;          ///< how that ended
};

/// The contents of a data store when it is opened. Empty for a new experiment.
class ExperimentSnapshot {
 public:
  ExperimentSnapshot() = default;

  bool exists = false;                      ///< false: a new experiment
  ProfileChanged profile;                   ///< the last one
  std::uint64_t trials = 0;                 ///< trials ever ordered; ids 1 to `trials` exist
  std::uint64_t by_status[8] = {};          ///< finished trials, indexed by `TrialJobStatus`
  std::vector<UnfinishedTrial> unfinished;  ///< in the order of their ids
  std::vector<ResultImported> imported;     ///< in the order in which they were recorded
};

/// A page of trials to read.
struct TrialQuery {
  TrialId after{};                            ///< trials after this one; zero: from the start
  std::size_t limit = 1000;                   ///< at most so many
  std::optional<TrialJobStatus> status = {};  ///< only trials in this state

  /// Instead of the order of ids: the best final values first, by this direction, of trials with a finite one in
  /// `status` (absent: SUCCEEDED); equal ones by id. `after` is ignored. Unfinished trials have no result
  /// yet: a `status` that is not terminal gives an empty page.
  std::optional<Direction> best = {};

  bool histories = false;  ///< include each trial's intermediate values, for bulk readers; not with `best`
};

/// A page of trials.
class TrialPage {
 public:
  TrialPage() = default;
  std::vector<TrialJobDetail> trials;  ///< in the order of their ids, or as `TrialQuery::best` says
  bool more = false;                   ///< there are further trials after the last one

  /// With `TrialQuery::histories`, for each trial: the finite numbers among the intermediate results of its last attempt,
  /// in their order. A store may leave it empty; then `metrics` is asked for each trial.
  std::vector<std::vector<double>> histories;
};

}  // namespace nni
