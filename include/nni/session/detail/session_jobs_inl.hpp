// IWYU pragma: private, include <nni/session/training_session.hpp>
#pragma once

/// @file
/// Bodies of `SessionCore`: its operations, and what its engine tells it. Included by training_session.hpp.

#include <nni/experiment/history.hpp>
#include <nni/session/detail/session_core.hpp>

namespace nni::detail {

// ---- operations ---------------------------------------------------------------------------------------------------

NNI_LAZY_BODY void SessionCore::check_form(const TrialJobForm& form) const {
  ProblemList problems;
  if (const Result<Parameters> parsed = Parameters::parse(form.parameters.text()); !parsed)
    problems.add("parameters", "are not a JSON object: " + form.parameters.text().substr(0, 200));
  if (capabilities_.needs_command && form.command.empty() && options_.trial_command.empty())
    problems.add("command", "is missing; give the form one, or the session a trial_command");
  if (!capabilities_.needs_command && !form.command.empty())
    problems.add(
        "command", "\"" + form.command.to_string() + "\" cannot be run by a service whose trials are callables");
  if (form.request.gpus && *form.request.gpus < 0)
    problems.add("request", std::to_string(*form.request.gpus) + " GPUs are fewer than none");
  if (!policies_->hands_out_gpus() && form.request.gpus.value_or(0) > 0)
    problems.add("request", no_gpus(*form.request.gpus));
  problems.throw_if_any();
}

NNI_LAZY_BODY TrialJobDetail SessionCore::live_detail(TrialId trial) {
  std::optional<TrialJobDetail> detail = ledger().detail(trial);
  if (!detail)
    throw Error(
        Errc::no_such_job, "there is no live trial " + to_string(trial) + "; it has ended or was never submitted");
  if (const auto phase = phases_.find(trial); phase != phases_.end()) detail->parameter_index = phase->second;
  return std::move(*detail);
}

NNI_LAZY_BODY TrialJobDetail SessionCore::submit_now(TrialJobForm form) {
  check_open();
  check_form(form);
  const ParameterId parameter{ledger().counts().ordered};
  const TrialId trial = engine().order(NewTrial{parameter, std::move(form.parameters)});
  form.parameters = Parameters();
  jobs_[trial].form = std::move(form);
  return live_detail(trial);
}

NNI_LAZY_BODY TrialJobDetail SessionCore::submit_trial_job(TrialJobForm form) {
  if (on_own_thread()) return submit_now(std::move(form));
  return call(async_submit_trial_job(std::move(form)), "submit_trial_job");
}

NNI_LAZY_BODY awaitable<TrialJobDetail> SessionCore::async_submit_trial_job(TrialJobForm form) {
  auto starting = ready();
  co_await std::move(starting);
  co_return submit_now(std::move(form));
}

NNI_LAZY_BODY TrialJobDetail SessionCore::update_now(TrialId trial, TrialJobForm form) {
  check_open();
  if (!is_multi_phase_job_supported())
    throw Error(Errc::unsupported,
                std::string(policies_->platform()) + ": running trials cannot be sent further parameters here");
  if (!options_.multi_phase)
    throw Error(Errc::unsupported,
                "this session is not multi-phase, so its trials do not ask for further parameters; set "
                "TrainingSessionOptions::multi_phase, or cluster metadata \"multiPhase\" to true");
  if (const Result<Parameters> parsed = Parameters::parse(form.parameters.text()); !parsed)
    throw config_error("parameters", "are not a JSON object: " + form.parameters.text().substr(0, 200));
  static_cast<void>(live_detail(trial));
  jobs_[trial].further.push_back(std::move(form.parameters));
  ++phases_[trial];
  return live_detail(trial);
}

NNI_LAZY_BODY TrialJobDetail SessionCore::update_trial_job(TrialId trial, TrialJobForm form) {
  if (!on_own_thread()) return call(async_update_trial_job(trial, std::move(form)), "update_trial_job");
  TrialJobDetail detail = update_now(trial, std::move(form));
  engine().spawn(deliver_quietly(trial));
  return detail;
}

NNI_LAZY_BODY awaitable<TrialJobDetail> SessionCore::async_update_trial_job(TrialId trial, TrialJobForm form) {
  auto starting = ready();
  co_await std::move(starting);
  TrialJobDetail detail = update_now(trial, std::move(form));
  auto delivering = deliver(trial);
  co_await std::move(delivering);
  co_return detail;
}

// Sends what the present run of a trial has not got. One that has not started gets it when it does.
NNI_LAZY_BODY awaitable<void> SessionCore::deliver(TrialId trial) {
  while (true) {
    const auto job = jobs_.find(trial);
    const std::optional<RunId> run = ledger().live_run(trial);
    if (job == jobs_.end() || !run || live_detail(trial).status != TrialJobStatus::running) co_return;
    if (job->second.delivered == job->second.further.size()) co_return;
    auto sending = engine().send(*run, job->second.further[job->second.delivered++]);
    co_await std::move(sending);
  }
}

NNI_LAZY_BODY awaitable<void> SessionCore::deliver_quietly(TrialId trial) {
  std::string failure;
  try {
    auto delivering = deliver(trial);
    co_await std::move(delivering);
  } catch (const std::exception& error) {
    if (async::is_cancellation(std::current_exception())) throw;
    failure = error.what();
  }
  if (!failure.empty())
    context_->log().warning("session", "trial " + to_string(trial) + " could not be sent parameters: " + failure);
}

NNI_LAZY_BODY void SessionCore::cancel_now(TrialId trial, bool is_early_stopped) {
  check_open();
  if (!was_ordered(trial)) throw Error(Errc::no_such_job, "there is no trial " + to_string(trial));
  engine().cancel(trial, is_early_stopped ? StopReason::early_stop : StopReason::user);
}

NNI_LAZY_BODY void SessionCore::cancel_trial_job(TrialId trial, bool is_early_stopped) {
  if (on_own_thread()) return cancel_now(trial, is_early_stopped);
  call(async_cancel_trial_job(trial, is_early_stopped), "cancel_trial_job");
}

NNI_LAZY_BODY awaitable<void> SessionCore::async_cancel_trial_job(TrialId trial, bool is_early_stopped) {
  auto starting = ready();
  co_await std::move(starting);
  cancel_now(trial, is_early_stopped);
}

NNI_LAZY_BODY TrialJobDetail SessionCore::get_trial_job(TrialId trial) {
  return call(async_get_trial_job(trial), "get_trial_job");
}

NNI_LAZY_BODY awaitable<TrialJobDetail> SessionCore::async_get_trial_job(TrialId trial) {
  auto starting = ready();
  co_await std::move(starting);
  if (!was_ordered(trial)) throw Error(Errc::not_found, "there is no trial " + to_string(trial));
  if (ledger().detail(trial)) co_return live_detail(trial);
  if (ending_.contains(trial)) {
    auto told = async_wait_trial_job(trial);
    co_return co_await std::move(told);
  }
  auto loading = experiment_->policies().load(trial);
  std::optional<TrialJobDetail> detail = co_await std::move(loading);
  if (!detail) throw Error(Errc::not_found, "there is no trial " + to_string(trial));
  if (const auto phase = phases_.find(trial); phase != phases_.end()) detail->parameter_index = phase->second;
  co_return std::move(*detail);
}

NNI_LAZY_BODY TrialJobDetail SessionCore::wait_trial_job(TrialId trial) {
  return call(async_wait_trial_job(trial), "wait_trial_job");
}

NNI_LAZY_BODY awaitable<TrialJobDetail> SessionCore::async_wait_trial_job(TrialId trial) {
  auto starting = ready();
  co_await std::move(starting);
  while (ledger().detail(trial) || ending_.contains(trial)) {
    Job& job = jobs_[trial];
    if (!job.ended) job.ended = std::make_shared<async::event>();
    const std::shared_ptr<async::event> ended = job.ended;
    auto waiting = ended->wait();
    co_await std::move(waiting);
    check_open();
  }
  auto reading = async_get_trial_job(trial);
  co_return co_await std::move(reading);
}

NNI_LAZY_BODY std::vector<TrialJobDetail> SessionCore::list_trial_jobs() {
  return call(async_list_trial_jobs(), "list_trial_jobs");
}

NNI_LAZY_BODY awaitable<void> SessionCore::collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial) {
  if (const auto phase = phases_.find(trial.trial); phase != phases_.end()) trial.parameter_index = phase->second;
  into.push_back(std::move(trial));
  co_return;
}

