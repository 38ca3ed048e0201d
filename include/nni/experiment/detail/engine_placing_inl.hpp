// IWYU pragma: private, include <nni/experiment/detail/engine.hpp>
#pragma once

/// @file
/// Bodies of `detail::Engine`: where waiting trials run. Included by engine_inl.hpp.

#include <nni/experiment/detail/engine.hpp>

namespace nni::detail {

NNI_LAZY_BODY awaitable<void> Engine::place_waiting() {
  if (std::exchange(resources_stale_, false)) {
    std::string failure;
    try {
      auto work = policies_->resources();
      resources_ = co_await std::move(work);
    } catch (const std::exception& error) {
      if (group_->cancelled() || !is_transient(error)) throw;
      failure = error.what();
    }
    if (!failure.empty()) {
      resources_stale_ = true;
      hold_starts(std::move(failure));
      co_return;
    }
  }
  show_queued();
  Transition transition;
  while (const std::optional<TrialId> trial = ledger_->next_waiting()) {
    if (!may_place()) co_return;
    const ResourceRequest request = hooks_.request_of(*trial);
    PlacementResult answer = policies_->place(request, resources_);
    if (auto* wait = std::get_if<Wait>(&answer)) {
      board_->set_waiting_reason(std::move(wait->reason));
      co_return;
    }
    transition.clear();
    if (auto* never = std::get_if<Impossible>(&answer)) {
      ledger_->refuse(*trial, std::move(never->reason), now(), transition);
    } else {
      ledger_->intend(*trial, hooks_.form(*trial, request, std::move(std::get<Placement>(answer))), now(), transition);
      if (const std::optional<RunId> run = ledger_->live_run(*trial)) note_probe(*run);
    }
    apply(transition);
  }
}

NNI_LAZY_BODY void Engine::refuse_to_go_on(const std::string& why) const {
  throw Error(
      Errc::spawn_failed,
      std::to_string(options_->max_failed_starts) +
          " runs in a row could not be started, and no trial has reported anything since the experiment was "
          "started; the last one: " +
          why + "; mend it and go on with .resume = nni::Resume::if_exists, or set .max_failed_starts = 0");
}

}  // namespace nni::detail
