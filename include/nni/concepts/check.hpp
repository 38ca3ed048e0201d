#pragma once

/// @file
/// What the compiler says about a policy that breaks the contract of its role: one sentence that names the policy, the
/// concept and the promise, in the first error.
///
/// A concept answers yes or no, and compilers explain a no by pages of constraints. So a composition asks these functions:
/// they look at the operations one by one, only when the concept is not modelled, and cost nothing when it is.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/concepts/advisor.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/check_hooks.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/concepts/policy_set.hpp>
#include <nni/concepts/scheduler.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/concepts/tuner.hpp>

namespace nni::detail {

// A message of static_assert is a literal, so only a macro can put names into it.
#define NNI_BREAKS(Who, Concept) "the " Who " policy does not model nni::" Concept

// NOLINTBEGIN(bugprone-macro-parentheses): what a requires-expression is made of is no expression.
/// `Parameters` in parentheses, `Call` on them, the constraint on its result, and the declaration as people write it.
#define NNI_PROMISES(Who, Concept, Promise, Parameters, Call, Result, Declaration)               \
  static_assert(                                                                                 \
      requires Parameters { Call; },                                                             \
      NNI_BREAKS(Who, Concept) " (promise " Promise "): it has no operation `" Declaration "`"); \
  static_assert(                                                                                 \
      !requires Parameters { Call; } || requires Parameters { {Call} Result; },                  \
      NNI_BREAKS(Who, Concept) " (promise " Promise "): its operation is declared otherwise than `" Declaration "`")

// NOLINTEND(bugprone-macro-parentheses)

#define NNI_CAN_MOVE(Type, Who, Concept) \
  static_assert(                         \
      std::movable<Type>,                \
      NNI_BREAKS(                        \
          Who, Concept) ": it cannot be moved and move-assigned, and an experiment takes its policies by value")

/// @tparam S  what stands first in a composition
template <class S>
consteval bool check_service() {
  if constexpr (!TrainingService<S>) {
    static_assert(
        has_any_role<S>,
        "the first policy of an Experiment does not model nni::TrainingService: it declares no role; give the "
        "service first, and a callable as nni::platforms::InProcess{callable}");
    static_assert(!has_any_role<S> || has_role<S, role::training_service>,
                  "the first policy of an Experiment does not model nni::TrainingService: it has the role of another "
                  "policy; the training service comes first");
    if constexpr (has_role<S, role::training_service>) {
      NNI_CAN_MOVE(S, "training service", "TrainingService");
      static_assert(
          requires { typename S::mount_type; },
          "the training service policy does not model nni::TrainingService: it names no `mount_type`; "
          "nni::NoMount is for services that need no storage");
      static_assert(
          requires {
            { S::platform } -> std::convertible_to<std::string_view>;
          },
          "the training service policy does not model nni::TrainingService: it lacks "
          "`static constexpr std::string_view platform`, its name in records");
      NNI_PROMISES("training service", "TrainingService", "1", (const S& s), s.capabilities(),
                   noexcept -> std::same_as<Capabilities>, "Capabilities capabilities() const noexcept");
      NNI_PROMISES("training service", "TrainingService", "2", (S & s, Context & c), s.start(c), ->AwaitableOf<void>,
                   "awaitable<void> start(Context&)");
      NNI_PROMISES("training service", "TrainingService", "1", (S & s), s.resources(), ->AwaitableOf<ResourceSnapshot>,
                   "awaitable<ResourceSnapshot> resources()");
      NNI_PROMISES(
          "training service", "TrainingService", "3", (S & s, TrialJobForm form),
          s.submit_trial_job(std::move(form)), ->AwaitableOf<JobId>, "awaitable<JobId> submit_trial_job(TrialJobForm)");
      NNI_PROMISES(
          "training service", "TrainingService", "5", (S & s, RunId run, StopReason why),
          s.cancel_trial_job(run, why), ->AwaitableOf<void>, "awaitable<void> cancel_trial_job(RunId, StopReason)");
      NNI_PROMISES("training service", "TrainingService", "6", (S & s), s.next_event(), ->AwaitableOf<JobEvent>,
                   "awaitable<JobEvent> next_event()");
      NNI_PROMISES("training service", "TrainingService", "7", (S & s), s.clean_up(), ->AwaitableOf<void>,
                   "awaitable<void> clean_up()");
    }
  } else {
    static_assert(check_hooks_of_service<S>());
  }
  return true;
}

template <class S>
consteval bool check_scheduler() {
  if constexpr (!Scheduler<S>) {
    NNI_CAN_MOVE(S, "scheduler", "Scheduler");
    NNI_PROMISES("scheduler", "Scheduler", "1", (S & s, const ResourceRequest& want, const ResourceSnapshot& now),
                 s.place(want, now), ->std::same_as<PlacementResult>,
                 "PlacementResult place(const ResourceRequest&, const ResourceSnapshot&)");
    NNI_PROMISES("scheduler", "Scheduler", "4", (S & s, const Placement& held), s.hold(held), ->std::same_as<void>,
                 "void hold(const Placement&)");
    NNI_PROMISES("scheduler", "Scheduler", "4", (S & s, const Placement& held), s.release(held),
                 noexcept -> std::same_as<void>, "void release(const Placement&) noexcept");
  } else {
    static_assert(check_hooks_of_scheduler<S>());
  }
  return true;
}

template <class S>
consteval bool check_storage() {
  if constexpr (!Storage<S>) {
    using std::filesystem::path;
    NNI_CAN_MOVE(S, "storage", "Storage");
    static_assert(
        requires { typename S::mount_type; },
        "the storage policy does not model nni::Storage (promise 6): it names no `mount_type`, which says how "
        "trials reach it");
    NNI_PROMISES("storage", "Storage", "1", (S & s, Context & c), s.open(c), ->AwaitableOf<void>,
                 "awaitable<void> open(Context&)");
    NNI_PROMISES(
        "storage", "Storage", "1", (S & s, path local, RemotePath remote), s.upload(local, remote), ->AwaitableOf<void>,
        "awaitable<void> upload(std::filesystem::path, RemotePath)");
    NNI_PROMISES(
        "storage", "Storage", "1", (S & s, path local, RemotePath remote),
        s.download(remote, local), ->AwaitableOf<void>, "awaitable<void> download(RemotePath, std::filesystem::path)");
    NNI_PROMISES("storage", "Storage", "2", (S & s, RemotePath remote, std::uint64_t offset, std::size_t length),
                 s.read(remote, offset, length), ->AwaitableOf<std::string>,
                 "awaitable<std::string> read(RemotePath, std::uint64_t, std::size_t)");
    NNI_PROMISES(
        "storage", "Storage", "3", (S & s, RemotePath remote), s.list(remote), ->AwaitableOf<std::vector<FileInfo>>,
        "awaitable<std::vector<FileInfo>> list(RemotePath)");
    NNI_PROMISES("storage", "Storage", "4", (S & s, RemotePath remote), s.remove(remote), ->AwaitableOf<void>,
                 "awaitable<void> remove(RemotePath)");
    NNI_PROMISES("storage", "Storage", "6", (S & s, TrialId trial),
                 s.mount(trial), ->std::same_as<typename S::mount_type>, "mount_type mount(TrialId)");
    NNI_PROMISES("storage", "Storage", "1", (S & s), s.close(), ->AwaitableOf<void>, "awaitable<void> close()");
  } else {
    static_assert(check_hooks_of_storage<S>());
  }
  return true;
}

/// @tparam carried  the service brings the messages, so nothing is asked of the transport
template <bool carried, class T, class Store>
consteval bool check_transport() {
  if constexpr (!carried && !MetricTransportOver<T, Store>) {
    NNI_CAN_MOVE(T, "metric transport", "MetricTransportOver");
    NNI_PROMISES("metric transport", "MetricTransportOver", "4", (T & t), t.next_message(), ->AwaitableOf<TrialMessage>,
                 "awaitable<TrialMessage> next_message()");
    NNI_PROMISES("metric transport", "MetricTransportOver", "2", (T & t, Receipt receipt),
                 t.acknowledge(receipt), ->AwaitableOf<void>, "awaitable<void> acknowledge(Receipt)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "6", (T & t, RunId run, Parameters parameters),
                 t.send(run, parameters), ->AwaitableOf<void>, "awaitable<void> send(RunId, Parameters)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "3", (T & t, RunId run), t.settle(run), ->AwaitableOf<void>,
                 "awaitable<void> settle(RunId)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "7", (T & t, Context & c, Store & store),
                 t.open(c, store), ->AwaitableOf<void>,
                 "awaitable<void> open(Context&, Store&), over the storage of the experiment");
    NNI_PROMISES("metric transport", "MetricTransportOver", "8", (T & t, RunId run),
                 t.environment(run), ->std::same_as<EnvironmentVariables>, "EnvironmentVariables environment(RunId)");
    NNI_PROMISES("metric transport", "MetricTransportOver", "10", (T & t), t.close(), ->AwaitableOf<void>,
                 "awaitable<void> close()");
  } else if constexpr (!carried) {
    static_assert(check_hooks_of_transport<T>());
  }
  return true;
}

template <class D>
consteval bool check_store() {
  if constexpr (!DataStore<D>) {
    NNI_CAN_MOVE(D, "data store", "DataStore");
    NNI_PROMISES(
        "data store", "DataStore", "3", (D & d, Context & c, ExperimentId id),
        d.open(c, id), ->AwaitableOf<ExperimentSnapshot>, "awaitable<ExperimentSnapshot> open(Context&, ExperimentId)");
    NNI_PROMISES("data store", "DataStore", "1", (D & d, std::span<const StoreEvent> events),
                 d.append(events), ->std::same_as<StorePosition>, "StorePosition append(std::span<const StoreEvent>)");
    NNI_PROMISES("data store", "DataStore", "2", (D & d, StorePosition at), d.written(at), ->AwaitableOf<void>,
                 "awaitable<void> written(StorePosition)");
    NNI_PROMISES("data store", "DataStore", "2", (D & d, StorePosition at), d.synced(at), ->AwaitableOf<void>,
                 "awaitable<void> synced(StorePosition)");
    NNI_PROMISES("data store", "DataStore", "5", (D & d, TrialId trial),
                 d.load(trial), ->AwaitableOf<std::optional<TrialJobDetail>>,
                 "awaitable<std::optional<TrialJobDetail>> load(TrialId)");
    NNI_PROMISES("data store", "DataStore", "6", (D & d, TrialQuery query), d.page(query), ->AwaitableOf<TrialPage>,
                 "awaitable<TrialPage> page(TrialQuery)");
    NNI_PROMISES(
        "data store", "DataStore", "5", (D & d, TrialId trial), d.metrics(trial), ->AwaitableOf<std::vector<Metric>>,
        "awaitable<std::vector<Metric>> metrics(TrialId)");
    NNI_PROMISES("data store", "DataStore", "7", (D & d), d.close(), ->AwaitableOf<void>, "awaitable<void> close()");
  } else {
    static_assert(check_hooks_of_store<D>());
  }
  return true;
}

template <class T>
consteval bool check_tuner() {
  if constexpr (!Tuner<T>) {
    NNI_CAN_MOVE(T, "tuner", "Tuner");
    NNI_PROMISES("tuner", "Tuner", "1", (T & t, const SearchSpace& space, const Objectives& goals),
                 t.start(space, goals), ->std::same_as<void>, "void start(const SearchSpace&, const Objectives&)");
    NNI_PROMISES("tuner", "Tuner", "5", (T & t, const SearchSpace& space),
                 t.update_search_space(space), ->std::same_as<void>, "void update_search_space(const SearchSpace&)");
    NNI_PROMISES(
        "tuner", "Tuner", "3", (T & t, ParameterId id), t.generate(id), ->std::same_as<std::optional<Parameters>>,
        "std::optional<Parameters> generate(ParameterId)");
    NNI_PROMISES("tuner", "Tuner", "4", (T & t, const TrialOutcome& outcome), t.observe(outcome), ->std::same_as<void>,
                 "void observe(const TrialOutcome&)");
  } else {
    static_assert(check_hooks_of_tuner<T>());
  }
  return true;
}

/// Neither `start` nor `generate` needs to know a space, so a tuner keeps every promise of its concept without one.
template <class T>
consteval bool check_space_of_tuner() {
  static_assert(
      !Tuner<T> || BringsSearchSpace<T>,
      "the tuner policy brings no search space, and an Experiment would run on an empty one: give it a public "
      "`const SearchSpace& search_space() const` (nni::BringsSearchSpace)");
  return true;
}

/// An advisor without a space is given an empty one, because it may know what to try without it. A tuner inside does not.
template <class A>
consteval bool check_space_of_advisor() {
  if constexpr (WrapsTuner<A> && !BringsSearchSpace<A>)
    static_assert(
        BringsSearchSpace<tuner_of<A>>,
        "the tuner of the advisor policy brings no search space, and an Experiment would run on an empty one: give the "
        "tuner, or the advisor, a public `const SearchSpace& search_space() const` (nni::BringsSearchSpace)");
  return true;
}

template <class A>
consteval bool check_assessor() {
  if constexpr (!Assessor<A>) {
    NNI_CAN_MOVE(A, "assessor", "Assessor");
    NNI_PROMISES("assessor", "Assessor", "1", (A & a, const Objectives& goals), a.start(goals), ->std::same_as<void>,
                 "void start(const Objectives&)");
    NNI_PROMISES(
        "assessor", "Assessor", "2", (A & a, const RunId& run, std::span<const double> history),
        a.assess(run, history), ->std::same_as<Verdict>, "Verdict assess(const RunId&, std::span<const double>)");
    NNI_PROMISES("assessor", "Assessor", "3", (A & a, const RunId& run, bool succeeded),
                 a.trial_ended(run, succeeded), ->std::same_as<void>, "void trial_ended(const RunId&, bool)");
  } else {
    static_assert(check_hooks_of_assessor<A>());
  }
  return true;
}

template <class A>
consteval bool check_advisor() {
  if constexpr (!Advisor<A>) {
    NNI_CAN_MOVE(A, "advisor", "Advisor");
    NNI_PROMISES("advisor", "Advisor", "1", (A & a, Context & c, const SearchSpace& space, const Objectives& goals),
                 a.start(c, space, goals), ->AwaitableOf<void>,
                 "awaitable<void> start(Context&, const SearchSpace&, const Objectives&)");
    NNI_PROMISES("advisor", "Advisor", "2", (A & a, std::size_t count), a.request(count), ->AwaitableOf<void>,
                 "awaitable<void> request(std::size_t)");
    NNI_PROMISES("advisor", "Advisor", "3", (A & a, const Metric& metric), a.report(metric), ->AwaitableOf<void>,
                 "awaitable<void> report(const Metric&)");
    NNI_PROMISES("advisor", "Advisor", "3", (A & a, const TrialOutcome& outcome),
                 a.trial_ended(outcome), ->AwaitableOf<void>, "awaitable<void> trial_ended(const TrialOutcome&)");
    NNI_PROMISES(
        "advisor", "Advisor", "4", (A & a), a.next_order(), ->AwaitableOf<Order>, "awaitable<Order> next_order()");
    NNI_PROMISES("advisor", "Advisor", "5", (A & a), a.stop(), ->AwaitableOf<void>, "awaitable<void> stop()");
  } else {
    static_assert(check_hooks_of_advisor<A>());
  }
  return true;
}

#undef NNI_CAN_MOVE
#undef NNI_PROMISES
#undef NNI_BREAKS

/// One policy for each role: the service apart, which comes first.
template <class... Policies>
consteval bool check_roles() {
  static_assert((has_any_role<Policies> && ...),
                "a policy of this Experiment models no concept of nni: it declares no role "
                "(`using role = nni::role::tuner;` or another of nni/concepts/roles.hpp)");
  static_assert(((!has_any_role<Policies> || has_known_role<Policies>) && ...),
                "a policy of this Experiment models no concept of nni: its role is none of nni/concepts/roles.hpp");
  static_assert(
      count_role<role::training_service, Policies...> == 0,
      "two training services given: an Experiment has one policy that models nni::TrainingService, the first");
  static_assert(count_role<role::scheduler, Policies...> <= 1,
                "two schedulers given: an Experiment has one policy that models nni::Scheduler");
  static_assert(count_role<role::storage, Policies...> <= 1,
                "two storages given: an Experiment has one policy that models nni::Storage");
  static_assert(count_role<role::metric_transport, Policies...> <= 1,
                "two metric transports given: an Experiment has one policy that models nni::MetricTransportOver");
  static_assert(count_role<role::data_store, Policies...> <= 1,
                "two data stores given: an Experiment has one policy that models nni::DataStore");
  static_assert(count_role<role::tuner, Policies...> <= 1,
                "two tuners given: an Experiment has one policy that models nni::Tuner");
  static_assert(count_role<role::assessor, Policies...> <= 1,
                "two assessors given: an Experiment has one policy that models nni::Assessor");
  static_assert(count_role<role::advisor, Policies...> <= 1,
                "two advisors given: an Experiment has one policy that models nni::Advisor");
  static_assert(
      count_role<role::advisor, Policies...> == 0 ||
          count_role<role::tuner, Policies...> + count_role<role::assessor, Policies...> == 0,
      "an advisor and a tuner or assessor given: a policy that models nni::Advisor takes the place of nni::Tuner and "
      "nni::Assessor; give one or the other");
  return true;
}

}  // namespace nni::detail
