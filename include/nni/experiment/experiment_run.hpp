// IWYU pragma: private, include <nni/experiment/experiment.hpp>
#pragma once

/// @file
/// Bodies of `Experiment`: running, stopping and closing. Included by experiment.hpp.

#include <nni/core/crash_point.hpp>
#include <nni/experiment/experiment.hpp>

namespace nni {

<<<<<<< HEAD
=======
/// What the loops work on, and how a form is filled: the one place where all policies meet.
template <class Service, class... Policies>
struct Experiment<Service, Policies...>::Parts {
  static constexpr bool carried = Experiment::carried;
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
    return form;
  }

  /// What only the run that was numbered can be given: the address of its channel.
  void address(TrialJobForm& form) {
    if constexpr (!carried) {
      // A transport that answers requests for parameters has to know them before the run can ask.
      if constexpr (requires { channel.prepare(form); }) channel.prepare(form);
      for (auto& [name, value] : channel.environment(form.run)) form.environment[name] = value;
    }
  }

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
  check(options_, service_.capabilities().needs_command);
  space_ = space_of(advisor_);
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
Experiment<Service, Policies...>::~Experiment() = default;

template <class Service, class... Policies>
Summary Experiment<Service, Policies...>::run() {
  RuntimeOptions settings;
  settings.threads = options_.threads;
  settings.log = Log(options_.log, options_.log_level);
  settings.shutdown_limit = options_.shutdown_limit;
  runtime_ = std::make_unique<Runtime>(std::move(settings));
  const std::unique_ptr<Runtime, void (*)(Runtime*)> signals(runtime_.get(), [](Runtime* r) { r->restore_signals(); });
  if (options_.handle_signals) runtime_->on_stop_signal([this] { stop_now(); });
  return runtime_->run(async_run(runtime_->context()));
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
  if (service_.capabilities().durable_submit) settings.submit_strength = Strength::synced;
  return settings;
}

template <class Service, class... Policies>
ProfileChanged Experiment<Service, Policies...>::first_profile(Context& context) const {
  ProfileChanged profile = snapshot_.profile;
  if (!snapshot_.exists) {
    profile.id = id_;
    profile.start_time = context.clock().now();
    if constexpr (requires { advisor_.tuner().seed(); }) profile.seed = advisor_.tuner().seed();
  }
  if (!options_.name.empty() || profile.name.empty()) profile.name = options_.name.empty() ? id_.value : options_.name;
  profile.params = describe_params(options_, space_);
  profile.status = ExperimentStatus::running;
  profile.message.clear();
  profile.end_time.reset();
  if (!directory_.empty()) profile.log_directory = (directory_ / "log").string();
  return profile;
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::open_all(Context& context, detail::Board& board) {
  if (!directory_.empty()) detail::make_directory(directory_);
  auto opening = store_.open(context, id_);
  snapshot_ = co_await std::move(opening);
  if (snapshot_.exists && options_.resume == Resume::never)
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
  if constexpr (requires { advisor_.tuner().reseed(snapshot_.profile.seed); })
    if (snapshot_.exists) advisor_.tuner().reseed(snapshot_.profile.seed);
  const Objectives goals(options_.direction);
  auto starting = advisor_.start(context, space_, goals);
  co_await std::move(starting);
  ledger_.emplace(ledger_options());
  ledger_->restore(snapshot_);
  if (snapshot_.exists) {
    auto replaying = replay(board);
    co_await std::move(replaying);
  }
  NNI_CRASH_POINT("history told");
  auto serving = service_.start(context);
  co_await std::move(serving);
  NNI_CRASH_POINT("service started");
}

// Tells the advisor what it learnt before, and the board who was best.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay(detail::Board& board) {
  constexpr bool assesses = !std::same_as<assessor_type, assessing::None>;
  const auto visit = [this, &board](TrialJobDetail trial) { return replay_trial(board, std::move(trial), assesses); };
  auto pages = detail::for_each_trial(store_, static_cast<std::size_t>(-1), visit);
  co_await std::move(pages);
  if constexpr (requires(UnfinishedTrial t) {
                  advisor_.replay_unfinished(t.parameter, t.parameters, RunId{}, t.history);
                })
    for (UnfinishedTrial& trial : snapshot_.unfinished) {
      const RunId run{trial.trial, trial.attempts == 0 ? 0 : trial.attempts - 1};
      advisor_.replay_unfinished(trial.parameter, trial.parameters, run, trial.history);
    }
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::replay_trial(
    detail::Board& board, TrialJobDetail trial, bool with_history) {
  if (!is_terminal(trial.status)) co_return;
  board.remember(trial);
  if constexpr (requires(TrialOutcome o, std::vector<double> h) { advisor_.replay(o, h); }) {
    std::vector<double> history;
    if (with_history || (trial.status == TrialJobStatus::early_stopped && !trial.final_value)) {
      auto reading = store_.metrics(trial.trial);
      const std::vector<Metric> metrics = co_await std::move(reading);
      history = detail::intermediate_numbers(metrics);
    }
    advisor_.replay(detail::outcome_of(trial, history), history);
  }
}

template <class Service, class... Policies>
awaitable<std::vector<JobReport>> Experiment<Service, Policies...>::adopt_open_runs() {
  std::vector<Intent> open = ledger_->open_intents();
  std::vector<JobReport> reports;
  if (open.empty()) co_return reports;
  if constexpr (ResumableService<Service>) {
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

>>>>>>> 518b0c3 (Compile the quickstart's composition once, and measure what compiling costs)
template <class Service, class... Policies>
void Experiment<Service, Policies...>::stop_now() {
  stop_requested_ = true;
  if (engine_)
    engine_->request_stop();
  else
    give_up();
}

// Who wants to stop does not wait until there is space.
template <class Service, class... Policies>
void Experiment<Service, Policies...>::give_up() {
  if constexpr (requires { store_.give_up(); }) store_.give_up();
}

template <class Service, class... Policies>
void Experiment<Service, Policies...>::steer(detail::Change change) {
  if (std::holds_alternative<detail::StopExperiment>(change))
    stop_now();
  else if (engine_)
    engine_->carry_out(std::move(change));
}

template <class Service, class... Policies>
awaitable<Summary> Experiment<Service, Policies...>::async_run(Context& context) {
  detail::Board board(options_, observers_);
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

  Engine engine(context, Parts(*this), options_, *ledger_, board);
  engine_ = &engine;
  engine.listen();
  try {
    auto adopting = adopt_open_runs();
    const std::vector<JobReport> reports = co_await std::move(adopting);
    NNI_CRASH_POINT("runs adopted");
    const auto alive = std::count_if(reports.begin(), reports.end(), [](const JobReport& report) {
      return report.state == JobReport::State::running;
    });
    Transition first;
    import_new(board, first);
    board.begin(first_profile(context), directory_, Service::platform, snapshot_.exists, ledger_->counts().finished,
                static_cast<std::size_t>(alive), snapshot_.imported.size());
    first.records.emplace(first.records.begin(), board.profile(ledger_->counts()));
    engine.apply(first);
    if (settings_.paused) engine.carry_out(detail::PauseTrials{});
    engine.adopt(reports);
    control_->begin(context.executor(), [this](detail::Change change) { steer(std::move(change)); });
    if (stop_requested_) engine.request_stop();
    auto loops = engine.run();
    co_await std::move(loops);
  } catch (...) {
    failure = std::current_exception();
  }
  engine.stop_listening();
  engine_ = nullptr;
  control_->end();
  board.set_active(engine.active());
  co_await async::ignore_cancellation();
  auto closing = async::shield(close_all(context, board, failure));
  Summary summary = co_await std::move(closing);
  board_ = nullptr;
  if (failure) std::rethrow_exception(failure);
  co_return summary;
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::close_policies(Context& context) {
  const auto quietly = [this, &context](awaitable<void> work, const char* what) {
    return close_one(context, std::move(work), what);
  };
  auto advisor = quietly(advisor_.stop(), "advisor");
  co_await std::move(advisor);
  auto service = quietly(service_.clean_up(), "training service");
  co_await std::move(service);
  if constexpr (!carried) {
    auto transport = quietly(transport_.close(), "metric transport");
    co_await std::move(transport);
  }
  auto storage = quietly(storage_.close(), "storage");
  co_await std::move(storage);
  auto store = quietly(store_.close(), "data store");
  co_await std::move(store);
}

// One policy that cannot be closed must not keep the others open.
template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::close_one(Context& context, awaitable<void> work, const char* what) {
  try {
    NNI_CRASH_POINT("clean-up");
    auto limited = async::with_timeout(std::move(work), context.shutdown_limit() + std::chrono::seconds(1));
    co_await std::move(limited);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string(what) + " could not be closed: " + error.what());
    if (!clean_up_failure_) clean_up_failure_ = std::current_exception();
  }
}

template <class Service, class... Policies>
awaitable<Summary> Experiment<Service, Policies...>::close_all(
    Context& context, detail::Board& board, std::exception_ptr failure) {
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
  if (stop_requested_ || failure) give_up();
  std::vector<TrialJobDetail> trials;
  try {
    board.set_status(status, message);
    // A pause outlives a manager that dies; who starts an experiment again that was stopped wants it to run.
    settings_.paused = false;
    apply_settings();
    if (settings_.changed_space()) {
      auto counting = count_unfitting();
      co_await std::move(counting);
    }
    ProfileChanged profile = board.profile(ledger_->counts());
    profile.end_time = context.clock().now();
    const StoreEvent last{std::move(profile)};
    const StorePosition position = store_.append(std::span<const StoreEvent>(&last, 1));
    auto keeping = store_.synced(position);
    co_await std::move(keeping);
    const auto visit = [this, &trials](TrialJobDetail trial) { return collect(trials, std::move(trial)); };
    auto reading = detail::for_each_trial(store_, options_.summary_trials, visit);
    co_await std::move(reading);
  } catch (const std::exception& error) {
    context.log().error("experiment", std::string("the end could not be recorded: ") + error.what());
  }
  auto closing = close_policies(context);
  co_await std::move(closing);
  co_return board.end(status, std::move(message), ledger_->counts(), std::move(trials));
}

template <class Service, class... Policies>
awaitable<void> Experiment<Service, Policies...>::collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial) {
  into.push_back(std::move(trial));
  co_return;
}

}  // namespace nni
