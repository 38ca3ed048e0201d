// IWYU pragma: private, include <nni/experiment/detail/engine.hpp>
#pragma once

/// @file
/// Bodies of `detail::Engine`: the loops that wait for records, messages, events and orders. Included by engine_inl.hpp.

#include <nni/concepts/metric_transport.hpp>
#include <nni/experiment/detail/engine.hpp>

namespace nni::detail {

// A loop that a policy ends by a cancellation of its own would end quietly, and the experiment never.
NNI_LAZY_BODY awaitable<void> Engine::lasting(awaitable<void> loop, const char* what) {
  try {
    co_await std::move(loop);
  } catch (const std::exception& error) {
    if (group_->cancelled() || !async::is_cancellation(std::current_exception())) throw;
    throw Error(Errc::internal,
                std::string("the ") + what + " ended with a cancellation that nobody had asked for: " + error.what());
  }
}

// A source that always has something ready would keep everything else from running: each loop yields after a bounded
// number of steps.

NNI_LAZY_BODY awaitable<void> Engine::written_loop() {
  unsigned steps = 0;
  while (true) {
    while (written_.empty()) {
      auto change = written_changed_.wait();
      co_await std::move(change);
    }
    const StorePosition position = written_.back().position;
    auto stored = policies_->written(position);
    co_await std::move(stored);
    while (!written_.empty() && written_.front().position <= position) {
      Action action = std::move(written_.front().action);
      written_.pop_front();
      auto work = perform(std::move(action));
      co_await std::move(work);
      if (++steps % steps_per_turn == 0) {
        make_room();
        auto others = async::yield(context_->executor());
        co_await std::move(others);
      }
    }
    make_room();
  }
}

NNI_LAZY_BODY awaitable<void> Engine::synced_loop() {
  unsigned steps = 0;
  while (true) {
    while (synced_.empty()) {
      auto change = synced_changed_.wait();
      co_await std::move(change);
    }
    const StorePosition position = synced_.back().position;
    auto stored = policies_->synced(position);
    co_await std::move(stored);
    while (!synced_.empty() && synced_.front().position <= position) {
      Action action = std::move(synced_.front().action);
      synced_.pop_front();
      auto work = perform(std::move(action));
      co_await std::move(work);
      if (++steps % steps_per_turn == 0) {
        make_room();
        auto others = async::yield(context_->executor());
        co_await std::move(others);
      }
    }
    make_room();
  }
}

NNI_LAZY_BODY awaitable<void> Engine::message_loop() {
  Transition transition;
  unsigned steps = 0;
  while (true) {
    // Back-pressure: a message that cannot be kept yet is left in the channel, and its sender waits.
    while (piles_up()) {
      auto change = room_.wait();
      co_await std::move(change);
    }
    if (++steps % steps_per_turn == 0) {
      auto others = async::yield(context_->executor());
      co_await std::move(others);
    }
    auto next = policies_->next_message();
    TrialMessage message = co_await std::move(next);
    NNI_CRASH_POINT("message received");
    if (message.kind == TrialMessage::Kind::garbage && ledger_->counts().garbage == 0)
      context_->log().warning(
          "experiment", "run " + to_string(message.metric.run) +
                            " sent something that is not a metric; it is skipped, like any further: " + message.text);
    ledger_->message(std::move(message), transition);
    apply(transition);
    transition.clear();  // a value may be large, and the next one may come late
  }
}

NNI_LAZY_BODY awaitable<void> Engine::event_loop() {
  Transition transition;
  unsigned steps = 0;
  while (true) {
    while (ending_ >= most_ending) {
      auto change = room_.wait();
      co_await std::move(change);
    }
    if (++steps % steps_per_turn == 0) {
      auto others = async::yield(context_->executor());
      co_await std::move(others);
    }
    auto next = policies_->next_event();
    JobEvent event = co_await std::move(next);
    if (const auto* started = std::get_if<JobStarted>(&event)) {
      note_start(started->run, Duration{});
      forget_queued(started->run);
      release_starts();
    } else if (const auto* queued = std::get_if<JobQueued>(&event)) {
      queued_[queued->run] = queued->reason;
      show_queued();
      release_starts();
    } else if (auto* ended = std::get_if<JobEnded>(&event)) {
      NNI_CRASH_POINT("exit seen");
      if (ended->end.kind == EndKind::deferred) {
        defer_run(std::move(*ended));
        continue;
      }
      // Lost and killed runs say nothing about the next start.
      if (ended->end.kind != EndKind::lost && ended->end.kind != EndKind::killed) release_starts();
      forget_queued(ended->run);
      auto hearing = hear_end(std::move(*ended), false);
      if (policies_->facts().ends_come_last) {
        co_await std::move(hearing);
      } else {
        // Beside what follows: a run whose messages take their time keeps back no other.
        group_->spawn(lasting(std::move(hearing), "end of a run"));
      }
      continue;
    } else {
      resources_stale_ = true;
    }
    transition.clear();
    ledger_->event(event, now(), transition);
    apply(transition);
    if (const auto* started = std::get_if<JobStarted>(&event)) policies_->trial_started(started->run);
    wake();
  }
}

NNI_LAZY_BODY awaitable<void> Engine::settle(RunId run) {
  ++ending_;
  while (settling_ >= most_settling) {
    auto turn = settled_.wait();
    co_await std::move(turn);
  }
  ++settling_;
  auto work = settle_now(run);
  co_await std::move(work);
  --settling_;
  settled_.notify_one();
  if (ending_-- == most_ending) room_.notify();
}

NNI_LAZY_BODY awaitable<void> Engine::settle_now(RunId run) {
  auto work = policies_->settle(run);
  if (policies_->facts().is_carried) {
    co_await std::move(work);
  } else {
    bool lost = false;
    try {
      auto limited = async::with_timeout(std::move(work), std::chrono::seconds(5));
      co_await std::move(limited);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::timed_out)) throw;
      lost = true;
    }
    if (lost) board_->count_unsettled();
    if (lost)
      context_->log().warning(
          "experiment", "messages of run " + to_string(run) + " did not arrive within 5 s of its end");
  }
}

