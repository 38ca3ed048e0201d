#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include <nni/experiment/experiment.hpp>
#include <nni/session/detail/session_advisor.hpp>
#include <nni/session/subscription.hpp>
#include <nni/session/training_session_options.hpp>
#include <nni/session/trial_job.hpp>

namespace nni {

/// Runs the trials of a program that has a tuner of its own: NNI's original training service interface, operation by
/// operation, over any service, scheduler, storage and transport of this library.
///
/// @code
/// nni::TrainingSession session{nni::TrainingSessionOptions{.concurrency = 4},
///                              nni::platforms::InProcess{train}};
/// const auto watching = session.add_trial_job_metric_listener([](const nni::TrialJobMetric& metric) { ... });
/// const nni::TrialJobDetail job = session.submit_trial_job(parameters);
/// const nni::TrialJobDetail end = session.wait_trial_job(job.trial);
/// session.clean_up();
/// @endcode
///
/// An experiment whose advisor is the caller. It has a thread of its own, which the first operation starts; with `run`
/// a thread of the caller does the work instead, and with `async_run` an executor of the caller. Operations come in two
/// forms: plain ones block, and may be called by any thread; those that begin with `async_` are awaited on the
/// session's executor. Listeners are called on the session's thread. There `submit_trial_job`, `update_trial_job` and
/// `cancel_trial_job` act at once; those that would have to wait refuse with `Errc::unsupported` and name the form to
/// await.
///
/// Errors of an operation: `Errc::closed` when the session has ended, with the reason if it failed; `ConfigError` for a
/// form or value that is wrong; `Errc::not_found` or `Errc::no_such_job` for an unknown trial. A trial that fails is no
/// error, its status says so.
///
/// @tparam Service   models `TrainingService`
/// @tparam Policies  a scheduler, a storage, a transport and a data store, each at most once, in any order; the default
///                   data store keeps its records in memory
template <class Service, class... Policies>
class TrainingSession : private detail::SessionHooks {
  static_assert(TrainingService<Service>, "the first policy of a TrainingSession does not model nni::TrainingService");
  static_assert(detail::count_role<role::tuner, Policies...> + detail::count_role<role::assessor, Policies...> +
                        detail::count_role<role::advisor, Policies...> ==
                    0,
                "a TrainingSession takes no tuner, assessor or advisor: its caller is that; for theirs there is "
                "nni::Experiment");
  using Inner = Experiment<Service, Policies..., detail::SessionAdvisor>;

 public:
  /// @param options   settings; see `TrainingSessionOptions`
  /// @param service   runs the trials
  /// @param policies  the others, in any order
  explicit TrainingSession(TrainingSessionOptions options, Service service, Policies... policies)
      : options_(std::move(options)),
        service_(std::move(service)),
        policies_(std::move(policies)...),
        capabilities_(service_->capabilities()) {}
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  /// Ends what still runs, as `clean_up` does; what goes wrong then is lost. A `run` or `async_run` of the caller has
  /// to have returned before.
  ~TrainingSession();

  // ---- configuration, before the session starts -----------------------------------------------------------------

  /// Sets what NNI's original interface calls cluster metadata. A service that models `ConfigurableService` gets the
  /// keys that it lists; the others are `experimentId`, `trial_config`, `multiPhase`, `nni_manager_ip`, `version_check`
  /// and `log_collection`, each bound to the option of `TrainingSessionOptions` that names it.
  ///
  /// @param key    one of those
  /// @param value  JSON, or a string that holds the JSON text of an object
  /// @throws ConfigError  naming key, value and the accepted form; nothing changes then
  /// @throws Error        `Errc::in_use` when the session has started
  void set_cluster_metadata(const std::string& key, const boost::json::value& value);

  /// What holds under a key, in the form that `set_cluster_metadata` accepts.
  /// @throws ConfigError  for a key that neither the session nor its service has
  [[nodiscard]] boost::json::value get_cluster_metadata(const std::string& key) const;

  /// True when running trials can be sent further parameters.
  [[nodiscard]] bool is_multi_phase_job_supported() const noexcept;

