#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <variant>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

namespace detail {

class ControlCore;

/// @name What a `Control` asks for, carried out on the experiment's thread.
/// @{
struct SetConcurrency {
  std::size_t value = 1;
};
struct SetMaxTrials {
  std::optional<std::uint64_t> value{};
};
struct SetMaxDuration {
  std::optional<Duration> value{};
};
class UpdateSearchSpace {
 public:
  UpdateSearchSpace() = default;
  explicit UpdateSearchSpace(SearchSpace what) : space(std::make_shared<const SearchSpace>(std::move(what))) {}
  std::shared_ptr<const SearchSpace> space;
};
struct PauseTrials {};
struct ResumeTrials {};
struct StopExperiment {};
struct CancelTrial {
  TrialId trial{};
};
struct ShowProgress {};  ///< somebody has begun to watch
class TellWhenRecorded {
 public:
  TellWhenRecorded() = default;
  explicit TellWhenRecorded(std::shared_ptr<std::promise<bool>> who) : answer(std::move(who)) {}
  std::shared_ptr<std::promise<bool>> answer;
};
using Change = std::variant<SetConcurrency, SetMaxTrials, SetMaxDuration, UpdateSearchSpace, PauseTrials, ResumeTrials,
                            StopExperiment, CancelTrial, ShowProgress, TellWhenRecorded>;
/// @}

}  // namespace detail

/// Steers an experiment, from any thread, before, while and after it runs: `experiment.control()`.
///
/// A handle is small, copied freely, and may outlive the experiment. What it asks for is checked at once, with the
/// messages of `ExperimentOptions`, and carried out on the experiment's thread: bigger limits place waiting trials at
/// once, smaller ones let running trials end by themselves. Changes are recorded before anything that follows from them
/// is, so they survive a kill of the process; docs/how-to/steer-an-experiment.md says what a resume makes of them. What
/// is asked for before `run` happens when it begins.
///
/// Every request answers true when it was taken, and false when the experiment has ended: then nothing happens. One that
/// is taken while the experiment comes to its end may be too late for this run; it is recorded, for a resume. A request
/// that follows another one of its kind before that was carried out replaces it, so a program may ask at any rate. None of
/// them waits, except `wait_until_recorded`, and `cancel` while 10,000 trials are about to be cancelled.
class Control {
 public:
  /// Where the experiment is.
  enum class Phase : std::uint8_t {
    before,   ///< `run` was not called
    running,  ///< in `run`
    ended     ///< `run` has returned, or the experiment is gone
  };

  /// Programs get theirs from `Experiment::control`.
  /// @param core  what the experiment shares with its handles
  explicit Control(std::shared_ptr<detail::ControlCore> core) : core_(std::move(core)) {}

  /// Changes the number of live trials.
  /// @throws ConfigError  outside of 1 to 100,000
  bool set_concurrency(std::size_t trials) const;

  /// Changes the budget of trials, those counted that were ordered before; nothing: no limit. Trials that were ordered
  /// already run in any case.
  /// @throws ConfigError  for 0
  bool set_max_trials(std::optional<std::uint64_t> trials) const;

  /// Changes the budget of active time, counted from the first start of the experiment; nothing: no limit.
  /// @throws ConfigError  when it is not positive
  bool set_max_duration(std::optional<Duration> duration) const;

  /// Suggestions come from another space from now on. Trials that were ordered already run as they are, and results
  /// that fit the new space are kept.
  /// @throws ConfigError  for a space without dimensions
  /// @throws Error        `Errc::unsupported` when the advisor of this experiment has no `update_search_space`
  bool update_search_space(SearchSpace space) const;

  /// No trial starts until `resume`; running ones go on. The time until then does not count as active.
  bool pause() const;

  /// Takes `pause` back.
  bool resume() const;

  /// Stops the experiment: no trial starts, live ones are stopped, `run` returns. A resume goes on with it.
  bool stop() const;

  /// Cancels one trial, whether it waits, runs, or waits for a retry; it ends as USER_CANCELED. One that is unknown or has
  /// ended is left alone. What is recorded is the end of the trial, when it comes: a kill of this process may overtake
  /// the request, and then it has to be made again.
  bool cancel(TrialId trial) const;

  /// Waits until every change that was asked for so far is recorded so that it survives a loss of power. Not on the
  /// experiment's thread, where it would wait for itself; before `run` it waits for `run`. When the experiment ends
  /// meanwhile, it waits for the last record.
  /// @returns true when it is recorded; false when the experiment ended without, and `phase()` says so
  /// @throws Error  `Errc::unsupported` on the experiment's thread, for instance in an observer
  bool wait_until_recorded() const;

  /// How the experiment stands, not older than the last turn of its loop. Before `run`, and for a moment when the first
  /// handle is made while it runs: what the options say.
  [[nodiscard]] Progress status() const;

  /// Where the experiment is now.
  [[nodiscard]] Phase phase() const;

 private:
  std::shared_ptr<detail::ControlCore> core_;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/control_inl.hpp>
#endif
