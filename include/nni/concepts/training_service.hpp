#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_TRAINING_SERVICE(Operation) \
  Operation(1, Capabilities, capabilities, (), const, noexcept) \
  Operation(2, awaitable<void>, start, (Context&), , ) \
  Operation(1, awaitable<ResourceSnapshot>, resources, (), , ) \
  Operation(3, awaitable<JobId>, submit_trial_job, (TrialJobForm), , ) \
  Operation(5, awaitable<void>, cancel_trial_job, (RunId, StopReason), , ) \
  Operation(6, awaitable<JobEvent>, next_event, (), , ) \
  Operation(7, awaitable<void>, clean_up, (), , )
// clang-format on

/// Runs trials somewhere: in this process, as local processes, on a cluster.
///
/// A model promises:
///  1. all members are called on `ctx.executor()` and none blocks; `submit_trial_job` and `cancel_trial_job` may be in
///     flight for different runs, at most `capabilities().max_in_flight`, and for one run they are ordered;
///     `start`, `adopt` and `clean_up` run alone;
///  2. `start` validates credentials and resources before it changes anything outside;
///  3. `submit_trial_job` keeps `form.run` as the identity: a second submit of the same run adopts the job, the next
///     attempt is a new job; what runs has the variables of the form, by which a transport is reached; a command that
///     cannot start is an end (`EndKind::not_started`), not an exception; what the platform cannot start for now through
///     no fault of the command is an end `EndKind::deferred` with a reason, or an exception with a transient code
///     (`Condition::transient`). Both withdraw the submission: the same run is submitted again, at no cost to its trial,
///     and is then as new, unless the platform had accepted it after all;
///  4. per run there is at most one *started* and exactly one *ended*, in that order, deferred ends not counted; *ended*
///     reports how the run ended (exit code, signal, exception, interrupted on request, lost) and the reason with which it
///     was told to stop, if it was (`JobEnd::why`). A run that exits by itself after a request is reported with its exit
///     code and the reason: the session decides what becomes of the trial, by one rule for all services (`nni::Ledger`).
///     *lost* is reported only for a run that does not execute and never will: while that is unknown, a service waits and
///     gives the reason through `on_trouble` (`ReportsTrouble`);
///  5. `cancel_trial_job` works in every state and returns when the request is accepted; the end arrives as an event;
///     an unknown run is `Errc::no_such_job`; any other refusal is followed by further requests while the run lives;
///  6. `next_event` is cancellable without losing an event;
///  7. after `clean_up` there are no events (`next_event` waits or throws), no processes, and no I/O object is left; it
///     finishes within `ctx.shutdown_limit()`. It is called once, also where `start` failed or was never reached;
///  8. (`ResumableService`) `adopt` answers for every intent, also for one without a `JobId`: the platform finds it by
///     the name that derives from the run. It is called once after `start`, also with no intents at all: what still runs
///     for this experiment and is in none of them is unknown to its records; it is stopped, and no later submission of
///     a run of the same name takes it, or anything that it reported, for its own.
///
/// Hooks (nni/concepts/hooks.hpp): `UsesExperimentDirectory`, `UsesExperimentLife`, `ReportsTrouble`, `GivesStartupNotice`,
/// `ReleasesRecordedRuns`; of a service that brings messages itself also `PreparesFiles`, `ResumableChannel` and the flag
/// `ends_come_last`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::training_service;`, `mount_type` and `platform`
/// @see nni::platforms::InProcess, nni::platforms::Local, docs/how-to/training-service.md
template <class Policy>
concept TrainingService = PlaysRole<Policy, role::training_service> && std::movable<Policy> && requires {
  typename Policy::mount_type;
  { Policy::platform } -> std::convertible_to<std::string_view>;
} NNI_TRAINING_SERVICE(NNI_AND_HAS);

/// A service whose runs may outlive the manager and can be adopted by the next one (promise 8).
template <class S>
concept ResumableService = TrainingService<S> && requires(S& s, std::vector<Intent> runs) {
  { s.adopt(std::move(runs)) } -> AwaitableOf<std::vector<JobReport>>;
};

/// A service whose own link brings the messages of trials; it needs no other transport. It promises what `TrialChannel`
/// promises.
template <class S>
concept CarriesMessages = TrainingService<S> && TrialChannel<S>;

/// A service that can show what a run printed: `fetch_log(run, stream)`, where a stream is `stdout`, `stderr`, or what else
/// the platform keeps of a run. `Errc::not_found` where there is none.
template <class S>
concept LogSource = TrainingService<S> && requires(S& s, RunId run, std::string stream) {
  { s.fetch_log(run, std::move(stream)) } -> AwaitableOf<std::string>;
};

/// A service with configuration keys of its own, beside its typed options (`TrainingSession::set_cluster_metadata`).
///
/// A model promises, beside what `TrainingService` promises,
/// 10. `cluster_metadata_keys` lists its keys, always the same; a session gives it these keys and no others;
/// 11. `set_cluster_metadata` is called before `start` only and binds the value to the typed options; what
///     `get_cluster_metadata` then returns is accepted again, and means the same;
/// 12. a value that it cannot use, or a key that is not listed, is a `ConfigError` that names the key, the value and
///     the accepted form, and changes nothing;
/// 13. `get_cluster_metadata` answers for each listed key at any time, also when nothing was set.
template <class S>
concept ConfigurableService =
    TrainingService<S> && requires(S& s, const S& cs, std::string key, const boost::json::value& value) {
      { cs.cluster_metadata_keys() } -> std::same_as<std::span<const std::string_view>>;
      { s.set_cluster_metadata(key, value) } -> std::same_as<void>;
      { cs.get_cluster_metadata(key) } -> std::same_as<boost::json::value>;
    };

/// A platform that can only be asked. No experiment takes it as it is: its author wraps it in a `TrainingService` that
/// asks from time to time and turns the differences into events.
///
/// A model promises what `TrainingService` promises in 1, 2, 3, 5 and 7, and
///  9. `poll` answers for all runs that it is asked about in one round trip, at most every `poll_interval()`.
template <class S>
concept PolledService =
    PlaysRole<S, role::polled_service> && std::movable<S> &&
    requires(S& s, const S& cs, Context& ctx, TrialJobForm form, RunId run, StopReason why, std::vector<RunId> runs) {
      typename S::mount_type;
      { S::platform } -> std::convertible_to<std::string_view>;
      { cs.poll_interval() } noexcept -> std::same_as<Duration>;
      { s.start(ctx) } -> AwaitableOf<void>;
      { s.resources() } -> AwaitableOf<ResourceSnapshot>;
      { s.submit_trial_job(std::move(form)) } -> AwaitableOf<JobId>;
      { s.cancel_trial_job(run, why) } -> AwaitableOf<void>;
      { s.poll(std::move(runs)) } -> AwaitableOf<std::vector<JobReport>>;
      { s.clean_up() } -> AwaitableOf<void>;
    };

/// The storage hands out what the service can mount.
template <class Service, class Store>
concept MountsFrom =
    std::same_as<typename Service::mount_type, NoMount> ||
    std::convertible_to<typename Store::mount_type, typename Service::mount_type>;

}  // namespace nni
