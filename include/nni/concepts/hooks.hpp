#pragma once

/// @file
/// Hooks: the operations that a policy may have beside those of its contract, and the flags that it may set.
///
/// A composition calls a hook where the policy has it, on the experiment's executor, and does without where it does not.
/// A member that has the name of a hook, but cannot be called as one, does not compile: see nni/concepts/check_hooks.hpp.
/// A wrapper passes a hook on with the concept as its constraint: `void recorded(RunId) requires ReleasesRecordedRuns<S>`.
///
/// Hooks of several operations or with contracts of their own stand beside the contract of their role: `ResumableService`,
/// `LogSource`, `ConfigurableService`, `WatchableStorage`, `tuning::PointTuner`.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nni/concepts/common.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/concepts/tuner.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

// ---- several roles ------------------------------------------------------------------------------------------------

/// A training service, storage, transport or data store that keeps files in the directory of the experiment.
///
/// The experiment calls `set_experiment_directory` once, in its constructor. A model promises:
///  1. it only remembers the directory: nothing is created before it is opened or started;
///  2. a directory that its own options name comes first.
template <class P>
concept UsesExperimentDirectory = requires(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  { policy.set_experiment_directory(directory, id) } -> std::same_as<void>;
};

/// A training service or data store that can be unable to work for a while.
///
/// The experiment calls `on_trouble` with a listener before its loops start, and with an empty one when they have ended.
/// Until the trouble is over no trial starts, and the reason is shown. A model promises:
///  1. it calls the listener on the executor, with a sentence when it cannot go on, and with an empty text when it can;
///  2. it keeps trying by itself, loses nothing meanwhile, and calls no listener that was replaced;
///  3. a listener that comes while there is trouble is called at once.
template <class P>
concept ReportsTrouble = requires(P& policy, TroubleListener listener) {
  { policy.on_trouble(std::move(listener)) } -> std::same_as<void>;
};

/// A transport, storage, scheduler or data store that tells trials an address of this machine.
///
/// A `TrainingSession` whose options name the address (`nni_manager_ip`) calls `advertise` once, before it starts. A model
/// promises:
///  1. trials are given this host instead of the one that it would choose.
template <class P>
concept AdvertisesAddress = requires(P& policy, const std::string& host) {
  { policy.advertise(host) } -> std::same_as<void>;
};

// ---- training service ---------------------------------------------------------------------------------------------

/// A training service whose jobs outlive the manager, and which tells those of one life of an experiment from another's.
///
/// The experiment calls `set_experiment_life` once, before `start`, with a random text that stays the same when the
/// experiment is resumed, and with true when a later manager can resume it. A model promises:
///  1. it adopts only jobs that were started with the same text: records that were deleted cannot claim them;
///  2. where nobody can resume the experiment, it keeps no results for a later manager.
template <class S>
concept UsesExperimentLife = requires(S& service, const std::string& life, bool can_resume) {
  { service.set_experiment_life(life, can_resume) } -> std::same_as<void>;
};

/// A training service that keeps something of an ended run until its end is on record.
///
/// The experiment calls `recorded` for each run whose end is written (`DataStore` promise 2). A model promises:
///  1. it keeps the end of a run until then, so that a later manager can learn it;
///  2. a run that it does not know is ignored.
template <class S>
concept ReleasesRecordedRuns = requires(S& service, RunId run) {
  { service.recorded(run) } -> std::same_as<void>;
};

/// A training service with something to say when it has started.
///
/// The experiment calls `remark` once, after `start` and `adopt`. A model promises:
///  1. one sentence for people, or nothing: it is shown and stands in no record.
template <class S>
concept GivesStartupNotice = requires(S& service) {
  { service.remark() } -> std::convertible_to<std::string>;
};

// ---- metric transport, and a training service that brings messages itself --------------------------------------------

/// A transport that answers requests of trials for parameters (promise 9 of `MetricTransportOver`).
///
/// The experiment calls `prepare` once for each run, before `environment`. It does no I/O; see `PreparesFiles`.
template <class T>
concept PreparesRuns = requires(T& channel, const TrialJobForm& form) {
  { channel.prepare(form) } -> std::same_as<void>;
};

/// A channel that needs files of a run before the run is submitted (promise 9 of `MetricTransportOver`).
///
/// The experiment awaits `prepare` before each submission of a run; `environment` may have been called before. A model
/// promises:
///  1. what it throws is a failed submission: a transient code defers the run, any other fails it;
///  2. preparing the same run again is harmless.
template <class T>
concept PreparesFiles = requires(T& channel, const TrialJobForm& form) {
  { channel.prepare(form) } -> AwaitableOf<void>;
};

