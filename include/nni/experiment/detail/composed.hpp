// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// The policies of an `Experiment`: one place where all of them meet. Included by experiment.hpp.

#include <nni/experiment/experiment.hpp>

namespace nni {

/// Holds the policies of an experiment, and implements `detail::Composition` over them.
template <class Service, class... Policies>
class Experiment<Service, Policies...>::Composed final : public detail::Composition {
 public:
  Composed(Service&& service, std::tuple<Policies...>& policies)
      : Composition(facts_of_types()),
        service_(std::move(service)),
        scheduler_(detail::take_policy<role::scheduler, scheduling::Unlimited>(policies)),
        storage_(detail::take_policy<role::storage, storage::LocalDirectory>(policies)),
        transport_(detail::take_policy<role::metric_transport, transport::Carried>(policies)),
        store_(detail::take_policy<role::data_store, datastore::Memory>(policies)),
        advisor_(make_advisor(policies)) {}

  // ---- training service
  Capabilities capabilities() const noexcept override { return service_.capabilities(); }
  awaitable<void> start_service(Context& context) override { return service_.start(context); }
  awaitable<ResourceSnapshot> resources() override { return service_.resources(); }
  awaitable<JobId> submit_trial_job(TrialJobForm form) override { return service_.submit_trial_job(std::move(form)); }
  awaitable<void> cancel_trial_job(RunId run, StopReason reason) override {
    return service_.cancel_trial_job(run, reason);
  }
  awaitable<JobEvent> next_event() override { return service_.next_event(); }
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs) override {
    if constexpr (ResumableService<Service>)
      return service_.adopt(std::move(runs));
    else
      return no_reports();
  }
  void end_recorded(RunId run) override {
    if constexpr (ReleasesRecordedRuns<Service>) service_.recorded(run);
  }
  void set_life(const std::string& life, bool can_resume) override {
    if constexpr (UsesExperimentLife<Service>) service_.set_experiment_life(life, can_resume);
  }
  std::string remark() override {
    if constexpr (GivesStartupNotice<Service>)
      return service_.remark();
    else
      return {};
  }
  awaitable<void> clean_up() override { return service_.clean_up(); }

  // ---- storage
  awaitable<void> open_storage(Context& context) override { return storage_.open(context); }
  awaitable<void> close_storage() override { return storage_.close(); }

  // ---- trial channel
  awaitable<void> open_transport(Context& context) override {
    if constexpr (carried)
      return nothing();
    else
      return transport_.open(context, storage_);
  }
  awaitable<void> close_transport() override {
    if constexpr (carried)
      return nothing();
    else
      return transport_.close();
  }
  awaitable<TrialMessage> next_message() override { return channel().next_message(); }
  awaitable<void> acknowledge(Receipt receipt) override { return channel().acknowledge(receipt); }
  awaitable<void> send(RunId run, Parameters parameters) override { return channel().send(run, std::move(parameters)); }
  awaitable<void> settle(RunId run) override { return channel().settle(run); }
  awaitable<void> prepare(const TrialJobForm& form) override {
    if constexpr (PreparesFiles<channel_type>)
      return channel().prepare(form);
    else
      return nothing();
  }
  void resume_channel(RunId run) override {
    if constexpr (ResumableChannel<channel_type>) channel().resume(run);
  }

  // ---- scheduler
  PlacementResult place(const ResourceRequest& request, const ResourceSnapshot& resources) override {
    return scheduler_.place(request, resources);
  }
  void hold(const Placement& placement) override { scheduler_.hold(placement); }
  void release(const Placement& placement) noexcept override { scheduler_.release(placement); }

  // ---- advisor
  awaitable<void> start_advisor(Context& context, const SearchSpace& space, const Objectives& goals) override {
    return advisor_.start(context, space, goals);
  }
  awaitable<void> stop_advisor() override { return advisor_.stop(); }
  awaitable<void> request(std::size_t count) override { return advisor_.request(count); }
  awaitable<void> report(const Metric& metric) override { return advisor_.report(metric); }
  awaitable<void> trial_ended(const TrialOutcome& outcome) override { return advisor_.trial_ended(outcome); }
  awaitable<Order> next_order() override { return advisor_.next_order(); }
  void trial_started(RunId run) override {
    if constexpr (NotifiedOfStarts<advisor_type>) advisor_.trial_started(run);
  }
  void update_search_space(const SearchSpace& space) override {
    if constexpr (UpdatesSearchSpace<advisor_type>) advisor_.update_search_space(space);
  }
  void import_result(const ResultImported& result) override {
    if constexpr (ImportsResults<advisor_type>) advisor_.import_result(result);
  }
  void replay(const TrialOutcome& outcome, const std::vector<double>& history) override {
    if constexpr (ReplaysTrials<advisor_type>) advisor_.replay(outcome, history);
  }
  void replay_unfinished(const UnfinishedTrial& trial, RunId run) override {
    if constexpr (ReplaysUnfinished<advisor_type>)
      advisor_.replay_unfinished(trial.parameter, trial.parameters, run, trial.history);
  }
  std::uint64_t settle_seed(std::uint64_t recorded) override {
    if constexpr (WrapsTuner<advisor_type>) {
      using Inner = tuner_of<advisor_type>;
      // A tuner without a seed may have begun; then the seed of the first one that has one counts.
      if constexpr (HasSeed<Inner>)
        if (recorded == 0) recorded = advisor_.tuner().seed();
      if constexpr (Reseedable<Inner>)
        if (recorded != 0) advisor_.tuner().reseed(recorded);
    }
    return recorded;
  }

