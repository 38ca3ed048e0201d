// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

#include <algorithm>
#include <utility>

#include <nni/core/crash_point.hpp>
#include <nni/experiment/detail/engine.hpp>
#include <nni/experiment/detail/engine_loops_inl.hpp>
#include <nni/experiment/detail/engine_orders_inl.hpp>
#include <nni/experiment/detail/engine_outage_inl.hpp>
#include <nni/experiment/detail/engine_placing_inl.hpp>
#include <nni/experiment/detail/engine_steering_inl.hpp>

namespace nni::detail {

NNI_LAZY_BODY awaitable<void> Engine::run() {
  if (failure_) std::rethrow_exception(failure_);
  async::task_group loops(*context_);
  group_ = &loops;
  resources_stale_ = true;
  began_ = context_->clock().steady_now();
  if (paused_at_) paused_at_ = began_;
  for (const RetryLater& later : ledger_->pauses(now())) retry_later(later);
  loops.spawn(lasting(written_loop(), "records of the data store"));
  loops.spawn(lasting(synced_loop(), "synced records of the data store"));
  loops.spawn(lasting(service_loop(), "orders to the training service"));
  loops.spawn(lasting(message_loop(), "messages of trials"));
  loops.spawn(lasting(event_loop(), "events of the training service"));
  loops.spawn(lasting(order_loop(), "orders of the advisor"));
  loops.spawn(lasting(control_loop(), "decisions of the experiment"));
  loops.spawn(lasting(limit_loop(), "limits of the experiment"));
  for (auto& [end, lost] : std::exchange(ended_before_, {}))
    loops.spawn(lasting(hear_end(std::move(end), lost), "end of an earlier run"));
  if (stopping_) loops.spawn(give_up());
  for (awaitable<void>& waiting : std::exchange(early_, {})) loops.spawn(std::move(waiting));
  auto all = loops.join();
  co_await std::move(all);
}

NNI_LAZY_BODY void Engine::listen() {
  policies_->on_trouble([this](const std::string& reason) { note_store_trouble(reason); },
                        [this](const std::string& reason) { note_trouble(service_trouble_, reason); });
}

NNI_LAZY_BODY void Engine::stop_listening() { policies_->on_trouble({}, {}); }

NNI_LAZY_BODY void Engine::request_stop() {
  if (stopping_) return;
  stopping_ = true;
  board_->set_status(ExperimentStatus::stopping);
  Transition transition;
  ledger_->stop_placing();
  ledger_->cancel_all(now(), transition);
  apply(transition);
  drop_submissions(written_);
  drop_submissions(synced_);
  drop_submissions(in_turn_);
  if (group_) group_->spawn(give_up());
  // A stop while records cannot be kept takes more messages, see `piles_up`.
  make_room();
  wake();
}

NNI_LAZY_BODY void Engine::fail(std::exception_ptr failure) {
  if (!group_)
    failure_ = std::move(failure);
  else
    group_->spawn(throw_again(std::move(failure)));
}

NNI_LAZY_BODY std::vector<std::shared_ptr<std::promise<bool>>> Engine::take_unanswered() {
  return std::exchange(unanswered_, {});
}

NNI_LAZY_BODY void Engine::spawn(awaitable<void> work) {
  if (group_) group_->spawn(std::move(work));
}

NNI_LAZY_BODY void Engine::apply(Transition& transition) {
  StorePosition position = last_;
  if (!transition.records.empty()) last_ = position = policies_->append(std::move(transition.records));
  for (Effect& effect : transition.effects) {
    if (effect.waits_for == Durability::written) {
      written_.emplace_back(position, std::move(effect.action));
      written_changed_.notify();
    } else if (effect.waits_for == Durability::synced) {
      synced_.emplace_back(position, std::move(effect.action));
      synced_changed_.notify();
    } else {
      dispatch(std::move(effect.action));
    }
  }
}

NNI_LAZY_BODY Duration Engine::active_at(SteadyPoint at) const {
  return at - began_ - paused_for_ - (paused_at_ ? at - *paused_at_ : Duration{});
}

NNI_LAZY_BODY void Engine::note_trouble(std::string& which, const std::string& reason) {
  which = reason;
  show_trouble();
  make_room();
  trouble_changed_.notify();
  limits_changed_.notify();
  wake();
}

NNI_LAZY_BODY void Engine::note_store_trouble(const std::string& reason) {
  if (reason.empty())
    resume(PauseReason::store);
  else
    pause(PauseReason::store, reason);
  note_trouble(store_trouble_, reason);
}

NNI_LAZY_BODY void Engine::wake() {
  dirty_ = true;
  changed_.notify();
}

NNI_LAZY_BODY void Engine::dispatch(Action action) {
  if (auto* released = std::get_if<Release>(&action)) {
    policies_->release(released->placement);
    resources_stale_ = true;
  } else if (auto* ended = std::get_if<Announce>(&action)) {
    board_->trial_ended(std::move(*ended->detail));
  } else if (const auto* later = std::get_if<RetryLater>(&action)) {
    retry_later(*later);
  } else if (std::holds_alternative<Cancel>(action)) {
    urgent_.push_back(std::move(action));
  } else {
    inbox_.push_back(std::move(action));
  }
  wake();
}

NNI_LAZY_BODY Action Engine::take_action() {
  Queue<Action>& from = urgent_.empty() ? inbox_ : urgent_;
  Action action = std::move(from.front());
  from.pop_front();
  return action;
}

NNI_LAZY_BODY bool Engine::piles_up() const noexcept {
  const std::size_t scale = stopping_ && !store_trouble_.empty() ? 10 : 1;
  return written_.size() + synced_.size() >= scale * most_unwritten || inbox_.size() >= scale * most_undone;
}

NNI_LAZY_BODY void Engine::make_room() {
  if (!piles_up()) room_.notify();
}

NNI_LAZY_BODY awaitable<void> Engine::perform(Action action) {
  if (auto* submit = std::get_if<Submit>(&action)) {
    if (!submit->form) co_return;
    policies_->address(*submit->form);
    if (takes_several())
      group_->spawn(submit_trial(std::move(*submit->form)));
    else
      order_in_turn(std::move(action));
  } else if (auto* acknowledge = std::get_if<Acknowledge>(&action)) {
    NNI_CRASH_POINT("before acknowledgement");
    auto work = policies_->acknowledge(acknowledge->receipt);
    co_await std::move(work);
  } else if (auto* metric = std::get_if<ReportMetric>(&action)) {
    auto work = policies_->report(metric->metric);
    co_await std::move(work);
  } else if (auto* outcome = std::get_if<ReportOutcome>(&action)) {
    auto work = policies_->trial_ended(outcome->outcome);
    co_await std::move(work);
    NNI_CRASH_POINT("tuner told");
  } else if (auto* cancel = std::get_if<Cancel>(&action)) {
    if (takes_several())
      group_->spawn(cancel_trial(cancel->run, cancel->why));
    else
      order_in_turn(std::move(action));
  } else if (const auto* forget = std::get_if<Forget>(&action)) {
    policies_->end_recorded(forget->run);
  }
}

NNI_LAZY_BODY bool Engine::is_busy() const {
  return in_flight_ >= std::max<std::size_t>(policies_->capabilities().max_in_flight, 1);
}

NNI_LAZY_BODY void Engine::leave_service() {
  --in_flight_;
  in_flight_changed_.notify_one();
}

NNI_LAZY_BODY void Engine::order_in_turn(Action action) {
  if (const auto* submit = std::get_if<Submit>(&action)) {
    submitting_.emplace(submit->form->run, std::nullopt);
    in_turn_.emplace_back(StorePosition(), std::move(action));
  } else {
    in_turn_.emplace_front(StorePosition(), std::move(action));
  }
  in_turn_changed_.notify();
}

NNI_LAZY_BODY void Engine::forget_queued(RunId run) {
  if (queued_.erase(run) != 0) show_queued();
}

NNI_LAZY_BODY void Engine::note_start(RunId run, Duration ago) {
  if (!options_->max_trial_duration) return;
  const std::pair<SteadyPoint, RunId> start(context_->clock().steady_now() - ago, run);
  starts_.insert(std::upper_bound(starts_.begin(), starts_.end(), start), start);
}

}  // namespace nni::detail
