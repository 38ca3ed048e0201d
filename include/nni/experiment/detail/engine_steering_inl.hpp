#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

/// @file
/// Bodies of `detail::Engine`: changes while it runs, pauses, and everything that waits for a time. Included by
/// engine.hpp.

#include <nni/experiment/detail/engine.hpp>

namespace nni::detail {

NNI_LAZY_BODY void Engine::pause(PauseReason why, std::string text) {
  if (!ledger_->paused()) paused_at_ = context_->clock().steady_now();
  ledger_->pause(why);
  pauses_[static_cast<std::size_t>(why)] = std::move(text);
  tell_pause();
}

NNI_LAZY_BODY void Engine::resume(PauseReason why) {
  if (!ledger_->paused(why)) return;
  ledger_->resume(why);
  pauses_[static_cast<std::size_t>(why)].clear();
  if (!ledger_->paused() && paused_at_)
    paused_for_ += context_->clock().steady_now() - *std::exchange(paused_at_, std::nullopt);
  tell_pause();
}

// What waits for its record before it is submitted has begun nowhere, and who stops does not wait for that record.
NNI_LAZY_BODY void Engine::drop_submissions(Queue<Pending>& waiting) {
  std::vector<RunId> runs;
  for (Pending& pending : waiting)
    if (auto* submit = std::get_if<Submit>(&pending.action); submit && submit->form) {
      runs.push_back(submit->form->run);
      submit->form.reset();
    }
  for (const RunId run : runs) {
    JobEnd end{EndKind::killed, 0, "stopped before it was submitted"};
    end.why = StopReason::experiment_end;
    Transition transition;
    ledger_->event(JobEnded{run, std::move(end), now()}, now(), transition);
    apply(transition);
  }
}

NNI_LAZY_BODY void Engine::tell_pause() {
  std::string text;
  for (const std::string& reason : pauses_)
    if (!reason.empty()) text += (text.empty() ? "" : "; ") + reason;
  board_->set_paused(std::move(text));
  limits_changed_.notify();
  wake();
}

NNI_LAZY_BODY void Engine::apply(const Change& what) {
  std::visit(
      [this]<class What>(const What& asked) {
        if constexpr (std::same_as<What, StopExperiment>) {
          request_stop();
        } else if constexpr (std::same_as<What, CancelTrial>) {
          cancel_by_user(asked.trial);
        } else if constexpr (std::same_as<What, TellWhenRecorded>) {
          unanswered_.push_back(asked.answer);
          if (group_)
            group_->spawn(tell_when_recorded(asked.answer));
          else
            early_.push_back(tell_when_recorded(asked.answer));
        } else {
          change(asked);
          wake();
        }
      },
      what);
}

NNI_LAZY_BODY void Engine::change(const SetConcurrency& what) {
  options_->concurrency = what.value;
  ledger_->set_concurrency(what.value);
  record_settings();
}

NNI_LAZY_BODY void Engine::change(const SetMaxTrials& what) {
  options_->max_trials = what.value;
  ledger_->set_max_trials(what.value.value_or(std::numeric_limits<std::uint64_t>::max()));
  record_settings();
}

NNI_LAZY_BODY void Engine::change(const SetMaxDuration& what) {
  options_->max_duration = what.value;
  limits_changed_.notify();
  record_settings();
}

NNI_LAZY_BODY void Engine::change(const UpdateSearchSpace& what) {
  if (!policies_->facts().updates_space) return;
  try {
    hooks_.update_search_space(*what.space);
  } catch (const ConfigError& error) {
    context_->log().error("experiment", std::string("the search space stays as it was: ") + error.what());
    return;
  }
  ledger_->ask_again();
  record_settings();
  if (group_) group_->spawn(hooks_.count_unfitting());
}

NNI_LAZY_BODY void Engine::change(const PauseTrials&) {
  pause(PauseReason::user, "paused by the user");
  record_settings();
}

NNI_LAZY_BODY void Engine::change(const ResumeTrials&) {
  resume(PauseReason::user);
  record_settings();
}

NNI_LAZY_BODY void Engine::change(const ShowProgress&) {
  board_->set_active(active());
  board_->publish(ledger_->counts());
}

// What is in force is recorded before anything that follows from it.
NNI_LAZY_BODY void Engine::record_settings() {
  hooks_.settings_changed();
  const StoreEvent profile{board_->profile(ledger_->counts())};
  last_ = policies_->append(std::span<const StoreEvent>(&profile, 1));
}

// The statuses of NNI between the start and the end. While a trial that was ordered waits for its first place, the budget
// is not used up; one that waits for another attempt does not give it back.
NNI_LAZY_BODY void Engine::follow_status() {
  if (stopping_) return;
  const bool none_left = ledger_->budget_used_up() && (is_spent_ || ledger_->counts().waiting == 0);
  is_spent_ = none_left || out_of_time_;
  const ExperimentStatus status =
      is_spent_ ? ExperimentStatus::no_more_trial
                : (tuner_is_done_ ? ExperimentStatus::tuner_no_more_trial : ExperimentStatus::running);
  if (status == board_->status()) return;
  board_->set_status(status);
  const StoreEvent profile{board_->profile(ledger_->counts())};
  last_ = policies_->append(std::span<const StoreEvent>(&profile, 1));
  wake();
}

NNI_LAZY_BODY void Engine::cancel_by_user(TrialId trial) {
  Transition transition;
  ledger_->cancel(trial, StopReason::user, now(), transition);
  apply(transition);
  wake();
}

NNI_LAZY_BODY awaitable<void> Engine::tell_when_recorded(std::shared_ptr<std::promise<bool>> answer) {
  auto stored = policies_->synced(last_);
  co_await std::move(stored);
  answer->set_value(true);
  std::erase(unanswered_, answer);
}

NNI_LAZY_BODY awaitable<void> Engine::throw_again(std::exception_ptr failure) {
  if (failure) std::rethrow_exception(failure);
  co_return;
}

NNI_LAZY_BODY void Engine::retry_later(const RetryLater& later) {
  retries_.emplace(context_->clock().steady_now() + later.pause, later.trial);
  limits_changed_.notify();
}

NNI_LAZY_BODY awaitable<void> Engine::limit_loop() {
  // Steady time throughout: a wall clock that is set changes no limit.
  while (true) {
    const SteadyPoint at = context_->clock().steady_now();
    const Duration active = active_at(at);
    SteadyPoint next = at + std::chrono::seconds(10);
    bool out_of_time = false;
    if (options_->max_trial_duration) next = std::min(next, stop_overdue(at));
    if (options_->max_duration) {
      const Duration left = *options_->max_duration - board_->earlier_duration() - active;
      out_of_time = left <= Duration::zero();
      if (!out_of_time && !ledger_->paused()) next = std::min(next, at + left);
    }
    if (out_of_time != out_of_time_ && !stopping_) {
      out_of_time_ = out_of_time;
      if (out_of_time)
        ledger_->stop_placing();
      else
        ledger_->go_on_placing();
      wake();
    }
    next = std::min(next, place_retries(at));
    next = std::min(next, watch_platform(at));
    board_->set_active(active);
    if (board_->wants_progress()) {
      // Times move on for those who watch, also while nothing else does.
      board_->progress(ledger_->counts());
      next = std::min(next, at + std::chrono::seconds(1));
    }
    if (at - profile_written_ >= std::chrono::seconds(10) && store_trouble_.empty()) {
      profile_written_ = at;
      const StoreEvent profile{board_->profile(ledger_->counts())};
      last_ = policies_->append(std::span<const StoreEvent>(&profile, 1));
    }
    auto wait = async::race(context_->clock().sleep_until(next), limits_changed_.wait());
    co_await std::move(wait);
  }
}

// Lets trials wait for a place whose pause is over. @returns when to look again
NNI_LAZY_BODY SteadyPoint Engine::place_retries(SteadyPoint at) {
  while (!retries_.empty() && retries_.top().first <= at) {
    ledger_->retry_due(retries_.top().second);
    retries_.pop();
    wake();
  }
  return retries_.empty() ? SteadyPoint::max() : retries_.top().first;
}

// Stops what ran too long. @returns when to look again
NNI_LAZY_BODY SteadyPoint Engine::stop_overdue(SteadyPoint at) {
  const Duration limit = *options_->max_trial_duration;
  while (!starts_.empty() && starts_.front().first + limit <= at) {
    const RunId run = starts_.front().second;
    starts_.pop_front();
    if (!ledger_->is_live(run)) continue;
    Transition transition;
    ledger_->cancel(run.trial, StopReason::time_limit, now(), transition);
    apply(transition);
  }
  return starts_.empty() ? at + limit : starts_.front().first + limit;
}

}  // namespace nni::detail
