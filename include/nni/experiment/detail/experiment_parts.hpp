// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `Experiment`: what it is composed of, and how its policies meet. Included by experiment.hpp.

#include <nni/experiment/experiment.hpp>

namespace nni {

/// The policies of an experiment for its engine: the one place where all of them meet.
template <class Service, class... Policies>
class Experiment<Service, Policies...>::Parts final : public detail::EnginePolicies {
 public:
  static constexpr bool can_update_space =
      requires(advisor_type& advisor, const SearchSpace& space) { advisor.update_search_space(space); };
  using channel_type = std::conditional_t<carried, Service, transport_type>;

  explicit Parts(Experiment& owner) : owner_(&owner) {}

  Capabilities capabilities() const noexcept override { return owner_->service_.capabilities(); }
  awaitable<ResourceSnapshot> resources() override { return owner_->service_.resources(); }
  awaitable<JobId> submit_trial_job(TrialJobForm form) override {
    return owner_->service_.submit_trial_job(std::move(form));
  }
  awaitable<void> cancel_trial_job(RunId run, StopReason reason) override {
    return owner_->service_.cancel_trial_job(run, reason);
  }
  awaitable<JobEvent> next_event() override { return owner_->service_.next_event(); }
  void end_recorded(RunId run) override {
    if constexpr (requires { owner_->service_.recorded(run); }) owner_->service_.recorded(run);
  }

  awaitable<TrialMessage> next_message() override { return channel().next_message(); }
  awaitable<void> acknowledge(Receipt receipt) override { return channel().acknowledge(receipt); }
  awaitable<void> send(RunId run, Parameters parameters) override { return channel().send(run, std::move(parameters)); }
  awaitable<void> settle(RunId run) override { return channel().settle(run); }
  bool is_carried() const noexcept override { return carried; }
  bool ends_come_last() const noexcept override { return nni::ends_come_last<channel_type>; }
  bool prepares_files() const noexcept override { return awaits_files; }
  awaitable<void> prepare(const TrialJobForm& form) override {
    if constexpr (awaits_files)
      return channel().prepare(form);
    else
      return nothing();
  }
  bool resumes_channel() const noexcept override { return can_resume_channel; }
  void resume_channel(RunId run) override {
    if constexpr (can_resume_channel) channel().resume(run);
  }

  PlacementResult place(const ResourceRequest& request, const ResourceSnapshot& resources) override {
    return owner_->scheduler_.place(request, resources);
  }
  void hold(const Placement& placement) override { owner_->scheduler_.hold(placement); }
  void release(const Placement& placement) noexcept override { owner_->scheduler_.release(placement); }

  awaitable<void> request(std::size_t count) override { return owner_->advisor_.request(count); }
  awaitable<void> report(const Metric& metric) override { return owner_->advisor_.report(metric); }
  awaitable<void> trial_ended(const TrialOutcome& outcome) override { return owner_->advisor_.trial_ended(outcome); }
  awaitable<Order> next_order() override { return owner_->advisor_.next_order(); }
  void trial_started(RunId run) override {
    if constexpr (requires { owner_->advisor_.trial_started(run); }) owner_->advisor_.trial_started(run);
  }

  StorePosition append(std::vector<StoreEvent>&& events) override { return owner_->store_.append(std::move(events)); }
  StorePosition append(std::span<const StoreEvent> events) override { return owner_->store_.append(events); }
  awaitable<void> written(StorePosition at) override { return owner_->store_.written(at); }
  awaitable<void> synced(StorePosition at) override { return owner_->store_.synced(at); }

  void on_trouble(TroubleListener of_store, TroubleListener of_service) override {
    if constexpr (requires { owner_->store_.on_trouble(of_store); }) owner_->store_.on_trouble(std::move(of_store));
    if constexpr (requires { owner_->service_.on_trouble(of_service); })
      owner_->service_.on_trouble(std::move(of_service));
  }

  ResourceRequest request_of(TrialId trial) override {
    if constexpr (requires { owner_->advisor_.request_of(trial); })
      if (const auto own = owner_->advisor_.request_of(trial)) return *own;
    return ResourceRequest{owner_->options_.trial_gpu_number};
  }

  /// Everything about a run that does not come from the ledger.
  TrialJobForm form(TrialId trial, const ResourceRequest& request, Placement placement) override {
    const ExperimentOptions& options = owner_->options_;
    TrialJobForm form;
    form.request = request;
    form.placement = std::move(placement);
    form.command = options.trial_command;
    form.working_directory = owner_->working_directory_;
    form.environment = options.environment;
    if constexpr (!std::same_as<typename Service::mount_type, NoMount>)
      form.mount = typename Service::mount_type(owner_->storage_.mount(trial));
    if constexpr (requires { owner_->advisor_.complete(trial, form); }) owner_->advisor_.complete(trial, form);
    return form;
  }

  void address(TrialJobForm& form) override {
    if constexpr (!carried) {
      // A transport that answers requests for parameters has to know them before the run can ask.
      if constexpr (requires(channel_type& to) { to.prepare(form); } && !awaits_files) channel().prepare(form);
      for (auto& [name, value] : channel().environment(form.run)) form.environment[name] = value;
    }
  }

  void settings_changed() override {
    owner_->settings_.paused = owner_->ledger_->paused(PauseReason::user);
    owner_->settings_.in_force = detail::limits_of(owner_->options_);
    owner_->apply_settings();
  }
  bool updates_space() const noexcept override { return can_update_space; }
  void update_search_space(const SearchSpace& space) override {
    if constexpr (can_update_space) {
      owner_->advisor_.update_search_space(space);
      owner_->space_ = space;
      owner_->settings_.begin_space(space, owner_->ledger_->counts().ordered);
      ++owner_->space_count_;
      owner_->count_ = &Experiment::count_unfitting;
    }
  }
  awaitable<void> count_unfitting() override { return owner_->count_unfitting(); }

 private:
  // The channel keeps files for each run, which are written before it is submitted.
  static constexpr bool awaits_files = requires(channel_type& to, const TrialJobForm& form) {
    { to.prepare(form) } -> AwaitableOf<void>;
  };
  static constexpr bool can_resume_channel = requires(channel_type& from, RunId run) { from.resume(run); };

  static awaitable<void> nothing() { co_return; }

  channel_type& channel() {
    if constexpr (carried)
      return owner_->service_;
    else
      return owner_->transport_;
  }

  Experiment* owner_;
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
  control_ = std::make_shared<detail::ControlCore>(options_, Parts::can_update_space);
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