/// A channel whose messages outlive the manager (promise 11 of `MetricTransportOver`).
///
/// The experiment calls `resume` for each run that an earlier manager submitted, before its loops start. A model promises:
///  1. what the run reported, or reports from now on, is delivered at least once;
///  2. a run of which nothing is left is ignored.
template <class T>
concept ResumableChannel = requires(T& channel, RunId run) {
  { channel.resume(run) } -> std::same_as<void>;
};

// ---- data store ---------------------------------------------------------------------------------------------------

/// A data store that waits while it cannot write, and can be told to stop (promise 2 of `DataStore`).
///
/// The experiment calls `give_up` when it is stopped or has failed; it may do so several times, and before `open`. A model
/// promises:
///  1. what can be written is still written, and what cannot makes `written` and `synced` throw instead of wait.
template <class D>
concept StopsRetrying = requires(D& store) {
  { store.give_up() } -> std::same_as<void>;
};

/// A data store with a directory in which the directories of experiments lie.
///
/// The experiment reads `directory` once, in its constructor, where its own options name none. A model promises:
///  1. an empty path where it was given none.
template <class D>
concept HasDirectory = requires(const D& store) {
  { store.directory() } -> std::convertible_to<std::filesystem::path>;
};

// ---- tuner --------------------------------------------------------------------------------------------------------

/// A tuner or an advisor that brings the space that it searches.
///
/// The experiment reads `search_space` once, in its constructor, and gives it to `start`. A model promises:
///  1. the space that it was constructed with.
template <class T>
concept BringsSearchSpace = requires(const T& policy) {
  { policy.search_space() } -> std::convertible_to<const SearchSpace&>;
};

/// A tuner whose suggestions depend on a seed.
///
/// A new experiment reads `seed` once, before the tuner's `start`, and records it: everything random derives from it. A
/// model promises:
///  1. the seed that its suggestions come from; 0 counts as none.
template <class T>
concept HasSeed = requires(T& tuner) {
  { tuner.seed() } -> std::convertible_to<std::uint64_t>;
};

/// A tuner that can continue with the seed of an earlier manager.
///
/// The experiment calls `reseed` with the seed on record, before the tuner's `start`. A model promises:
///  1. suggestions come from this seed, as if it had been constructed with it.
template <class T>
concept Reseedable = HasSeed<T> && requires(T& tuner, std::uint64_t seed) {
  { tuner.reseed(seed) } -> std::same_as<void>;
};

/// A tuner that counts trials in flight, or leaves out what is being tried.
///
/// `tuning::AsAdvisor` calls `adopt` after a resume for each trial that has not ended, after the history was observed. For
/// a tuner without it, `generate` is called with the same number, and what it returns is dropped. A model promises:
///  1. a later `observe` of this number finds the tuner as if it had suggested these parameters itself.
template <class T>
concept AdoptsUnfinished = requires(T& tuner, ParameterId id, const Parameters& parameters) {
  { tuner.adopt(id, parameters) } -> std::same_as<void>;
};

// ---- advisor ------------------------------------------------------------------------------------------------------

/// The type of the tuner inside an advisor.
template <class A>
using tuner_of = std::remove_cvref_t<decltype(std::declval<A&>().tuner())>;

/// An advisor around a tuner, whose space and seed are those of the experiment.
///
/// The experiment reads `tuner` for the hooks of tuners that it calls itself. A model promises:
///  1. it returns a reference to the tuner that makes its suggestions.
template <class A>
concept WrapsTuner = Tuner<tuner_of<A>> && requires(A& advisor, const A& same) {
  { advisor.tuner() } -> std::same_as<tuner_of<A>&>;
  { same.tuner() } -> std::same_as<const tuner_of<A>&>;
};

/// An advisor that can be given another space while the experiment runs (`Control::update_search_space`).
///
/// A model promises:
///  1. orders that follow come from the new space;
///  2. a space that it cannot search is a `ConfigError`, and changes nothing.
template <class A>
concept UpdatesSearchSpace = requires(A& advisor, const SearchSpace& space) {
  { advisor.update_search_space(space) } -> std::same_as<void>;
};

