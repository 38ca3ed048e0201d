#pragma once

/// @file
/// Bodies of `Ledger`: runs that a platform deferred. Included by ledger_inl.hpp.

#include <algorithm>
#include <utility>

#include <nni/ledger/ledger.hpp>

namespace nni {

// A deferred run keeps its number: its intent is recorded, and submitting it again is idempotent on the platform.
NNI_INLINE void Ledger::next_run(Trial& trial) {
  if (std::exchange(trial.deferred, false)) {
    --deferred_;
    return;
  }
  trial.run = RunId{trial.detail.trial, trial.detail.attempts};
  ++trial.detail.attempts;
}

NNI_INLINE void Ledger::put_back(Trial& trial, const JobEnded& event, Transition& out) {
  if (trial.told_to_stop || trial.start_recorded) {
    // Either it is no longer wanted, or it had started, so that it is lost now, whatever its platform calls that.
    JobEnd end{trial.start_recorded ? EndKind::lost : EndKind::killed, 0, event.end.message};
    if (trial.told_to_stop) end.why = *trial.told_to_stop;
    return ended(JobEnded{event.run, std::move(end), event.at}, false, out);
  }
  if (trial.detail.status == TrialJobStatus::running) --counts_.running;
  --counts_.live;
  trial.submitted = false;
  if (std::exchange(trial.holds_place, false))
    out.effects.emplace_back(Durability::none, Release{std::exchange(trial.placement, {})});
  trial.detail.status = TrialJobStatus::waiting;
  trial.detail.message = event.end.message;
  trial.deferred = true;
  ++deferred_;
  stand_in_line(trial.detail.trial);
}

// The platform may have accepted a run although the answer to its submission was lost on the way.
NNI_INLINE void Ledger::take_up(RunId run) {
  if (deferred_ == 0) return;
  const auto found = trials_.find(run.trial);
  if (found == trials_.end() || !found->second.deferred || found->second.run != run) return;
  Trial& trial = found->second;
  trial.deferred = false;
  --deferred_;
  std::erase(waiting_, run.trial);
  --counts_.waiting;
  trial.submitted = true;
  trial.detail.message.clear();
  ++counts_.live;
}

}  // namespace nni
