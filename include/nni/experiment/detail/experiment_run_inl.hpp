// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `ExperimentCore`: running, stopping and closing. Included by experiment_core_inl.hpp.

#include <algorithm>
#include <utility>

#include <nni/async/cancellation.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/crash_point.hpp>
#include <nni/experiment/experiment_core.hpp>
#include <nni/experiment/history.hpp>

namespace nni::detail {

// What is called from the executor's queue has nobody above who could catch anything.
template <class Work>
void ExperimentCore::guarded(const Work& work) {
  try {
    work();
  } catch (...) {
    engine_->fail(std::current_exception());
  }
}

NNI_LAZY_BODY void ExperimentCore::stop_now() {
  stop_requested_ = true;
  if (engine_)
    guarded([this] { engine_->request_stop(); });
  else
    policies_->stop_retrying();
}

NNI_LAZY_BODY void ExperimentCore::steer(ExperimentCore& self, const Change& change) {
  if (std::holds_alternative<StopExperiment>(change))
    self.stop_now();
  else if (self.engine_)
    self.guarded([&self, &change] { self.engine_->apply(change); });
}

NNI_LAZY_BODY void ExperimentCore::require_fresh() const {
  if (control_->phase() == Control::Phase::before) return;
  throw Error(
      Errc::closed,
      "experiment \"" + id_.value +
          "\" has run, and an experiment object runs once; make another one, with the same .id and .resume = "
          "nni::Resume::if_exists to go on");
}

NNI_LAZY_BODY Summary ExperimentCore::run() {
  require_fresh();
  RuntimeOptions settings;
  settings.threads = options_.threads;
  settings.log = Log(options_.log, options_.log_level);
  settings.shutdown_limit = options_.shutdown_limit;
  runtime_ = std::make_unique<Runtime>(std::move(settings));
  const std::unique_ptr<Runtime, void (*)(Runtime*)> signals(runtime_.get(), [](Runtime* r) { r->restore_signals(); });
  if (options_.handle_signals) runtime_->on_stop_signal([this] { stop_now(); });
  return runtime_->run(async_run(runtime_->context()));
}

NNI_LAZY_BODY awaitable<Summary> ExperimentCore::async_run(Context& context) {
  require_fresh();
  Board board(options_, observers_);
  board.set_control(control_);
  board_ = &board;
  std::exception_ptr failure;
  try {
    auto opening = open_all(context, board);
    co_await std::move(opening);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    // Nothing of this run was recorded yet, so nothing is: what was opened is closed, and the reason is thrown.
    auto closing = async::shield(close_policies(context));
    co_await async::ignore_cancellation();
    co_await std::move(closing);
    board_ = nullptr;
    control_->end();
    std::rethrow_exception(failure);
  }

  board.take_over(first_profile(context), directory_);
  Engine engine(context, engine_hooks(), *policies_, options_, *ledger_, board);
  engine_ = &engine;
  engine.listen();
  try {
    auto running = run_engine(context, board, engine);
    co_await std::move(running);
  } catch (...) {
    failure = std::current_exception();
  }
  engine.stop_listening();
  engine_ = nullptr;
  unanswered_ = engine.take_unanswered();
  control_->end();
  board.set_active(engine.active());
  co_await async::ignore_cancellation();
  Summary summary;
  try {
    auto closing = async::shield(close_all(context, board, failure));
    summary = co_await std::move(closing);
  } catch (...) {
    // What an observer of the end throws hides no reason of a failed run.
    if (!failure) failure = std::current_exception();
  }
  board_ = nullptr;
  if (failure) std::rethrow_exception(failure);
  // A summary would promise that its trials can be read again.
  if (unkept_) std::rethrow_exception(unkept_);
  co_return summary;
}

// The first record, earlier runs, and then the loops.
NNI_LAZY_BODY awaitable<void> ExperimentCore::run_engine(Context& context, Board& board, Engine& engine) {
  const CompositionFacts& facts = policies_->facts();
  std::vector<JobReport> reports;
  if (facts.has_store || facts.adopts_runs) {
    auto adopting = adopt_open_runs();
    reports = co_await std::move(adopting);
    NNI_CRASH_POINT("runs adopted");
  }
  const auto alive = std::count_if(reports.begin(), reports.end(), [](const JobReport& report) {
    return report.state == JobReport::State::running;
  });
  Transition first;
  first.records.emplace_back(std::in_place_type<ProfileChanged>);
  if (import_) import_(*this, board, first);
  board.set_surroundings(startup_notice(context), !facts.keeps_in_memory);
  board.begin(first_profile(context), directory_, facts.platform, snapshot_.exists, ledger_->counts().finished,
              static_cast<std::size_t>(alive), snapshot_.imported.size());
  std::get<ProfileChanged>(first.records.front()) = board.profile(ledger_->counts());
  engine.apply(first);
  if (facts.has_store) {
    if (settings_.paused) engine.apply(Change(PauseTrials{}));
    engine.adopt(reports);
  }
  control_->begin(context.executor(), [this](const Change& change) { steer_.load()(*this, change); });
  if (stop_requested_) engine.request_stop();
  auto loops = engine.run();
  co_await std::move(loops);
}

NNI_LAZY_BODY awaitable<void> ExperimentCore::close_policies(Context& context) {
  const auto quietly = [this, &context](awaitable<void> work, const char* what) {
    return close_one(context, std::move(work), what);
  };
  auto advisor = quietly(policies_->stop_advisor(), "advisor");
  co_await std::move(advisor);
  auto service = quietly(policies_->clean_up(), "training service");
  co_await std::move(service);
  if (!policies_->facts().is_carried) {
    auto transport = quietly(policies_->close_transport(), "metric transport");
    co_await std::move(transport);
  }
  auto storage = quietly(policies_->close_storage(), "storage");
  co_await std::move(storage);
  auto store = quietly(policies_->close_store(), "data store");
  const std::exception_ptr unkept = co_await std::move(store);
  if (!unkept_) unkept_ = unkept;
}

// One policy that cannot be closed must not keep the others open.
// @returns why it failed; null when it was closed, or only took too long: a store's last record was synced before
NNI_LAZY_BODY awaitable<std::exception_ptr> ExperimentCore::close_one(
    Context& context, awaitable<void> work, const char* what) {
  try {
    NNI_CRASH_POINT("clean-up");
    auto limited = async::with_timeout(std::move(work), context.shutdown_limit() + std::chrono::seconds(1));
    co_await std::move(limited);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string(what) + " could not be closed: " + error.what());
    const auto* known = dynamic_cast<const Error*>(&error);
    const bool was_late = known && known->code() == make_error_code(Errc::timed_out);
    if (!was_late) co_return std::current_exception();
  } catch (...) {
    context.log().error("experiment", std::string(what) + " could not be closed: it threw no std::exception");
    co_return std::current_exception();
  }
  co_return nullptr;
}

