// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/experiment/detail/experiment_resume_inl.hpp>
#include <nni/experiment/detail/experiment_run_inl.hpp>
#include <nni/experiment/detail/place.hpp>
#include <nni/experiment/experiment_core.hpp>
#include <nni/experiment/import.hpp>

namespace nni::detail {

NNI_LAZY_BODY void ExperimentCore::compose(Composition& policies, SearchSpace space) {
  policies_ = &policies;
  const CompositionFacts& facts = policies.facts();
  id_ = options_.id.empty() ? ExperimentId::random() : ExperimentId(options_.id);
  // An advisor that gives each trial its command may leave the common one out.
  const bool commands_of_advisor = facts.brings_commands && options_.trial_command.empty();
  check(options_, policies.capabilities().needs_command && !commands_of_advisor, facts.hands_out_gpus);
  space_ = std::move(space);
  control_ = std::make_shared<ControlCore>(options_, facts.updates_space);
  working_directory_ =
      std::filesystem::absolute(options_.code_directory.empty() ? "." : options_.code_directory)
          .lexically_normal()
          .string();
  if (!facts.writes_files) return;
  std::filesystem::path root = options_.directory.empty() ? policies.store_directory() : options_.directory;
  if (root.empty()) root = "nni-experiments";
  directory_ = std::filesystem::absolute(root / id_.value).lexically_normal();
  policies.set_experiment_directory(directory_, id_);
}

// ---- requests of other threads -----------------------------------------------------------------------------------

NNI_LAZY_BODY void ExperimentCore::request_stop() {
  steer_ = &ExperimentCore::steer;
  control_->ask(StopExperiment{});
}

NNI_LAZY_BODY Control ExperimentCore::control() {
  steer_ = &ExperimentCore::steer;
  if (control_->watch()) control_->ask(ShowProgress{});
  return Control(control_);
}

NNI_LAZY_BODY void ExperimentCore::end_control() {
  if (control_) control_->end();
}

NNI_LAZY_BODY void ExperimentCore::import_results(std::vector<ResultImported> results) {
  check_results(results);
  import_ = &ExperimentCore::import_new;
  std::move(results.begin(), results.end(), std::back_inserter(to_import_));
}

// ---- settings ----------------------------------------------------------------------------------------------------

// What is in force: recorded changes and today's options, and the seed that everything random depends on.
NNI_LAZY_BODY void ExperimentCore::take_settings() {
  settings_ = Settings(options_, space_);
  if (!snapshot_.exists) settings_.life = ExperimentId::random().value + ExperimentId::random().value;
  if (snapshot_.exists && policies_->facts().has_store) {
    settings_ = Settings(snapshot_.profile.settings, options_, space_, snapshot_.trials);
    options_.concurrency = settings_.in_force.concurrency;
    options_.max_trials = settings_.in_force.max_trials;
    options_.max_duration = settings_.in_force.max_duration;
    if (settings_.spaces.back().space != settings_.given_space) space_ = settings_.space();
    counts_unfitting_ = settings_.changed_space();
  }
  seed_ = policies_->settle_seed(snapshot_.profile.seed);
}

NNI_LAZY_BODY void ExperimentCore::apply_settings() {
  if (board_) board_->set_params(describe_params(options_, space_), settings_.to_json());
}

NNI_LAZY_BODY LedgerOptions ExperimentCore::ledger_options() const {
  LedgerOptions settings;
  settings.objectives = Objectives(options_.direction);
  settings.concurrency = options_.concurrency;
  if (options_.max_trials) settings.max_trials = *options_.max_trials;
  settings.max_retries = options_.max_retries;
  settings.max_losses = options_.max_losses;
  settings.max_failed_starts = options_.max_failed_starts;
  settings.retry_on = options_.retry_on;
  settings.backoff = Backoff{options_.retry_backoff, options_.retry_backoff_limit};
  settings.seed = Seed{seed_};
  settings.every_final = policies_->facts().hears_every_final;
  if (policies_->capabilities().durable_submit) settings.submit_durability = Durability::synced;
  return settings;
}

NNI_LAZY_BODY ProfileChanged ExperimentCore::first_profile(Context& context) const {
  ProfileChanged profile = snapshot_.profile;
  if (!snapshot_.exists) {
    profile.id = id_;
    profile.start_time = context.clock().now();
  }
  profile.seed = seed_;
  if (!options_.name.empty() || profile.name.empty()) profile.name = options_.name.empty() ? id_.value : options_.name;
  profile.params = describe_params(options_, space_);
  profile.settings = settings_.to_json();
  profile.status = ExperimentStatus::running;
  profile.message.clear();
  profile.end_time.reset();
  if (!directory_.empty()) profile.log_directory = (directory_ / "log").string();
  return profile;
}

// What people should know before trials start.
NNI_LAZY_BODY std::string ExperimentCore::startup_notice(Context& context) {
  std::string notice = policies_->remark();
  if (!snapshot_.exists || !turns_direction(snapshot_.profile.params, options_.direction)) return notice;
  const std::string turned =
      "this experiment searched in the other direction before; from now on it is to " +
      std::string(to_string(options_.direction)) + ", and earlier trials are ranked that way as well";
  context.log().warning("experiment", turned + "; set .direction as before if this is a mistake");
  return notice + (notice.empty() ? "" : "; ") + turned;
}

// ---- what the engine asks ----------------------------------------------------------------------------------------

NNI_LAZY_BODY EngineHooks ExperimentCore::engine_hooks() {
  EngineHooks hooks;
  hooks.request_of = [this](TrialId trial) {
    const std::optional<ResourceRequest> own = policies_->request_of(trial);
    return own ? *own : ResourceRequest{options_.trial_gpu_number};
  };
  hooks.form = [this](TrialId trial, const ResourceRequest& request, Placement placement) {
    return form(trial, request, std::move(placement));
  };
  hooks.settings_changed = [this] { settings_changed(); };
  hooks.update_search_space = [this](const SearchSpace& space) { update_search_space(space); };
  hooks.count_unfitting = [this] { return count_unfitting(); };
  return hooks;
}

NNI_LAZY_BODY TrialJobForm ExperimentCore::form(TrialId trial, const ResourceRequest& request, Placement placement) {
  TrialJobForm form;
  form.request = request;
  form.placement = std::move(placement);
  form.command = options_.trial_command;
  form.working_directory = working_directory_;
  form.environment = options_.environment;
  policies_->complete(trial, form);
  return form;
}

NNI_LAZY_BODY void ExperimentCore::settings_changed() {
  settings_.paused = ledger_->paused(PauseReason::user);
  settings_.in_force = limits_of(options_);
  apply_settings();
}

NNI_LAZY_BODY void ExperimentCore::update_search_space(const SearchSpace& space) {
  policies_->update_search_space(space);
  space_ = space;
  settings_.begin_space(space, ledger_->counts().ordered);
  ++space_count_;
  counts_unfitting_ = true;
}

}  // namespace nni::detail
