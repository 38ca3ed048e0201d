#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nni/core/objectives.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/experiment/detail/control_core.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/experiment/options.hpp>
#include <nni/experiment/summary.hpp>
#include <nni/ledger/ledger.hpp>

namespace nni::detail {

/// What people see of an experiment: the best trials, the first failures, counts and times. It also tells the
/// observers. Pure state; no I/O of its own.
class Board {
 public:
  /// @param options    of the experiment
  /// @param observers  called on the experiment's thread
  Board(const ExperimentOptions& options, std::vector<Observer> observers);

  /// Takes over what is known of the experiment before it begins: whatever goes wrong, nothing else is recorded.
  void take_over(ProfileChanged profile, const std::filesystem::path& directory);

  /// The experiment begins; `profile` is the first to be recorded.
  void begin(ProfileChanged profile, const std::filesystem::path& directory, std::string_view platform, bool resumed,
             std::uint64_t finished_before, std::size_t adopted, std::size_t imported = 0);

  /// What people should know of where trials run, and whether a later run can go on; before `begin`.
  void set_surroundings(std::string remark, bool resumable) {
    remark_ = std::move(remark);
    resumable_ = resumable;
  }

  /// Handles of this experiment see its progress too.
  void set_control(std::shared_ptr<ControlCore> control) { control_ = std::move(control); }

  /// A trial that ended before a resume.
  void remember(const TrialJobDetail& trial);

  /// A trial has ended now.
  void trial_ended(TrialJobDetail trial);

  /// False when nobody listens to progress.
  [[nodiscard]] bool wants_progress() const noexcept { return wants_progress_ || (control_ && control_->watched()); }

  /// Something changed.
  void progress(const LedgerCounts& counts);

  /// Handles see how it stands from now on; observers are not called.
  void publish(const LedgerCounts& counts);

  /// The experiment is over. Tells the observers.
  Summary end(ExperimentStatus status, std::string message, const LedgerCounts& counts,
              std::vector<TrialJobDetail> trials);

  /// The record of the experiment as it stands.
  [[nodiscard]] ProfileChanged profile(const LedgerCounts& counts) const;

  /// Changes what `profile` and `progress` say.
  void set_status(ExperimentStatus status, std::string message = {});
  [[nodiscard]] ExperimentStatus status() const noexcept { return profile_.status; }
  void set_params(std::string params, std::string settings);
  void set_waiting_reason(std::string reason) { waiting_reason_ = std::move(reason); }

  /// Says why no trial starts; empty: trials start.
  void set_paused(std::string reason) { paused_ = std::move(reason); }

  /// An earlier result does not fit the search space in force.
  void count_unfitting() noexcept { ++unfitting_; }
  void set_unfitting(std::uint64_t count) noexcept { unfitting_ = count; }
  /// What keeps everything waiting, for people; it is shown before any other reason. Empty: nothing.
  void set_trouble(std::string reason) { trouble_ = std::move(reason); }

  /// Active time of this run so far.
  void set_active(Duration active) noexcept { active_ = active; }

  /// Active time of earlier runs of this experiment.
  [[nodiscard]] Duration earlier_duration() const noexcept { return earlier_; }

  /// Messages of an ended run did not arrive in time.
  void count_unsettled() noexcept { ++unsettled_; }

 private:
  void rank(const TrialJobDetail& trial);
  [[nodiscard]] Progress standing(const LedgerCounts& counts) const;

  const ExperimentOptions* options_;
  std::vector<Observer> observers_;
  bool wants_progress_ = false;
  Objectives objectives_;
  ProfileChanged profile_;
  std::filesystem::path directory_;
  std::string remark_;
  bool resumable_ = true;
  std::string waiting_reason_;
  std::string paused_;
  std::shared_ptr<ControlCore> control_;
  std::uint64_t unfitting_ = 0;
  std::string trouble_;
  Duration earlier_{};
  Duration active_{};
  std::uint64_t finished_before_ = 0;
  std::uint64_t unsettled_ = 0;
  std::uint64_t without_value_ = 0;  // trials that succeeded, and why the first has none
  std::string no_value_;
  std::vector<TrialJobDetail> top_;
  std::vector<double> top_values_;
  std::vector<TrialJobDetail> failures_;
};

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/experiment/detail/board_inl.hpp>
#endif
