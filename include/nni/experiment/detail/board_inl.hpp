#pragma once

#include <algorithm>
#include <utility>

#include <nni/core/foreign_call.hpp>
#include <nni/experiment/detail/board.hpp>

namespace nni::detail {

inline constexpr std::size_t board_rows = 10;

template <class Hook, class Argument>
void call_hook(const char* whose, const Hook& hook, const Argument& argument) {
  if (hook) call_foreign(whose, [&] { hook(argument); });
}

NNI_INLINE Board::Board(const ExperimentOptions& options, std::vector<Observer> observers)
    : options_(&options), observers_(std::move(observers)), objectives_(options.direction) {
  wants_progress_ = std::any_of(observers_.begin(), observers_.end(), [](const Observer& observer) {
    return static_cast<bool>(observer.on_progress);
  });
}

NNI_INLINE void Board::take_over(ProfileChanged profile, const std::filesystem::path& directory) {
  profile_ = std::move(profile);
  directory_ = directory;
  earlier_ = profile_.exec_duration;
}

NNI_INLINE void Board::begin(ProfileChanged profile, const std::filesystem::path& directory, std::string_view platform,
                             bool resumed, std::uint64_t finished_before, std::size_t adopted, std::size_t imported) {
  take_over(std::move(profile), directory);
  finished_before_ = finished_before;
  ExperimentStart start;
  start.id = profile_.id;
  start.name = profile_.name;
  start.directory = directory_;
  start.platform = platform;
  start.resumed = resumed;
  start.finished_before = finished_before;
  start.adopted = adopted;
  start.imported = imported;
  start.unfitting = unfitting_;
  start.remark = remark_;
  start.resumable = resumable_;
  for (const Observer& observer : observers_) call_hook("the observer's on_start", observer.on_start, start);
}

NNI_INLINE void Board::rank(const TrialJobDetail& trial) {
  if (trial.status == TrialJobStatus::failed && failures_.size() < board_rows) failures_.push_back(trial);
  if (trial.status != TrialJobStatus::succeeded) return;
  const std::optional<double> value = final_number(trial);
  if (!value && without_value_++ == 0) no_value_ = why_no_value(trial);
  if (!value) return;
  // Equal values keep the order in which they came, so a run can be repeated.
  const auto place = std::upper_bound(
      top_values_.begin(), top_values_.end(), *value, [this](double a, double b) { return objectives_.better(a, b); });
  if (place == top_values_.end() && top_values_.size() == board_rows) return;
  top_.insert(top_.begin() + (place - top_values_.begin()), trial);
  top_values_.insert(place, *value);
  if (top_.size() > board_rows) {
    top_.pop_back();
    top_values_.pop_back();
  }
}

NNI_INLINE void Board::remember(const TrialJobDetail& trial) { rank(trial); }

NNI_INLINE void Board::trial_ended(TrialJobDetail trial) {
  rank(trial);
  for (const Observer& observer : observers_)
    call_hook("the observer's on_trial_ended", observer.on_trial_ended, trial);
}

NNI_INLINE Progress Board::standing(const LedgerCounts& counts) const {
  Progress progress;
  progress.status = profile_.status;
  progress.ordered = counts.ordered;
  progress.finished = counts.finished;
  std::copy(std::begin(counts.by_status), std::end(counts.by_status), std::begin(progress.by_status));
  progress.running = counts.running;
  progress.waiting = counts.waiting + (counts.live - counts.running);
  progress.retrying = counts.retrying;
  progress.paused = !paused_.empty();
  progress.unfitting = unfitting_;
  progress.waiting_reason = !trouble_.empty() ? trouble_ : paused_.empty() ? waiting_reason_ : paused_;
  progress.concurrency = options_->concurrency;
  progress.max_trials = options_->max_trials;
  progress.max_duration = options_->max_duration;
  progress.elapsed = earlier_ + active_;
  progress.session_elapsed = active_;
  progress.session_finished = counts.finished - finished_before_;
  progress.direction = options_->direction;
  if (!top_.empty()) {
    progress.best_value = top_values_.front();
    progress.best_trial = top_.front().trial;
    progress.best_parameters = top_.front().parameters;
  }
  return progress;
}

NNI_INLINE void Board::progress(const LedgerCounts& counts) {
  const Progress progress = standing(counts);
  for (const Observer& observer : observers_) call_hook("the observer's on_progress", observer.on_progress, progress);
  if (control_ && control_->watched()) control_->publish(progress);
}

NNI_INLINE void Board::publish(const LedgerCounts& counts) {
  if (control_) control_->publish(standing(counts));
}

NNI_INLINE void Board::set_status(ExperimentStatus status, std::string message) {
  profile_.status = status;
  profile_.message = std::move(message);
}

NNI_INLINE void Board::set_params(std::string params, std::string settings) {
  profile_.params = std::move(params);
  profile_.settings = std::move(settings);
}

NNI_INLINE ProfileChanged Board::profile(const LedgerCounts& counts) const {
  ProfileChanged profile = profile_;
  profile.exec_duration = earlier_ + active_;
  profile.next_sequence = counts.ordered;
  return profile;
}

NNI_INLINE Summary Board::end(ExperimentStatus status, std::string message, const LedgerCounts& counts,
                              std::vector<TrialJobDetail> trials) {
  Summary summary;
  summary.id = profile_.id;
  summary.name = profile_.name;
  summary.directory = directory_;
  summary.status = status;
  summary.message = std::move(message);
  summary.direction = options_->direction;
  summary.seed = profile_.seed;
  summary.duration = earlier_ + active_;
  summary.ordered = counts.ordered;
  summary.finished = counts.finished;
  std::copy(std::begin(counts.by_status), std::end(counts.by_status), std::begin(summary.by_status));
  summary.unfitting = unfitting_;
  summary.garbage_messages = counts.garbage;
  summary.late_messages = counts.late + unsettled_;
  summary.without_value = without_value_;
  summary.no_value = no_value_;
  summary.top = top_;
  summary.failures = failures_;
  summary.trials = std::move(trials);
  publish(counts);
  for (const Observer& observer : observers_) call_hook("the observer's on_end", observer.on_end, summary);
  return summary;
}

}  // namespace nni::detail
