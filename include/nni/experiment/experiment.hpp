#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nni/assessing/none.hpp>
#include <nni/async/runtime.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/check.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/concepts/policy_set.hpp>
#include <nni/concepts/scheduler.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/concepts/tuner.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/experiment/control.hpp>
#include <nni/experiment/detail/composition.hpp>
#include <nni/experiment/detail/place.hpp>
#include <nni/experiment/experiment_core.hpp>
#include <nni/experiment/import.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/experiment/options.hpp>
#include <nni/experiment/summary.hpp>
#include <nni/scheduling/unlimited.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/transport/carried.hpp>
#include <nni/tuning/as_advisor.hpp>
#include <nni/tuning/random.hpp>

namespace nni {

namespace detail {
struct OptionsComeFirst {};
}  // namespace detail

template <class Service, class... Policies>
class TrainingSession;

/// Composes policies into an experiment and runs it.
///
/// The first policy is the training service; the others follow in any order and are recognised by their role. What is
/// not given has a default: scheduling::Unlimited, storage::LocalDirectory, transport::Carried (for services that bring
/// messages themselves), datastore::Memory, tuning::Random over an empty space, assessing::None. Give either a tuner
/// (with or without an assessor) or an advisor.
///
/// @code
/// nni::SearchSpace space{nni::uniform("x", -5.0, 5.0)};
/// nni::Experiment experiment{
///     nni::ExperimentOptions{.direction = nni::minimize, .concurrency = 4, .max_trials = 40},
///     nni::platforms::InProcess{[](nni::TrialHandle& trial) {
///       const double x = trial.parameter<double>("x");
///       trial.report_final_result((x - 2.0) * (x - 2.0));
///     }},
///     nni::tuning::Random{space}};
/// const nni::Summary summary = experiment.run();
/// @endcode
///
/// One thread runs the experiment and calls policies and observers; callables of trials run on others. An experiment
/// runs once.
///
/// @tparam Service   models `TrainingService`
/// @tparam Policies  at most one of each role
template <class Service, class... Policies>
class Experiment {
  static_assert(!std::same_as<Service, detail::OptionsComeFirst>,
                "the first argument of an Experiment is nni::ExperimentOptions, the second its training service "
                "(nni::TrainingService); the other policies follow in any order");
  static_assert(detail::check_roles<Policies...>());
  static_assert(detail::check_service<Service>());

 public:
  /// The scheduler that was named, or `scheduling::Unlimited`.
  using scheduler_type = detail::policy_or<role::scheduler, scheduling::Unlimited, Policies...>;
  /// The storage that was named, or `storage::LocalDirectory`.
  using storage_type = detail::policy_or<role::storage, storage::LocalDirectory, Policies...>;
  /// The transport that was named, or `transport::Carried`.
  using transport_type = detail::policy_or<role::metric_transport, transport::Carried, Policies...>;
  /// The data store that was named, or `datastore::Memory`.
  using store_type = detail::policy_or<role::data_store, datastore::Memory, Policies...>;
  /// The tuner that was named, or `tuning::Random`.
  using tuner_type = detail::policy_or<role::tuner, tuning::Random, Policies...>;
  /// The assessor that was named, or `assessing::None`.
  using assessor_type = detail::policy_or<role::assessor, assessing::None, Policies...>;

  static_assert(detail::check_scheduler<scheduler_type>());
  static_assert(detail::check_storage<storage_type>());
  static_assert(detail::check_store<store_type>());
  static_assert(detail::check_tuner<tuner_type>());
  static_assert(detail::check_space_of_tuner<tuner_type>());
  static_assert(detail::check_assessor<assessor_type>());
  static_assert(MountsFrom<Service, storage_type>,
                "the training service policy cannot mount this storage policy (nni::MountsFrom, promise 6 of "
                "nni::Storage): the storage's mount_type does not convert to the service's mount_type");
  /// The transport that was named, or `transport::Carried`.
  static constexpr bool carried = std::same_as<transport_type, transport::Carried>;
  static_assert(!carried || CarriesMessages<Service>,
                "the training service policy brings no messages of its trials (it does not model nni::CarriesMessages, "
                "promise 1 of nni::TrialChannel): give a metric transport, for instance nni::transport::Http");
  static_assert(detail::check_transport<carried, transport_type, storage_type>());