  // ---- trials ---------------------------------------------------------------------------------------------------

  /// Submits a trial.
  /// @param form  `parameters`, a JSON object; and what shall differ from the options: `command`, `working_directory`,
  ///              `environment` (added), `request`. The session fills in the rest. Only parameters are recorded: a
  ///              trial that a resume runs again gets the rest from the options
  /// @returns     the trial, WAITING
  TrialJobDetail submit_trial_job(TrialJobForm form);
  /// Submits a trial that differs from the options in its parameters only.
  /// @param parameters  a JSON object
  /// @returns           the trial, WAITING
  TrialJobDetail submit_trial_job(Parameters parameters) { return submit_trial_job(form_of(std::move(parameters))); }
  /// The same as `submit_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_submit_trial_job(TrialJobForm form);

  /// Sends further parameters to a trial that has not ended (multi-phase). A trial that waits gets them when it has
  /// started, and so does its next attempt if a run is lost.
  /// @param trial  as `submit_trial_job` returned it
  /// @param form   only `parameters` count
  /// @throws Error  `Errc::unsupported` when the session is not multi-phase, or its service cannot be; `Errc::no_such_job`
  TrialJobDetail update_trial_job(TrialId trial, TrialJobForm form);
  /// The same, given the parameters alone.
  TrialJobDetail update_trial_job(TrialId trial, Parameters parameters) {
    return update_trial_job(trial, form_of(std::move(parameters)));
  }
  /// The same as `update_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_update_trial_job(TrialId trial, TrialJobForm form);

  /// Stops a trial. Returns when the request is accepted; see `wait_trial_job`. One that has ended stays as it is.
  /// @param trial             as `submit_trial_job` returned it
  /// @param is_early_stopped  it ends as EARLY_STOPPED, otherwise as USER_CANCELED
  /// @throws Error  `Errc::no_such_job`
  void cancel_trial_job(TrialId trial, bool is_early_stopped = false);
  /// The same as `cancel_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<void> async_cancel_trial_job(TrialId trial, bool is_early_stopped = false);

  /// Everything that is known of a trial. When it says that the trial has ended, the listeners have had all its values.
  /// @throws Error  `Errc::not_found`
  TrialJobDetail get_trial_job(TrialId trial);
  /// The same as `get_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_get_trial_job(TrialId trial);

  /// All trials, in the order in which they were submitted.
  [[nodiscard]] std::vector<TrialJobDetail> list_trial_jobs();
  /// The same as `list_trial_jobs`, awaited on the session's executor.
  [[nodiscard]] awaitable<std::vector<TrialJobDetail>> async_list_trial_jobs();

  /// Waits until a trial has ended; not in the original, whose users had to ask again and again.
  /// @throws Error  `Errc::not_found`; `Errc::closed` when the session ends first
  TrialJobDetail wait_trial_job(TrialId trial);
  /// The same as `wait_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_wait_trial_job(TrialId trial);

  // ---- listeners; any thread, any time -----------------------------------------------------------------------------

  /// Calls a function with each value that a trial reports, in order for each trial. It must not block; what it throws
  /// ends the session.
  /// @returns  drop it to remove the listener
  Subscription add_trial_job_metric_listener(std::function<void(const TrialJobMetric&)> listener) {
    return metric_listeners_->add(std::move(listener));
  }

  /// Calls a function when a trial has started (each attempt) and when it has ended, after all its values.
  Subscription add_trial_job_status_listener(std::function<void(const TrialJobDetail&)> listener) {
    return status_listeners_->add(std::move(listener));
  }

  // ---- life ---------------------------------------------------------------------------------------------------------

  /// Starts the session on a thread of its own, and returns when its service has started. Optional.
  /// @throws Error  why it cannot start
  void start();

  /// Runs the session on the calling thread until another one, a listener or Ctrl-C has ended it. A session that runs
  /// already is waited for.
  /// @throws Error  why it could not go on
  void run();

  /// The same on an executor of the caller.
  /// @param context  single-threaded executor; outlives the returned work
  awaitable<void> async_run(Context& context);