NNI_LAZY_BODY awaitable<std::vector<TrialJobDetail>> SessionCore::async_list_trial_jobs() {
  auto starting = ready();
  co_await std::move(starting);
  while (!ending_.empty()) {
    auto told = async_wait_trial_job(ending_.begin()->first);
    co_await std::move(told);
  }
  std::vector<TrialJobDetail> trials;
  const auto visit = [this, &trials](TrialJobDetail trial) { return collect(trials, std::move(trial)); };
  auto reading = for_each_trial(experiment_->policies(), static_cast<std::size_t>(-1), visit);
  co_await std::move(reading);
  check_open();
  // The ledger knows more of those that live.
  for (TrialJobDetail& trial : trials)
    if (!is_terminal(trial.status) && ledger().detail(trial.trial)) trial = live_detail(trial.trial);
  co_return trials;
}

NNI_LAZY_BODY SessionHooks SessionCore::hooks() {
  SessionHooks hooks;
  hooks.metric_arrived = [this](const Metric& metric) { metric_arrived(metric); };
  hooks.trial_started = [this](RunId run) { trial_started(run); };
  hooks.trial_ended = [this](TrialId trial) { trial_ended(trial); };
  hooks.complete = [this](TrialId trial, TrialJobForm& form) { complete(trial, form); };
  hooks.request_of = [this](TrialId trial) { return request_of(trial); };
  return hooks;
}