/// An advisor that says which resources a trial needs.
///
/// The experiment calls `request_of` each time it looks for a place for the trial. A model promises:
///  1. it answers nothing where the options of the experiment hold, and always the same for one trial.
template <class A>
concept RequestsResources = requires(A& advisor, TrialId trial) {
  { advisor.request_of(trial) } -> std::convertible_to<std::optional<ResourceRequest>>;
};

/// An advisor that fills in the form of a run: its command, working directory or environment.
///
/// The experiment calls `complete` once for each run that got a place, when everything but its number and the address of
/// its channel is filled in. A model promises:
///  1. it leaves request, placement and mount as they are.
template <class A>
concept CompletesForms = requires(A& advisor, TrialId trial, TrialJobForm& form) {
  { advisor.complete(trial, form) } -> std::same_as<void>;
};

/// An advisor that is notified when a run starts. A later attempt is another run.
///
/// The experiment calls `trial_started` when the ledger knows of the start; what the run reports may come before or after.
template <class A>
concept NotifiedOfStarts = requires(A& advisor, RunId run) {
  { advisor.trial_started(run) } -> std::same_as<void>;
};

/// An advisor that learns from the trials of earlier managers.
///
/// After a resume the experiment calls `replay` for each trial that has ended, in the order of trial ids, between `start`
/// and the first `request`, with the finite numbers among its intermediate results. A model promises:
///  1. it gives no order for these trials, and uses none of their parameter ids again.
template <class A>
concept ReplaysTrials = requires(A& advisor, TrialOutcome outcome, std::vector<double> history) {
  { advisor.replay(outcome, history) } -> std::same_as<void>;
};

/// An advisor that continues trials of earlier managers.
///
/// After a resume, and after every `replay`, the experiment calls `replay_unfinished` for each trial that has not ended,
/// with its last attempt and the finite numbers that this attempt has reported. A model promises:
///  1. it expects `report` and `trial_ended` for this trial, as if it had ordered it.
template <class A>
concept ReplaysUnfinished = requires(A& advisor, UnfinishedTrial trial) {
  { advisor.replay_unfinished(trial.parameter, trial.parameters, RunId{}, trial.history) } -> std::same_as<void>;
};

/// An advisor that learns from results that were obtained elsewhere (`Experiment::import_results`).
///
/// The experiment calls `import_result` between `start` and the first `request`, and at the same place of the history
/// after every resume. A model promises:
///  1. it gives no order for them.
template <class A>
concept ImportsResults = requires(A& advisor, const ResultImported& result) {
  { advisor.import_result(result) } -> std::same_as<void>;
};

// ---- flags --------------------------------------------------------------------------------------------------------

/// @cond
// How a flag is read: by its value, so that `= false` means false. A flag that is no constant counts as none, and is refused.
#define NNI_FLAG_IS(Value, Flag) (requires { requires std::bool_constant<Flag>::value == (Value); })
/// @endcond

/// True for an advisor with `static constexpr bool hears_every_final = true;`: it is given every final value of a run, not
/// only the first.
template <class A>
inline constexpr bool hears_every_final = NNI_FLAG_IS(true, A::hears_every_final);

/// True for an advisor with `static constexpr bool brings_commands = true;`: its `complete` gives trials their commands, so
/// an experiment may leave out `trial_command`.
template <class A>
inline constexpr bool brings_commands = NNI_FLAG_IS(true, A::brings_commands);

/// True for an assessor with `static constexpr bool stops_no_trial = true;`: histories are neither kept for it nor read for
/// it after a resume, and running trials are not shown to it.
template <class A>
inline constexpr bool stops_no_trial = NNI_FLAG_IS(true, A::stops_no_trial);

/// False for a scheduler with `static constexpr bool hands_out_gpus = false;`: it can give no devices to trials. Options
/// that ask for GPUs are then an error before anything starts.
template <class S>
inline constexpr bool hands_out_gpus = !NNI_FLAG_IS(false, S::hands_out_gpus);

/// True for a channel with `static constexpr bool ends_come_last = true;`: when the end of a run is reported, everything
/// that the run had sent was delivered, so its `settle` waits for nobody but the engine. The ends of its runs are processed
/// one after the other, which costs less than side by side.
template <class T>
inline constexpr bool ends_come_last = NNI_FLAG_IS(true, T::ends_come_last);

/// False for a transport with `static constexpr bool multi_phase = false;`: it brings no further parameters to a running
/// trial. Of a service that brings messages itself `Capabilities::multi_phase` says so.
template <class T>
inline constexpr bool multi_phase = !NNI_FLAG_IS(false, T::multi_phase);

#undef NNI_FLAG_IS

}  // namespace nni