  // ---- data store
  awaitable<ExperimentSnapshot> open_store(Context& context, ExperimentId id) override {
    return store_.open(context, std::move(id));
  }
  awaitable<void> close_store() override { return store_.close(); }
  StorePosition append(std::vector<StoreEvent>&& events) override { return store_.append(std::move(events)); }
  StorePosition append(std::span<const StoreEvent> events) override { return store_.append(events); }
  awaitable<void> written(StorePosition at) override { return store_.written(at); }
  awaitable<void> synced(StorePosition at) override { return store_.synced(at); }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) override { return store_.load(trial); }
  awaitable<TrialPage> page(TrialQuery query) override { return store_.page(std::move(query)); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) override { return store_.metrics(trial); }
  void stop_retrying() override {
    if constexpr (StopsRetrying<store_type>) store_.give_up();
  }
  void on_trouble(TroubleListener of_store, TroubleListener of_service) override {
    if constexpr (ReportsTrouble<store_type>) store_.on_trouble(std::move(of_store));
    if constexpr (ReportsTrouble<Service>) service_.on_trouble(std::move(of_service));
  }

  // ---- runs
  std::optional<ResourceRequest> request_of(TrialId trial) override {
    if constexpr (RequestsResources<advisor_type>)
      return advisor_.request_of(trial);
    else
      return std::nullopt;
  }
  void complete(TrialId trial, TrialJobForm& form) override {
    if constexpr (!std::same_as<typename Service::mount_type, NoMount>)
      form.mount = typename Service::mount_type(storage_.mount(trial));
    if constexpr (CompletesForms<advisor_type>) advisor_.complete(trial, form);
  }
  void address(TrialJobForm& form) override {
    if constexpr (!carried) {
      // A transport that answers requests for parameters has to know them before the run can ask.
      if constexpr (PreparesRuns<channel_type>) channel().prepare(form);
      for (auto& [name, value] : channel().environment(form.run)) form.environment[name] = value;
    }
  }

  // ---- places
  std::filesystem::path store_directory() const override { return detail::root_of(store_); }
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) override {
    detail::assign_directory(service_, directory, id);
    detail::assign_directory(store_, directory, id);
    detail::assign_directory(storage_, directory, id);
    detail::assign_directory(transport_, directory, id);
  }

  /// The space that the tuner searches, for recording and checking; empty for an advisor without one.
  [[nodiscard]] SearchSpace search_space() const {
    if constexpr (BringsSearchSpace<advisor_type>)
      return advisor_.search_space();
    else if constexpr (WrapsTuner<advisor_type>)
      return advisor_.tuner().search_space();
    else
      return SearchSpace{};
  }

 private:
  using channel_type = std::conditional_t<carried, Service, transport_type>;

  static constexpr bool has_advisor = detail::count_role<role::advisor, Policies...> == 1;
  static detail::CompositionFacts facts_of_types() {
    detail::CompositionFacts facts;
    facts.platform = Service::platform;
    facts.is_carried = carried;
    facts.ends_come_last = ends_come_last<channel_type>;
    facts.prepares_files = PreparesFiles<channel_type>;
    facts.resumes_channel = ResumableChannel<channel_type>;
    facts.adopts_runs = ResumableService<Service>;
    facts.has_store = detail::count_role<role::data_store, Policies...> != 0;
    facts.keeps_in_memory = std::same_as<store_type, datastore::Memory>;
    facts.updates_space = UpdatesSearchSpace<advisor_type>;
    facts.replays_trials = ReplaysTrials<advisor_type>;
    // What an advisor of the caller's makes of a resume is its own affair; of ours only an assessor needs histories.
    facts.replays_histories = has_advisor ? ReplaysTrials<advisor_type> : !stops_no_trial<assessor_type>;
    facts.hears_every_final = hears_every_final<advisor_type>;
    facts.brings_commands = brings_commands<advisor_type>;
    facts.hands_out_gpus = hands_out_gpus<scheduler_type>;
    facts.writes_files =
        UsesExperimentDirectory<Service> || UsesExperimentDirectory<store_type> ||
        detail::count_role<role::storage, Policies...> != 0;
    return facts;
  }

  static advisor_type make_advisor(std::tuple<Policies...>& policies) {
    if constexpr (has_advisor)
      return std::get<advisor_type>(std::move(policies));
    else
      return advisor_type(detail::take_policy<role::tuner, tuning::Random>(policies),
                          detail::take_policy<role::assessor, assessing::None>(policies));
  }

  static awaitable<void> nothing() { co_return; }
  static awaitable<std::vector<JobReport>> no_reports() { co_return std::vector<JobReport>(); }

  channel_type& channel() {
    if constexpr (carried)
      return service_;
    else
      return transport_;
  }

  Service service_;
  scheduler_type scheduler_;
  storage_type storage_;
  transport_type transport_;
  store_type store_;
  advisor_type advisor_;
};

template <class Service, class... Policies>
Experiment<Service, Policies...>::Experiment(
    ExperimentOptions options, Service service, std::tuple<Policies...> policies)
    : core_(std::move(options)), policies_(std::make_unique<Composed>(std::move(service), policies)) {
  core_.compose(*policies_, policies_->search_space());
}

}  // namespace nni
