// IWYU pragma: private, include <nni/experiment/detail/engine.hpp>
#pragma once

/// @file
/// What an engine is asked for from outside its loops: orders of a program that drives it itself, runs of an earlier
/// manager, files and further parameters of a run. Included by engine.hpp.

#include <nni/experiment/detail/engine.hpp>

namespace nni::detail {

NNI_LAZY_BODY TrialId Engine::order(NewTrial what) {
  Transition transition;
  tuner_is_done_ = false;
  const TrialId id = ledger_->order(std::move(what), now(), transition);
  apply(transition);
  wake();
  return id;
}

NNI_LAZY_BODY void Engine::cancel(TrialId trial, StopReason why) {
  Transition transition;
  ledger_->cancel(trial, why, now(), transition);
  apply(transition);
  wake();
}

NNI_LAZY_BODY void Engine::adopt(const std::vector<JobReport>& reports) {
  for (JobReport report : reports) {
    if (policies_->facts().resumes_channel) {
      // What an ended run left in its channel is heard before its end, as always.
      if (report.state != JobReport::State::never_started) policies_->resume_channel(report.run);
      if (report.state == JobReport::State::ended || report.state == JobReport::State::unknown) {
        if (report.state == JobReport::State::unknown) {
          report.end.kind = EndKind::lost;
          if (report.end.message.empty()) report.end.message = "the platform no longer knows this run";
        }
        const bool lost = report.state == JobReport::State::unknown;
        JobEnded end(report.run, report.end, report.ended == TimePoint{} ? now() : report.ended);
        ended_before_.emplace_back(std::move(end), lost);
        report.state = JobReport::State::running;
      }
    }
    Transition transition;
    ledger_->adopted(report, now(), transition);
    if (const Placement* held = ledger_->placement(report.run)) {
      policies_->hold(*held);
      // A wall clock that was set back meanwhile gives nobody more time.
      const Duration ago = report.started == TimePoint{} ? Duration{} : now() - report.started;
      note_start(report.run, std::max(ago, Duration{}));
    }
    apply(transition);
  }
}

// Ends a run that was cancelled while its submission waited for its turn or its files.
NNI_LAZY_BODY bool Engine::stopped_early(RunId run) {
  const auto early = submitting_.find(run);
  if (early == submitting_.end() || !early->second) return false;
  const std::optional<StopReason> stopped = submitting_.extract(early).mapped();
  JobEnd end{EndKind::killed, 0, "stopped before it started"};
  end.why = *stopped;
  Transition transition;
  ledger_->event(JobEnded{run, std::move(end), now()}, now(), transition);
  apply(transition);
  return true;
}

NNI_LAZY_BODY awaitable<void> Engine::service_loop() {
  for (unsigned steps = 1;; ++steps) {
    while (in_turn_.empty()) {
      auto change = in_turn_changed_.wait();
      co_await std::move(change);
    }
    if (steps % steps_per_turn == 0) {
      auto others = async::yield(context_->executor());
      co_await std::move(others);
      if (in_turn_.empty()) continue;
    }
    Action action = std::move(in_turn_.front().action);
    in_turn_.pop_front();
    if (auto* submit = std::get_if<Submit>(&action)) {
      if (!submit->form) continue;
      auto work = submit_trial(std::move(*submit->form));
      co_await std::move(work);
    } else if (const auto* cancel = std::get_if<Cancel>(&action)) {
      auto work = cancel_trial(cancel->run, cancel->why);
      co_await std::move(work);
    }
  }
}

NNI_LAZY_BODY awaitable<void> Engine::submit_trial(TrialJobForm form) {
  const RunId run = form.run;
  // It may be cancelled before it is through.
  submitting_.emplace(run, std::nullopt);
  while (is_busy()) {
    auto turn = in_flight_changed_.wait();
    co_await std::move(turn);
  }
  ++in_flight_;
  bool stopped = false;
  std::optional<std::string> failure;
  bool deferred = false;
  try {
    if (policies_->facts().prepares_files) {
      auto preparing = policies_->prepare(form);
      co_await std::move(preparing);
    }
    stopped = stopped_early(run);
    if (!stopped) {
      auto work = policies_->submit_trial_job(std::move(form));
      co_await std::move(work);
      NNI_CRASH_POINT("spawned");
    }
  } catch (const std::exception& error) {
    // Only this experiment's own cancellation is one; a platform may have let go of a connection.
    if (group_->cancelled() && async::is_cancellation(std::current_exception())) throw;
    failure = error.what();
    deferred = is_transient(error);
  }
  leave_service();
  if (outage_ && outage_->probe == run && !failure) outage_->answered = true;
  if (stopped) co_return;
  if (const auto early = submitting_.extract(run); early && early.mapped() && !failure) {
    auto work = cancel_trial(run, *early.mapped());
    co_await std::move(work);
  }
  if (!failure) co_return;
  if (deferred) {
    defer_run(JobEnded(run, JobEnd(EndKind::deferred, 0, std::move(*failure)), now()));
    co_return;
  }
  // A platform that refuses a job fails the trial, not the experiment.
  context_->log().warning("experiment", "run " + to_string(run) + " could not be submitted: " + *failure);
  Transition transition;
  forget_queued(run);
  const JobEnded ended{run, JobEnd{EndKind::not_started, 0, std::move(*failure)}, now()};
  ledger_->event(ended, now(), transition);
  apply(transition);
}

NNI_LAZY_BODY awaitable<void> Engine::cancel_trial(RunId run, StopReason why) {
  if (const auto early = submitting_.find(run); early != submitting_.end()) {
    early->second = why;
    co_return;
  }
  auto asking = ask_to_cancel(run, why);
  std::optional<std::string> refusal = co_await std::move(asking);
  if (refusal) group_->spawn(cancel_again(run, why, *std::move(refusal)));
}

NNI_LAZY_BODY awaitable<void> Engine::hear_end(JobEnded end, bool lost_with_manager) {
  auto settled = settle(end.run);
  co_await std::move(settled);
  Transition transition;
  if (lost_with_manager)
    ledger_->lost_with_manager(end, transition);
  else
    ledger_->event(end, now(), transition);
  apply(transition);
  wake();
}

// An advisor has more parameters for a running trial; one that has ended meanwhile needs none.
NNI_LAZY_BODY awaitable<void> Engine::send_further(SendParameters what) {
  const std::optional<RunId> run = ledger_->live_run(what.trial);
  if (!run) co_return;
  ++sending_;
  std::string failure;
  try {
    auto work = policies_->send(*run, std::move(what.parameters));
    co_await std::move(work);
  } catch (const Error& error) {
    if (group_->cancelled() && async::is_cancellation(std::current_exception())) throw;
    failure = error.what();
  }
  if (sending_-- == most_sending) room_.notify();
  if (!failure.empty())
    context_->log().warning("experiment", "run " + to_string(*run) + " could not be sent parameters: " + failure);
}

}  // namespace nni::detail