NNI_LAZY_BODY awaitable<void> Engine::order_loop() {
  Transition transition;
  unsigned steps = 0;
  while (true) {
    while (sending_ >= most_sending || ledger_->counts().waiting >= most_waiting) {
      auto change = room_.wait();
      co_await std::move(change);
    }
    if (++steps % steps_per_turn == 0) {
      auto others = async::yield(context_->executor());
      co_await std::move(others);
    }
    auto next = policies_->next_order();
    Order order = co_await std::move(next);
    transition.clear();
    if (auto* trial = std::get_if<NewTrial>(&order)) {
      tuner_is_done_ = false;
      ledger_->order(std::move(*trial), now(), transition);
    } else if (auto* further = std::get_if<SendParameters>(&order)) {
      group_->spawn(send_further(std::move(*further)));
    } else if (const auto* kill = std::get_if<KillTrial>(&order)) {
      ledger_->cancel(kill->trial, StopReason::early_stop, now(), transition);
    } else if (std::holds_alternative<NoMoreTrials>(order)) {
      tuner_is_done_ = true;
      ledger_->no_more_trials();
    }
    apply(transition);
    wake();
  }
}

NNI_LAZY_BODY awaitable<void> Engine::control_loop() {
  for (unsigned steps = 1;; ++steps) {
    dirty_ = false;
    // What arrives meanwhile is for the next round: decisions are not put off for ever.
    for (std::size_t left = inbox_.size(); left != 0 || !urgent_.empty(); ++steps) {
      if (urgent_.empty()) --left;
      auto work = perform(take_action());
      co_await std::move(work);
      if (steps % steps_per_turn == 0) {
        make_room();
        auto others = async::yield(context_->executor());
        co_await std::move(others);
      }
    }
    make_room();
    if (const std::size_t wanted = in_trouble() ? 0 : ledger_->wanted(); wanted != 0) {
      ledger_->requested(wanted);
      auto work = policies_->request(wanted);
      co_await std::move(work);
    }
    if (!in_trouble() && ledger_->next_waiting() && may_place()) {
      auto work = place_waiting();
      co_await std::move(work);
    }
    if (board_->wants_progress()) {
      board_->set_active(active());
      board_->progress(ledger_->counts());
    }
    if (ledger_->finished() && inbox_.empty() && urgent_.empty() && !dirty_) {
      group_->cancel();
      co_return;
    }
    if (const std::string why = ledger_->cannot_start();
        !why.empty() && !stopping_ && inbox_.empty() && urgent_.empty() && !dirty_)
      refuse_to_go_on(why);
    follow_status();
    if (steps % steps_per_turn == 0) {
      auto others = async::yield(context_->executor());
      co_await std::move(others);
    }
    while (!dirty_ && inbox_.empty() && urgent_.empty()) {
      auto change = changed_.wait();
      co_await std::move(change);
    }
  }
}

}  // namespace nni::detail