  /// The advisor that was named, or one that is made of tuner and assessor.
  using advisor_type = typename std::conditional_t<
      detail::count_role<role::advisor, Policies...> == 1, detail::PolicyOr<role::advisor, void, Policies...>,
      std::type_identity<tuning::AsAdvisor<tuner_type, assessor_type>>>::type;
  static_assert(detail::check_advisor<advisor_type>());
  static_assert(detail::check_space_of_advisor<advisor_type>());

  /// @param options   settings; see `ExperimentOptions`
  /// @param service   runs the trials
  /// @param policies  the others, in any order
  /// @throws ConfigError  with everything that is wrong, before anything starts
  Experiment(ExperimentOptions options, Service service, Policies... policies)
      : Experiment(std::move(options), std::move(service), std::tuple<Policies...>(std::move(policies)...)) {}

  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;
  ~Experiment() { core_.end_control(); }

  /// Adds hooks; call it before `run`.
  Experiment& observe(Observer observer) {
    core_.observe(std::move(observer));
    return *this;
  }

  /// Runs the experiment to its end on the calling thread. Ctrl-C stops it cleanly, a second one at once.
  ///
  /// @returns what it came to; also for one that was stopped
  /// @throws Error  `Errc::closed` when it has run before. When it cannot go on; the state ERROR and the reason are
  ///                recorded first. Also when everything ran,
  ///                but its end could not be kept by the data store
  Summary run() { return core_.run(); }

  /// The same on an executor of the caller.
  /// @param context  single-threaded executor; outlives the returned work
  awaitable<Summary> async_run(Context& context) { return core_.async_run(context); }

  /// Stops the experiment: no trial starts, live ones are stopped; `run` returns. Any thread, any time.
  void request_stop() { core_.request_stop(); }

  /// A handle that steers the experiment: limits, search space, pause, cancel, stop, counts. Any thread, any time.
  [[nodiscard]] Control control() const { return core_.control(); }

  /// Lets the advisor learn from results that were obtained elsewhere, before it suggests anything. They are recorded,
  /// and are no trials of this experiment. One that was imported before is left out, so a program may do the same again
  /// when it resumes. Before `run`.
  ///
  /// @code
  /// experiment.import_results(nni::results_from_json(R"([{"parameters": {"x": 1.5}, "value": 0.25}])"));
  /// @endcode
  ///
  /// @param results  see nni/experiment/import.hpp for where they may come from
  /// @throws ConfigError  when one has no usable value or parameters
  Experiment& import_results(std::vector<ResultImported> results) {
    core_.import_results(std::move(results));
    return *this;
  }

  /// The id of the experiment; it is known before it runs.
  [[nodiscard]] const ExperimentId& id() const noexcept { return core_.id(); }

  /// What is composed, for logs and messages.
  [[nodiscard]] std::string describe() const { return core_.describe(); }

 private:
  template <class, class...>
  friend class TrainingSession;  // an experiment whose advisor is the caller

  class Composed;

  Experiment(ExperimentOptions options, Service service, std::tuple<Policies...> policies);

  mutable detail::ExperimentCore core_;  // dies last: what policies hold of its runtime must not outlive it
  std::unique_ptr<Composed> policies_;
};

/// The service comes after the options, the policies in any order.
template <class Service, class... Policies>
Experiment(ExperimentOptions, Service, Policies...) -> Experiment<Service, Policies...>;

/// Arguments in another order end in a sentence instead of a failed deduction.
template <class First, class... Rest>
  requires(!std::convertible_to<First, ExperimentOptions>)
Experiment(First, Rest...) -> Experiment<detail::OptionsComeFirst>;

}  // namespace nni

#include <nni/experiment/detail/composed.hpp>
