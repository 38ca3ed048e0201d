#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>

#include <nni/concepts/check_hooks.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/session/detail/session_core.hpp>
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
class TrainingSession {
  static_assert(TrainingService<Service>, "the first policy of a TrainingSession does not model nni::TrainingService");
  static_assert(detail::check_configuration_of_service<Service>());
  // What cannot be composed says so where the session is named.
  static_assert(sizeof(Experiment<Service, Policies..., detail::SessionAdvisor>) != 0);
  static_assert(detail::count_role<role::tuner, Policies...> + detail::count_role<role::assessor, Policies...> +
                        detail::count_role<role::advisor, Policies...> ==
                    0,
                "a TrainingSession takes no tuner, assessor or advisor: its caller is that; for theirs there is "
                "nni::Experiment");

 public:
  /// @param options   settings; see `TrainingSessionOptions`
  /// @param service   runs the trials
  /// @param policies  the others, in any order
  explicit TrainingSession(TrainingSessionOptions options, Service service, Policies... policies)
      : core_(std::move(options), std::make_unique<Composed>(std::move(service), std::move(policies)...)) {}
  TrainingSession(const TrainingSession&) = delete;
  TrainingSession& operator=(const TrainingSession&) = delete;

  /// Ends what still runs, as `clean_up` does; what goes wrong then is lost. A `run` or `async_run` of the caller has
  /// to have returned before.
  ~TrainingSession() { core_.end(); }

  // ---- configuration, before the session starts -----------------------------------------------------------------

  /// Sets what NNI's original interface calls cluster metadata. A service that models `ConfigurableService` gets the
  /// keys that it lists; the others are `experimentId`, `trial_config`, `multiPhase`, `nni_manager_ip`, `version_check`
  /// and `log_collection`, each bound to the option of `TrainingSessionOptions` that names it.
  ///
  /// @param key    one of those
  /// @param value  JSON, or a string that holds the JSON text of an object
  /// @throws ConfigError  naming key, value and the accepted form; nothing changes then
  /// @throws Error        `Errc::in_use` when the session has started
  void set_cluster_metadata(const std::string& key, const boost::json::value& value) {
    core_.set_cluster_metadata(key, value);
  }

  /// What holds under a key, in the form that `set_cluster_metadata` accepts.
  /// @throws ConfigError  for a key that neither the session nor its service has
  [[nodiscard]] boost::json::value get_cluster_metadata(const std::string& key) const {
    return core_.get_cluster_metadata(key);
  }

  /// True when running trials can be sent further parameters.
  [[nodiscard]] bool is_multi_phase_job_supported() const noexcept { return core_.is_multi_phase_job_supported(); }

  // ---- trials ---------------------------------------------------------------------------------------------------

