// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `Experiment`: opening, and going on with what was recorded. Included by experiment.hpp.

#include <nni/core/crash_point.hpp>
#include <nni/experiment/experiment.hpp>

namespace nni {

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::open_all(Context& context, detail::Board& board) {
  if (!directory_.empty()) detail::make_directory(directory_);
  auto opening = store_.open(context, id_);
  snapshot_ = co_await std::move(opening);
  if (resumable && snapshot_.exists && options_.resume == Resume::never)
    throw Error(Errc::already_exists,
                "experiment \"" + id_.value + "\" exists" + (directory_.empty() ? "" : " in " + directory_.string()) +
                    "; set .resume = nni::Resume::if_exists to go on with it, or choose another id");
  if (!snapshot_.exists && options_.resume == Resume::always)
    throw Error(
        Errc::not_found,
        "there is no experiment \"" + id_.value + "\"" + (directory_.empty() ? "" : " in " + directory_.string()) +
            " to go on with; check the id and the directory, or set .resume = nni::Resume::if_exists");
  auto mounting = storage_.open(context);
  co_await std::move(mounting);
  if constexpr (!carried) {
    auto listening = transport_.open(context, storage_);
    co_await std::move(listening);
  }
  take_settings();
  const Objectives goals(options_.direction);
  auto starting = advisor_.start(context, space_, goals);
  co_await std::move(starting);
  ledger_.emplace(ledger_options());
  if constexpr (resumable) {
    ledger_->restore(snapshot_);
    if (snapshot_.exists) {
      auto replaying = replay(board);
      co_await std::move(replaying);
    }
  }
  NNI_CRASH_POINT("history told");
  if constexpr (requires { service_.set_experiment_life(settings_.life, keeps_records); })
    service_.set_experiment_life(settings_.life, keeps_records);
  auto serving = service_.start(context);
  co_await std::move(serving);
  NNI_CRASH_POINT("service started");
}

// What is in force: recorded changes and today's options, and the seed that everything random depends on.
template <class Service, class... Policies>
void Experiment<Service, Policies...>::take_settings() {
  settings_ = detail::Settings(options_, space_);
  if (!snapshot_.exists) settings_.life = ExperimentId::random().value + ExperimentId::random().value;
  if constexpr (resumable) {
    if (snapshot_.exists) settings_ = detail::Settings(snapshot_.profile.settings, options_, space_, snapshot_.trials);
    options_.concurrency = settings_.in_force.concurrency;
    options_.max_trials = settings_.in_force.max_trials;
    options_.max_duration = settings_.in_force.max_duration;
    if (settings_.spaces.back().space != settings_.given_space) space_ = settings_.space();
    if (settings_.changed_space()) count_ = &Experiment::count_unfitting;
  }
  seed_ = snapshot_.profile.seed;
  if constexpr (requires { advisor_.tuner().seed(); }) {
    // A tuner without a seed may have begun; then the seed of the first one that has one counts.
    if (seed_ == 0) seed_ = advisor_.tuner().seed();
    if constexpr (requires { advisor_.tuner().reseed(seed_); })
      if (seed_ != 0) advisor_.tuner().reseed(seed_);
  }
}

template <class Service, class... Policies>
void Experiment<Service, Policies...>::apply_settings() {
  if (board_) board_->set_params(describe_params(options_, space_), settings_.to_json());
}

template <class Service, class... Policies>
bool Experiment<Service, Policies...>::fits(const Parameters& parameters) const {
  return space_.empty() || space_.to_point(parameters).has_value();
}

// Tells the advisor what it learnt before, and the board who was best.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay(detail::Board& board) {
  const auto visit = [this, &board](TrialJobDetail trial, std::optional<std::vector<double>> history) {
    return replay_trial(board, std::move(trial), std::move(history));
  };
  auto pages = detail::for_each_history(store_, replays_histories, visit);
  co_await std::move(pages);
  replay_imported(board, static_cast<std::uint64_t>(-1));
  if constexpr (requires(UnfinishedTrial t) {
                  advisor_.replay_unfinished(t.parameter, t.parameters, RunId{}, t.history);
                })
    for (UnfinishedTrial& trial : snapshot_.unfinished) {
      const RunId run{trial.trial, trial.attempts == 0 ? 0 : trial.attempts - 1};
      // As `AsAdvisor` keeps the histories of trials that it has seen from their beginning.
      std::erase_if(trial.history, [](double number) { return !std::isfinite(number); });
      advisor_.replay_unfinished(trial.parameter, trial.parameters, run, trial.history);
    }
}

