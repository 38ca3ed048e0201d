#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <nni/core/ids.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/status.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/experiment/summary.hpp>

namespace nni {

/// What is known when an experiment begins.
class ExperimentStart {
 public:
  ExperimentStart() = default;

  ExperimentId id;                    ///< which experiment
  std::string name;                   ///< for people
  std::filesystem::path directory;    ///< empty when nothing is written
  std::string platform;               ///< for instance `local`
  bool resumed = false;               ///< it goes on with what a store held
  std::uint64_t finished_before = 0;  ///< trials that had ended when it was resumed
  std::size_t adopted = 0;            ///< live trials taken over from a manager that died
  std::size_t imported = 0;           ///< results from elsewhere that the advisor was told
  std::uint64_t unfitting = 0;        ///< earlier results that do not fit the search space in force
  bool resumable = true;              ///< false: records are kept in memory only, a later run finds nothing
  std::string remark;                 ///< what people should know of where trials run, one sentence; empty: nothing
};

/// How an experiment stands at one moment.
class Progress {
 public:
  Progress() = default;

  ExperimentStatus status = ExperimentStatus::running;  ///< of the experiment
  std::uint64_t ordered = 0;                            ///< trials ever ordered
  std::uint64_t finished = 0;                           ///< trials that ended
  std::uint64_t by_status[8] = {};                      ///< finished trials, indexed by `TrialJobStatus`
  std::size_t running = 0;                              ///< trials that have started
  std::size_t waiting = 0;                              ///< ordered or submitted, not started
  std::size_t retrying = 0;                             ///< in the pause before their next attempt
  bool paused = false;                                  ///< no trial starts for now; `waiting_reason` says why
  std::uint64_t unfitting = 0;                          ///< earlier results that do not fit the search space in force
  std::string waiting_reason;               ///< why the first of them waits, for people; empty when none says
  std::size_t concurrency = 1;              ///< live trials at most
  std::optional<std::uint64_t> max_trials;  ///< budget of trials; absent: none
  std::optional<Duration> max_duration;     ///< budget of active time; absent: none
  Duration elapsed{};                       ///< active time, previous sessions included
  Duration session_elapsed{};               ///< since this run began
  std::uint64_t session_finished = 0;       ///< trials that ended in this run
  Direction direction = minimize;           ///< of the final value
  std::optional<double> best_value;         ///< finite; absent while no trial has succeeded with one
  TrialId best_trial;                       ///< whose it is; zero while there is none
  Parameters best_parameters;               ///< what that trial tried
};

/// Hooks that are called on the experiment's thread. They must not block; a hook that throws ends the experiment.
///
/// They hear what happens at once, up to a few milliseconds before it is recorded, or longer while a store waits for
/// space. What a manager told and could not record before it was killed, a resume tells again: the same end of a run that
/// a keeper or platform remembers, and otherwise that of the next attempt. So a trial may be told twice, once in each
/// run of the program, and the later one counts. What must only be told when it is recorded is in the `Summary`, or is
/// read from the store behind `Control::wait_until_recorded`.
struct Observer {
  /// Called once, before the first trial.
  std::function<void(const ExperimentStart&)> on_start{};
  /// Called for each trial that has ended, with its final state.
  std::function<void(const TrialJobDetail&)> on_trial_ended{};
  /// Called after something changed, at most once per turn of the loop.
  std::function<void(const Progress&)> on_progress{};
  /// Called once, behind everything else, with what `run` returns.
  std::function<void(const Summary&)> on_end{};
};

}  // namespace nni