  /// Submits a trial.
  /// @param form  `parameters`, a JSON object; and what shall differ from the options: `command`, `working_directory`,
  ///              `environment` (added), `request`. The session fills in the rest. Only parameters are recorded: a
  ///              trial that a resume runs again gets the rest from the options
  /// @returns     the trial, WAITING
  TrialJobDetail submit_trial_job(TrialJobForm form) { return core_.submit_trial_job(std::move(form)); }
  /// Submits a trial that differs from the options in its parameters only.
  /// @param parameters  a JSON object
  /// @returns           the trial, WAITING
  TrialJobDetail submit_trial_job(Parameters parameters) {
    return submit_trial_job(detail::form_of(std::move(parameters)));
  }
  /// The same as `submit_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_submit_trial_job(TrialJobForm form) {
    return core_.async_submit_trial_job(std::move(form));
  }

  /// Sends further parameters to a trial that has not ended (multi-phase). A trial that waits gets them when it has
  /// started, and so does its next attempt if a run is lost.
  /// @param trial  as `submit_trial_job` returned it
  /// @param form   only `parameters` count
  /// @throws Error  `Errc::unsupported` when the session is not multi-phase, or its service cannot be; `Errc::no_such_job`
  TrialJobDetail update_trial_job(TrialId trial, TrialJobForm form) {
    return core_.update_trial_job(trial, std::move(form));
  }
  /// The same, given the parameters alone.
  TrialJobDetail update_trial_job(TrialId trial, Parameters parameters) {
    return update_trial_job(trial, detail::form_of(std::move(parameters)));
  }
  /// The same as `update_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_update_trial_job(TrialId trial, TrialJobForm form) {
    return core_.async_update_trial_job(trial, std::move(form));
  }

  /// Stops a trial. Returns when the request is accepted; see `wait_trial_job`. One that has ended stays as it is.
  /// @param trial             as `submit_trial_job` returned it
  /// @param is_early_stopped  it ends as EARLY_STOPPED, otherwise as USER_CANCELED
  /// @throws Error  `Errc::no_such_job`
  void cancel_trial_job(TrialId trial, bool is_early_stopped = false) {
    core_.cancel_trial_job(trial, is_early_stopped);
  }
  /// The same as `cancel_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<void> async_cancel_trial_job(TrialId trial, bool is_early_stopped = false) {
    return core_.async_cancel_trial_job(trial, is_early_stopped);
  }

  /// Everything that is known of a trial. When it says that the trial has ended, the listeners have had all its values.
  /// @throws Error  `Errc::not_found`
  TrialJobDetail get_trial_job(TrialId trial) { return core_.get_trial_job(trial); }
  /// The same as `get_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_get_trial_job(TrialId trial) {
    return core_.async_get_trial_job(trial);
  }

  /// All trials, in the order in which they were submitted.
  [[nodiscard]] std::vector<TrialJobDetail> list_trial_jobs() { return core_.list_trial_jobs(); }
  /// The same as `list_trial_jobs`, awaited on the session's executor.
  [[nodiscard]] awaitable<std::vector<TrialJobDetail>> async_list_trial_jobs() { return core_.async_list_trial_jobs(); }

  /// Waits until a trial has ended; not in the original, whose users had to ask again and again.
  /// @throws Error  `Errc::not_found`; `Errc::closed` when the session ends first
  TrialJobDetail wait_trial_job(TrialId trial) { return core_.wait_trial_job(trial); }
  /// The same as `wait_trial_job`, awaited on the session's executor.
  [[nodiscard]] awaitable<TrialJobDetail> async_wait_trial_job(TrialId trial) {
    return core_.async_wait_trial_job(trial);
  }

  // ---- listeners; any thread, any time -----------------------------------------------------------------------------

  /// Calls a function with each value that a trial reports, in order for each trial. It must not block; what it throws
  /// ends the session.
  /// @returns  drop it to remove the listener
  Subscription add_trial_job_metric_listener(std::function<void(const TrialJobMetric&)> listener) {
    return core_.add_metric_listener(std::move(listener));
  }

  /// Calls a function when a trial has started (each attempt) and when it has ended, after all its values.
  Subscription add_trial_job_status_listener(std::function<void(const TrialJobDetail&)> listener) {
    return core_.add_status_listener(std::move(listener));
  }

  // ---- life ---------------------------------------------------------------------------------------------------------

  /// Starts the session on a thread of its own, and returns when its service has started. Optional.
  /// @throws Error  why it cannot start
  void start() { core_.start(); }

  /// Runs the session on the calling thread until another one, a listener or Ctrl-C has ended it. A session that runs
  /// already is waited for.
  /// @throws Error  why it could not go on
  void run() { core_.run(); }

  /// The same on an executor of the caller.
  /// @param context  single-threaded executor; outlives the returned work
  awaitable<void> async_run(Context& context) { return core_.async_run(context); }

  /// Ends the session: live trials are stopped and become SYS_CANCELED, nothing is left. Waits for that, except on the
  /// session's own thread.
  /// @throws Error  why the session could not go on, if it had failed
  void clean_up() { core_.clean_up(); }

  /// Asks for the end without waiting. Any thread.
  void request_stop() noexcept { core_.request_stop(); }

 private:
  /// The policies until the session starts, and the experiment that they make up then.
  class Composed final : public detail::SessionPolicies {
   public:
    explicit Composed(Service service, Policies... policies)
        : service_(std::move(service)), policies_(std::move(policies)...) {}

    std::string_view platform() const noexcept override { return Service::platform; }
    Capabilities capabilities() const noexcept override { return service_->capabilities(); }
    bool hands_out_gpus() const noexcept override { return nni::hands_out_gpus<typename Inner::scheduler_type>; }
    std::optional<bool> transport_is_multi_phase() const noexcept override {
      if constexpr (Inner::carried)
        return std::nullopt;
      else
        return multi_phase<typename Inner::transport_type>;
    }

    std::span<const std::string_view> metadata_keys() const override {
      if constexpr (ConfigurableService<Service>)
        if (service_) return service_->cluster_metadata_keys();
      return {};
    }
    void set_metadata(const std::string& key, const boost::json::value& value) override {
      if constexpr (ConfigurableService<Service>) service_->set_cluster_metadata(key, value);
    }
    boost::json::value metadata(const std::string& key) const override {
      if constexpr (ConfigurableService<Service>)
        return service_->get_cluster_metadata(key);
      else
        return nullptr;
    }

    void advertise(const std::string& address) override {
      const auto pass_on = [&address]<class Policy>(Policy& policy) {
        if constexpr (AdvertisesAddress<Policy>) policy.advertise(address);
      };
      std::apply([&pass_on](auto&... policies) { (pass_on(policies), ...); }, policies_);
    }

    detail::ExperimentCore& compose(ExperimentOptions options, detail::SessionHooks hooks) override {
      inner_ = std::apply(
          [this, &options, &hooks](auto&... policies) {
            return std::make_unique<Inner>(
                std::move(options), std::move(*service_), std::move(policies)...,
                detail::SessionAdvisor(std::move(hooks)));
          },
          policies_);
      service_.reset();
      return inner_->core_;
    }

   private:
    using Inner = Experiment<Service, Policies..., detail::SessionAdvisor>;

    std::optional<Service> service_;
    std::tuple<Policies...> policies_;
    std::unique_ptr<Inner> inner_;
  };

  detail::SessionCore core_;
};

/// Deduces the policies from the arguments: `nni::TrainingSession session{options, service, storage};`.
template <class Service, class... Policies>
TrainingSession(TrainingSessionOptions, Service, Policies...) -> TrainingSession<Service, Policies...>;

}  // namespace nni
