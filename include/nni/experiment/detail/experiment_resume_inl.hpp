// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `ExperimentCore`: opening, and going on with what was recorded. Included by experiment_core_inl.hpp.

#include <cmath>
#include <utility>

#include <nni/core/crash_point.hpp>
#include <nni/experiment/detail/place.hpp>
#include <nni/experiment/experiment_core.hpp>
#include <nni/experiment/history.hpp>
#include <nni/experiment/import.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni::detail {

NNI_LAZY_BODY awaitable<void> ExperimentCore::open_all(Context& context, Board& board) {
  if (!directory_.empty()) make_directory(directory_);
  auto opening = policies_->open_store(context, id_);
  snapshot_ = co_await std::move(opening);
  const CompositionFacts& facts = policies_->facts();
  if (facts.has_store && snapshot_.exists && options_.resume == Resume::never)
    throw Error(Errc::already_exists,
                "experiment \"" + id_.value + "\" exists" + (directory_.empty() ? "" : " in " + directory_.string()) +
                    "; set .resume = nni::Resume::if_exists to go on with it, or choose another id");
  if (!snapshot_.exists && options_.resume == Resume::always)
    throw Error(
        Errc::not_found,
        "there is no experiment \"" + id_.value + "\"" + (directory_.empty() ? "" : " in " + directory_.string()) +
            " to go on with; check the id and the directory, or set .resume = nni::Resume::if_exists");
  auto mounting = policies_->open_storage(context);
  co_await std::move(mounting);
  if (!facts.is_carried) {
    auto listening = policies_->open_transport(context);
    co_await std::move(listening);
  }
  take_settings();
  const Objectives goals(options_.direction);
  auto starting = policies_->start_advisor(context, space_, goals);
  co_await std::move(starting);
  ledger_.emplace(ledger_options());
  if (facts.has_store) {
    ledger_->restore(snapshot_);
    if (snapshot_.exists) {
      auto replaying = replay(board);
      co_await std::move(replaying);
    }
  }
  NNI_CRASH_POINT("history told");
  // A later manager can resume the experiment if its records outlive this process.
  policies_->set_life(settings_.life, facts.has_store && !facts.keeps_in_memory);
  auto serving = policies_->start_service(context);
  co_await std::move(serving);
  NNI_CRASH_POINT("service started");
}

NNI_LAZY_BODY bool ExperimentCore::fits(const Parameters& parameters) const {
  return space_.empty() || space_.to_point(parameters).has_value();
}

// Tells the advisor what it learnt before, and the board who was best.
NNI_LAZY_BODY awaitable<void> ExperimentCore::replay(Board& board) {
  const auto visit = [this, &board](TrialJobDetail trial, std::optional<std::vector<double>> history) {
    return replay_trial(board, std::move(trial), std::move(history));
  };
  auto pages = for_each_history(*policies_, policies_->facts().replays_histories, visit);
  co_await std::move(pages);
  replay_imported(board, static_cast<std::uint64_t>(-1));
  for (UnfinishedTrial& trial : snapshot_.unfinished) {
    const RunId run{trial.trial, trial.attempts == 0 ? 0 : trial.attempts - 1};
    // As `AsAdvisor` keeps the histories of trials that it has seen from their beginning.
    std::erase_if(trial.history, [](double number) { return !std::isfinite(number); });
    policies_->replay_unfinished(trial, run);
  }
}

// Results from elsewhere are told where they were told first: what a tuner suggests may depend on the order.
NNI_LAZY_BODY void ExperimentCore::replay_imported(Board& board, std::uint64_t before) {
  while (imported_ < snapshot_.imported.size() && snapshot_.imported[imported_].after < before)
    report_imported(board, snapshot_.imported[imported_++]);
}

NNI_LAZY_BODY void ExperimentCore::report_imported(Board& board, const ResultImported& result) {
  if (!fits(result.parameters)) board.count_unfitting();
  policies_->import_result(result);
}

NNI_LAZY_BODY void ExperimentCore::import_new(ExperimentCore& self, Board& board, Transition& out) {
  leave_out_known(self.to_import_, self.snapshot_.imported);
  for (ResultImported& result : self.to_import_) {
    result.after = self.ledger_->counts().ordered;
    self.report_imported(board, result);
    self.snapshot_.imported.push_back(result);
    out.records.emplace_back(std::move(result));
  }
  self.imported_ = self.snapshot_.imported.size();
  self.to_import_.clear();
}

// After a change of the space; a later change begins anew.
NNI_LAZY_BODY awaitable<void> ExperimentCore::count_unfitting() {
  const std::uint64_t mine = space_count_;
  std::uint64_t count = 0;
  const auto visit = [this, &count](TrialJobDetail trial) { return count_if_unfitting(count, std::move(trial)); };
  auto pages = for_each_trial(*policies_, static_cast<std::size_t>(-1), visit);
  co_await std::move(pages);
  for (const ResultImported& result : snapshot_.imported)
    if (!fits(result.parameters)) ++count;
  if (board_ && mine == space_count_) board_->set_unfitting(count);
}

NNI_LAZY_BODY awaitable<void> ExperimentCore::count_if_unfitting(std::uint64_t& count, TrialJobDetail trial) {
  if (is_terminal(trial.status) && final_number(trial) && !fits(trial.parameters)) ++count;
  co_return;
}

NNI_LAZY_BODY awaitable<void> ExperimentCore::replay_trial(
    Board& board, TrialJobDetail trial, std::optional<std::vector<double>> known) {
  if (imported_ < snapshot_.imported.size()) replay_imported(board, trial.trial.number);
  if (!is_terminal(trial.status)) {
    ledger_->recall(trial);
    co_return;
  }
  if (options_.retry_failed && trial.status == TrialJobStatus::failed) {
    UnfinishedTrial& again = snapshot_.unfinished.emplace_back();
    again.trial = trial.trial;
    again.parameter = trial.parameter;
    again.parameters = trial.parameters;
    again.attempts = trial.attempts;
    ledger_->reopen(std::move(trial));
    co_return;
  }
  board.remember(trial);
  if (settings_.changed_space() && final_number(trial) && !fits(trial.parameters)) board.count_unfitting();
  const CompositionFacts& facts = policies_->facts();
  if (!facts.replays_trials) co_return;
  std::vector<double> history;
  if (known) {
    history = *std::move(known);
  } else if (facts.replays_histories || (trial.status == TrialJobStatus::early_stopped && !trial.final_value)) {
    auto reading = policies_->metrics(trial.trial);
    const std::vector<Metric> metrics = co_await std::move(reading);
    history = intermediate_numbers(metrics);
  }
  policies_->replay(outcome_of(trial, last_finite(history)), history);
}

NNI_LAZY_BODY awaitable<std::vector<JobReport>> ExperimentCore::adopt_open_runs() {
  std::vector<Intent> open = ledger_->open_intents();
  std::vector<JobReport> reports;
  if (policies_->facts().adopts_runs) {
    // Also without any: what still runs for this experiment is unknown to its records, and the service ends it.
    auto adopting = policies_->adopt(std::move(open));
    reports = co_await std::move(adopting);
  } else {
    for (const Intent& intent : open) {
      JobReport& report = reports.emplace_back(intent.run, JobReport::State::unknown);
      report.end = JobEnd{EndKind::lost, 0, std::string(policies_->facts().platform) + " runs end with their manager"};
    }
  }
  co_return reports;
}

}  // namespace nni::detail