// Results from elsewhere are told where they were told first: what a tuner suggests may depend on the order.
template <class Service, class... Policies>
void Experiment<Service, Policies...>::replay_imported(detail::Board& board, std::uint64_t before) {
  while (imported_ < snapshot_.imported.size() && snapshot_.imported[imported_].after < before)
    tell_imported(board, snapshot_.imported[imported_++]);
}

template <class Service, class... Policies>
void Experiment<Service, Policies...>::tell_imported(detail::Board& board, const ResultImported& result) {
  if (!fits(result.parameters)) board.count_unfitting();
  if constexpr (requires { advisor_.import_result(result); }) advisor_.import_result(result);
}

template <class Service, class... Policies>
void Experiment<Service, Policies...>::import_new(detail::Board& board, Transition& out) {
  detail::leave_out_known(to_import_, snapshot_.imported);
  for (ResultImported& result : to_import_) {
    result.after = ledger_->counts().ordered;
    tell_imported(board, result);
    snapshot_.imported.push_back(result);
    out.records.emplace_back(std::move(result));
  }
  imported_ = snapshot_.imported.size();
  to_import_.clear();
}

// After a change of the space; a later change begins anew.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::count_unfitting() {
  const std::uint64_t mine = space_count_;
  std::uint64_t count = 0;
  const auto visit = [this, &count](TrialJobDetail trial) { return count_if_unfitting(count, std::move(trial)); };
  auto pages = detail::for_each_trial(store_, static_cast<std::size_t>(-1), visit);
  co_await std::move(pages);
  for (const ResultImported& result : snapshot_.imported)
    if (!fits(result.parameters)) ++count;
  if (board_ && mine == space_count_) board_->set_unfitting(count);
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::count_if_unfitting(std::uint64_t& count, TrialJobDetail trial) {
  if (is_terminal(trial.status) && final_number(trial) && !fits(trial.parameters)) ++count;
  co_return;
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay_trial(
    detail::Board& board, TrialJobDetail trial, std::optional<std::vector<double>> known) {
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
  if constexpr (requires(TrialOutcome o, std::vector<double> h) { advisor_.replay(o, h); }) {
    std::vector<double> history;
    if (known) {
      history = *std::move(known);
    } else if (replays_histories || (trial.status == TrialJobStatus::early_stopped && !trial.final_value)) {
      auto reading = store_.metrics(trial.trial);
      const std::vector<Metric> metrics = co_await std::move(reading);
      history = detail::intermediate_numbers(metrics);
    }
    advisor_.replay(outcome_of(trial, last_finite(history)), history);
  }
}

template <class Service, class... Policies>
awaitable<std::vector<JobReport>> Experiment<Service, Policies...>::adopt_open_runs() {
  std::vector<Intent> open = ledger_->open_intents();
  std::vector<JobReport> reports;
  if constexpr (ResumableService<Service>) {
    // Also without any: what still runs for this experiment is unknown to its records, and the service ends it.
    auto adopting = service_.adopt(std::move(open));
    reports = co_await std::move(adopting);
  } else {
    for (const Intent& intent : open) {
      JobReport& report = reports.emplace_back(intent.run, JobReport::State::unknown);
      report.end = JobEnd{EndKind::lost, 0, std::string(Service::platform) + " runs end with their manager"};
    }
  }
  co_return reports;
}

}  // namespace nni