  /// Ends the session: live trials are stopped and become SYS_CANCELED, nothing is left. Waits for that, except on the
  /// session's own thread.
  /// @throws Error  why the session could not go on, if it had failed
  void clean_up();

  /// Asks for the end without waiting. Any thread.
  void request_stop() noexcept;

 private:
  enum class Phase { idle, starting, running, over };

  /// What belongs to a trial that has not ended.
  struct Job {
    TrialJobForm form;                // what differs from the options
    std::vector<Parameters> further;  // sent so far, for the next attempt too
    std::size_t delivered = 0;        // of these, to the present attempt
    std::shared_ptr<async::event> ended;
  };

  static TrialJobForm form_of(Parameters parameters) {
    TrialJobForm form;
    form.parameters = std::move(parameters);
    return form;
  }

  // SessionHooks
  void metric_arrived(const Metric& metric) override;
  void trial_started(RunId run) override;
  void trial_ended(TrialId trial) override;
  void complete(TrialId trial, TrialJobForm& form) override;
  std::optional<ResourceRequest> request_of(TrialId trial) override;

  bool claim();
  void build();
  void loop() noexcept;
  void finish(std::exception_ptr failure) noexcept;
  void notify_all();
  [[nodiscard]] bool on_own_thread() const;
  template <class T>
  T call(awaitable<T> work, const char* name);
  template <class T>
  awaitable<void> answer(std::shared_ptr<std::promise<T>> promise, awaitable<T> work);
  awaitable<void> ready();
  void check_open() const;
  [[noreturn]] void throw_closed() const;
  void check_form(const TrialJobForm& form) const;
  Ledger& ledger() { return inner_->core_.ledger(); }
  detail::Engine& engine() { return *inner_->core_.engine(); }
  bool was_ordered(TrialId trial) { return trial.number >= 1 && trial.number <= ledger().counts().ordered; }
  TrialJobDetail live_detail(TrialId trial);
  TrialJobDetail submit_now(TrialJobForm form);
  TrialJobDetail update_now(TrialId trial, TrialJobForm form);
  void cancel_now(TrialId trial, bool is_early_stopped);
  awaitable<void> deliver(TrialId trial);
  awaitable<void> deliver_quietly(TrialId trial);
  awaitable<void> collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial);

  std::unique_ptr<Runtime> runtime_;  // dies last, see Experiment
  TrainingSessionOptions options_;
  std::optional<Service> service_;  // until it starts
  std::tuple<Policies...> policies_;
  Capabilities capabilities_;
  std::map<std::string, boost::json::value> service_metadata_;  // what holds since it started
  std::unique_ptr<Inner> inner_;

  std::shared_ptr<detail::Listeners<TrialJobMetric>> metric_listeners_ =
      std::make_shared<detail::Listeners<TrialJobMetric>>();
  std::shared_ptr<detail::Listeners<TrialJobDetail>> status_listeners_ =
      std::make_shared<detail::Listeners<TrialJobDetail>>();

  // Of the executor.
  Context* context_ = nullptr;
  std::unordered_map<TrialId, Job> jobs_;
  std::unordered_map<TrialId, TrialJobDetail> ending_;  // ended, and the listeners do not know yet
  std::unordered_map<TrialId, std::uint32_t> phases_;   // index of the newest parameters, where it is above 0
  std::optional<async::event> changed_;                 // phase, or fewer calls under way

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable phase_changed_;
  Phase phase_ = Phase::idle;
  bool stop_requested_ = false;
  std::exception_ptr failure_;
  std::size_t calls_ = 0;  // of other threads, under way
  std::optional<boost::asio::any_io_executor> executor_;
  std::thread::id own_thread_;
  std::thread thread_;
};

/// Deduces the policies from the arguments: `nni::TrainingSession session{options, service, storage};`.
template <class Service, class... Policies>
TrainingSession(TrainingSessionOptions, Service, Policies...) -> TrainingSession<Service, Policies...>;

}  // namespace nni

#include <nni/session/detail/training_session_jobs.hpp>
#include <nni/session/detail/training_session_run.hpp>