// ---- what the engine notifies ----------------------------------------------------------------------------------------

NNI_LAZY_BODY void SessionCore::metric_arrived(const Metric& metric) {
  if (metric_listeners_->empty()) return;
  // The session numbers parameters as it numbers trials.
  metric_listeners_->call(TrialJobMetric(metric, ParameterId{metric.run.trial.sequence()}));
}

NNI_LAZY_BODY void SessionCore::trial_started(RunId run) {
  Job& job = jobs_[run.trial];
  job.delivered = 0;
  if (!job.further.empty()) engine().spawn(deliver_quietly(run.trial));
  if (!status_listeners_->empty() && ledger().detail(run.trial)) status_listeners_->call(live_detail(run.trial));
}

NNI_LAZY_BODY void SessionCore::trial_ended(TrialId trial) {
  auto ended = ending_.extract(trial);
  auto job = jobs_.extract(trial);
  if (!ended) return;
  if (const auto phase = phases_.find(trial); phase != phases_.end()) ended.mapped().parameter_index = phase->second;
  status_listeners_->call(ended.mapped());
  if (job && job.mapped().ended) job.mapped().ended->notify();
}

NNI_LAZY_BODY void SessionCore::complete(TrialId trial, TrialJobForm& form) {
  const auto job = jobs_.find(trial);
  if (job == jobs_.end()) return;
  const TrialJobForm& own = job->second.form;
  if (!own.command.empty()) form.command = own.command;
  if (!own.working_directory.empty()) form.working_directory = own.working_directory;
  for (const auto& [name, value] : own.environment) form.environment[name] = value;
}

NNI_LAZY_BODY std::optional<ResourceRequest> SessionCore::request_of(TrialId trial) {
  const auto job = jobs_.find(trial);
  if (job == jobs_.end() || !job->second.form.request.gpus) return std::nullopt;
  return job->second.form.request;
}

}  // namespace nni::detail
