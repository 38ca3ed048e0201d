// IWYU pragma: private, include <nni/experiment/detail/engine.hpp>
#pragma once

/// @file
/// Bodies of `detail::Engine`: a platform that is away for a while. What it cannot start is submitted again after a pause
/// (0.1 s, doubled up to 10 s), and so is a cancellation that it refuses; what lasts longer than the option says ends the
/// experiment. Included by engine_inl.hpp.

#include <nni/experiment/detail/engine.hpp>

namespace nni::detail {

// Of several reasons the one that stops most is shown.
NNI_LAZY_BODY void Engine::show_trouble() {
  std::string reason = !store_trouble_.empty() ? store_trouble_ : service_trouble_;
  if (reason.empty() && outage_) reason = "no trial can be started for now, which is tried again: " + outage_->reason;
  if (reason.empty() && !refused_.empty())
    reason = "run " + to_string(refused_.begin()->first) +
             " cannot be stopped for now, which is tried again: " + refused_.begin()->second;
  board_->set_trouble(std::move(reason));
}

NNI_LAZY_BODY void Engine::defer_run(JobEnded what) {
  std::string reason = std::move(what.end.message);
  if (reason.empty()) reason = "the platform gave no reason";
  what.end.message = reason;
  forget_queued(what.run);
  Transition transition;
  ledger_->event(what, now(), transition);
  apply(transition);
  hold_starts(std::move(reason));
}

// Runs that were submitted before the first of them failed say the same once more; only one that was tried after the
// pause makes the pause longer.
NNI_LAZY_BODY void Engine::hold_starts(std::string reason) {
  const SteadyPoint at = context_->clock().steady_now();
  if (!outage_) {
    context_->log().warning("experiment", "no trial can be started for now, which is tried again: " + reason);
    outage_.emplace();
    outage_->since = at;
  }
  outage_->reason = std::move(reason);
  outage_->probe.reset();
  if (at >= outage_->until) {
    outage_->pause =
        outage_->pause == Duration::zero() ? first_outage_pause : std::min(outage_->pause * 2, longest_outage_pause);
    outage_->until = at + outage_->pause;
  }
  show_trouble();
  limits_changed_.notify();
  wake();
}

NNI_LAZY_BODY void Engine::release_starts() {
  if (!outage_) return;
  context_->log().info("experiment", "trials can be started again");
  drop_outage();
}

NNI_LAZY_BODY void Engine::drop_outage() {
  outage_.reset();
  show_trouble();
  wake();
}

// After each pause one run shows how the platform is. One that it accepted, and has not deferred by the end of the next
// pause, is as good as started: some platforms queue for hours.
NNI_LAZY_BODY bool Engine::may_place() {
  if (!outage_) return true;
  if (context_->clock().steady_now() < outage_->until) return false;
  if (!outage_->probe || !ledger_->is_live(*outage_->probe)) return true;
  if (!outage_->answered) return false;
  release_starts();
  return true;
}

NNI_LAZY_BODY void Engine::note_probe(RunId run) {
  if (!outage_) return;
  outage_->probe = run;
  outage_->answered = false;
  outage_->until = context_->clock().steady_now() + outage_->pause;
  limits_changed_.notify();
}

// @returns when to look again
NNI_LAZY_BODY SteadyPoint Engine::watch_platform(SteadyPoint at) {
  SteadyPoint next = SteadyPoint::max();
  if (outage_ && at >= outage_->until) {
    if (outage_->probe && !outage_->answered && ledger_->is_live(*outage_->probe))
      outage_->until = at + outage_->pause;  // nothing is proved yet
    else if (may_place() && outage_ && !ledger_->next_waiting())
      drop_outage();  // nobody is left who could try
    wake();
  }
  if (outage_) next = std::max(outage_->until, at + first_outage_pause);
  // A disk that is full for store and service alike is waited for as the store waits.
  if (!store_trouble_.empty() || service_trouble_.empty())
    service_away_.reset();
  else if (!service_away_)
    service_away_ = at;
  if (stopping_ || !options_->platform_outage_limit) return next;
  const Duration limit = *options_->platform_outage_limit;
  if (service_away_) {
    if (at - *service_away_ >= limit) end_by_outage(service_trouble_);
    next = std::min(next, *service_away_ + limit);
  }
  // Runs that go on are worth more than an early end.
  if (outage_ && store_trouble_.empty() && ledger_->counts().running == 0) {
    if (at - outage_->since >= limit) end_by_outage(outage_->reason);
    next = std::min(next, outage_->since + limit);
  }
  return next;
}

NNI_LAZY_BODY void Engine::end_by_outage(const std::string& reason) const {
  throw Error(
      Errc::timed_out,
      "the training service could start no trial for " + to_string(*options_->platform_outage_limit) + ": " + reason +
          "; no trial was used up by that: fix the cause and resume with .resume = nni::Resume::if_exists, or "
          "set a longer .platform_outage_limit");
}

// @returns why the platform refused; nothing when it did not, or when the run has ended meanwhile
NNI_LAZY_BODY awaitable<std::optional<std::string>> Engine::ask_to_cancel(RunId run, StopReason why) {
  std::optional<std::string> refusal;
  while (is_busy()) {
    auto turn = in_flight_changed_.wait();
    co_await std::move(turn);
  }
  ++in_flight_;
  try {
    auto work = policies_->cancel_trial_job(run, why);
    co_await std::move(work);
  } catch (const std::exception& error) {
    if (group_->cancelled() && async::is_cancellation(std::current_exception())) throw;
    // Its end may have crossed the request on the way.
    const auto* known = dynamic_cast<const Error*>(&error);
    if (!known || known->code() != make_error_code(Errc::no_such_job)) refusal = error.what();
  }
  leave_service();
  co_return refusal;
}

// Beside everything else: a platform that refuses one request must not keep back the others.
NNI_LAZY_BODY awaitable<void> Engine::cancel_again(RunId run, StopReason why, std::string refusal) {
  context_->log().warning(
      "experiment", "run " + to_string(run) + " could not be stopped, which is tried again: " + refusal);
  std::optional<std::string> reason = std::move(refusal);
  for (Duration pause = first_outage_pause; reason && ledger_->is_live(run);
       pause = std::min(pause * 2, longest_outage_pause)) {
    refused_[run] = *std::move(reason);
    show_trouble();
    wake();
    auto sleep = context_->clock().sleep_until(context_->clock().steady_now() + pause);
    co_await std::move(sleep);
    reason.reset();
    if (!ledger_->is_live(run)) break;
    auto asking = ask_to_cancel(run, why);
    reason = co_await std::move(asking);
  }
  refused_.erase(run);
  show_trouble();
  wake();
}

// A run that does not end although it was told to must not keep the experiment for ever, and one whose end cannot arrive
// is not worth the whole limit.
NNI_LAZY_BODY awaitable<void> Engine::give_up() {
  const SteadyPoint begin = context_->clock().steady_now();
  const Duration limit = context_->shutdown_limit();
  bool said = false;
  for (;;) {
    const SteadyPoint at = context_->clock().steady_now();
    const SteadyPoint end = begin + (in_trouble() ? std::min(limit, end_limit_in_trouble) : limit);
    if (at >= end) break;
    if (!said && at - begin >= quiet_end) {
      said = true;
      context_->log().warning("experiment", what_is_awaited() + "; it is waited for up to " + to_string(end - begin) +
                                                ", and a second stop signal ends this process at once");
    }
    const SteadyPoint next = said ? end : std::min(end, begin + quiet_end);
    auto wait = async::race(context_->clock().sleep_until(next), trouble_changed_.wait());
    co_await std::move(wait);
  }
  context_->log().error("experiment", what_is_awaited() + "; it is not waited for any longer");
  group_->cancel();
}

NNI_LAZY_BODY std::string Engine::what_is_awaited() const {
  std::string text = "stopping: " + std::to_string(ledger_->counts().live) + " runs have not ended yet";
  const std::string& reason = !store_trouble_.empty() ? store_trouble_ : service_trouble_;
  if (!reason.empty()) text += " (" + reason + ")";
  if (!refused_.empty()) text += " (" + refused_.begin()->second + ")";
  return text;
}

}  // namespace nni::detail