NNI_LAZY_BODY awaitable<Summary> ExperimentCore::close_all(Context& context, Board& board, std::exception_ptr failure) {
  ExperimentStatus status = ExperimentStatus::done;
  std::string message;
  const bool complete = ledger_->counts().finished == ledger_->counts().ordered && ledger_->budget_used_up();
  if (stop_requested_ && !complete) status = ExperimentStatus::stopped;
  if (failure && async::is_cancellation(failure))
    status = ExperimentStatus::stopped;
  else if (failure) {
    status = ExperimentStatus::error;
    message = nni::describe(failure);
  }
  if (stop_requested_ || failure) policies_->stop_retrying();
  std::vector<TrialJobDetail> trials;
  try {
    board.set_status(status, message);
    // A pause outlives a manager that dies; who starts an experiment again that was stopped wants it to run.
    settings_.paused = false;
    apply_settings();
    if (counts_unfitting_) {
      auto counting = count_unfitting();
      co_await std::move(counting);
    }
    ProfileChanged profile = board.profile(ledger_->counts());
    profile.end_time = context.clock().now();
    const StoreEvent last{std::move(profile)};
    const StorePosition position = policies_->append(std::span<const StoreEvent>(&last, 1));
    auto keeping = policies_->synced(position);
    co_await std::move(keeping);
    for (const auto& waiting : std::exchange(unanswered_, {})) waiting->set_value(true);
    const auto visit = [this, &trials](TrialJobDetail trial) { return collect(trials, std::move(trial)); };
    auto reading = for_each_trial(*policies_, options_.summary_trials, visit);
    co_await std::move(reading);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string("the end could not be recorded: ") + error.what());
    unkept_ = std::current_exception();
  } catch (...) {
    context.log().error("experiment", "the end could not be recorded: something was thrown that is no std::exception");
    unkept_ = std::current_exception();
  }
  unanswered_.clear();
  auto closing = close_policies(context);
  co_await std::move(closing);
  co_return board.end(status, std::move(message), ledger_->counts(), std::move(trials));
}

NNI_LAZY_BODY awaitable<void> ExperimentCore::collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial) {
  into.push_back(std::move(trial));
  co_return;
}

}  // namespace nni::detail
