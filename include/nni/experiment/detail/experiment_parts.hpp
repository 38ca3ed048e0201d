// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `Experiment`: what it is composed of, and how its policies meet. Included by experiment.hpp.

#include <nni/experiment/experiment.hpp>

namespace nni {

/// What the loops work on, and how a form is filled: the one place where all policies meet.
template <class Service, class... Policies>
struct Experiment<Service, Policies...>::Parts {
  static constexpr bool carried = Experiment::carried;
  static constexpr bool updates_space =
      requires(advisor_type& advisor, const SearchSpace& space) { advisor.update_search_space(space); };
  using channel_type = std::conditional_t<carried, Service, transport_type>;

  explicit Parts(Experiment& owner)
      : experiment(&owner),
        service(owner.service_),
        scheduler(owner.scheduler_),
        channel(channel_of(owner)),
        advisor(owner.advisor_),
        store(owner.store_) {}

  static channel_type& channel_of(Experiment& owner) {
    if constexpr (carried)
      return owner.service_;
    else
      return owner.transport_;
  }

  /// True when the channel keeps files for each run, which are written before it is submitted.
  static constexpr bool prepares_files = requires(channel_type& to, const TrialJobForm& form) {
    { to.prepare(form) } -> AwaitableOf<void>;
  };

  /// What a trial asks of the machines.
  ResourceRequest request(TrialId trial) {
    if constexpr (requires { advisor.request_of(trial); })
      if (const auto own = advisor.request_of(trial)) return *own;
    return ResourceRequest{experiment->options_.trial_gpu_number};
  }

  /// Everything about a run that does not come from the ledger.
  TrialJobForm form(TrialId trial, const ResourceRequest& request, Placement placement) {
    const ExperimentOptions& options = experiment->options_;
    TrialJobForm form;
    form.request = request;
    form.placement = std::move(placement);
    form.command = options.trial_command;
    form.working_directory = experiment->working_directory_;
    form.environment = options.environment;
    if constexpr (!std::same_as<typename Service::mount_type, NoMount>)
      form.mount = typename Service::mount_type(experiment->storage_.mount(trial));
    if constexpr (requires { advisor.complete(trial, form); }) advisor.complete(trial, form);
    return form;
  }

  /// What only the run that was numbered can be given: the address of its channel.
  void address(TrialJobForm& form) {
    if constexpr (!carried) {
      // A transport that answers requests for parameters has to know them before the run can ask.
      if constexpr (requires { channel.prepare(form); } && !prepares_files) channel.prepare(form);
      for (auto& [name, value] : channel.environment(form.run)) form.environment[name] = value;
    }
  }

  /// What is in force has changed: the next record of the experiment says so.
  void settings_changed() {
    experiment->settings_.paused = experiment->ledger_->paused(PauseReason::user);
    experiment->settings_.in_force = detail::limits_of(experiment->options_);
    experiment->apply_settings();
  }

  /// Suggestions come from another space from now on. @throws ConfigError  when it cannot be searched
  void update_search_space(const SearchSpace& space)
    requires updates_space
  {
    advisor.update_search_space(space);
    experiment->space_ = space;
    experiment->settings_.begin_space(space, experiment->ledger_->counts().ordered);
    ++experiment->space_count_;
    experiment->count_ = &Experiment::count_unfitting;
  }

  /// Counts the results that do not fit the search space in force.
  awaitable<void> count_unfitting() { return experiment->count_unfitting(); }

  Experiment* experiment;
  Service& service;
  scheduler_type& scheduler;
  channel_type& channel;
  advisor_type& advisor;
  store_type& store;
};

template <class Service, class... Policies>
Experiment<Service, Policies...>::Experiment(
    ExperimentOptions options, Service service, std::tuple<Policies...> policies)
    : options_(std::move(options)),
      id_(options_.id.empty() ? ExperimentId::random() : ExperimentId(options_.id)),
      service_(std::move(service)),
      scheduler_(detail::take_policy<role::scheduler, scheduling::Unlimited>(policies)),
      storage_(detail::take_policy<role::storage, storage::LocalDirectory>(policies)),
      transport_(detail::take_policy<role::metric_transport, transport::Carried>(policies)),
      store_(detail::take_policy<role::data_store, datastore::Memory>(policies)),
      advisor_(make_advisor(policies)) {
  // An advisor that gives each trial its command may leave the common one out.
  const bool commands_of_advisor = brings_commands<advisor_type> && options_.trial_command.empty();
  check(options_, service_.capabilities().needs_command && !commands_of_advisor, hands_out_gpus<scheduler_type>);
  space_ = space_of(advisor_);
  control_ = std::make_shared<detail::ControlCore>(options_, Parts::updates_space);
  working_directory_ =
      std::filesystem::absolute(options_.code_directory.empty() ? "." : options_.code_directory)
          .lexically_normal()
          .string();
  constexpr bool writes =
      PlacedPolicy<Service> || PlacedPolicy<store_type> || detail::count_role<role::storage, Policies...> != 0;
  std::filesystem::path root = options_.directory.empty() ? detail::root_of(store_) : options_.directory;
  if (root.empty()) root = "nni-experiments";
  if constexpr (writes) {
    directory_ = std::filesystem::absolute(root / id_.value).lexically_normal();
    detail::place_policy(service_, directory_, id_);
    detail::place_policy(store_, directory_, id_);
    detail::place_policy(storage_, directory_, id_);
    detail::place_policy(transport_, directory_, id_);
  }
}

template <class Service, class... Policies>
auto Experiment<Service, Policies...>::make_advisor(std::tuple<Policies...>& policies) -> advisor_type {
  if constexpr (detail::count_role<role::advisor, Policies...> == 1) {
    return std::get<advisor_type>(std::move(policies));
  } else {
    return advisor_type(detail::take_policy<role::tuner, tuning::Random>(policies),
                        detail::take_policy<role::assessor, assessing::None>(policies));
  }
}

template <class Service, class... Policies>
SearchSpace Experiment<Service, Policies...>::space_of(const advisor_type& advisor) {
  if constexpr (requires { advisor.search_space(); })
    return advisor.search_space();
  else if constexpr (requires { advisor.tuner().search_space(); })
    return advisor.tuner().search_space();
  else
    return SearchSpace{};
}

template <class Service, class... Policies>
LedgerOptions Experiment<Service, Policies...>::ledger_options() const {
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
  settings.every_final = hears_every_final<advisor_type>;
  if (service_.capabilities().durable_submit) settings.submit_strength = Strength::synced;
  return settings;
}

template <class Service, class... Policies>
ProfileChanged Experiment<Service, Policies...>::first_profile(Context& context) const {
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

}  // namespace nni
