#pragma once

#include <concepts>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/trial.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_TRIAL_CHANNEL(Operation) \
  Operation(4, awaitable<TrialMessage>, next_message, (), , ) \
  Operation(2, awaitable<void>, acknowledge, (Receipt), , ) \
  Operation(6, awaitable<void>, send, (RunId, Parameters), , ) \
  Operation(3, awaitable<void>, settle, (RunId), , )
// clang-format on

/// Brings the messages of running trials, and takes further parameters to them.
///
/// A model promises:
///  1. a message is delivered at least once; run, kind, sequence and text are the same in each delivery, by which a second
///     one is recognized; the run comes from the channel, never from what the trial wrote;
///  2. `acknowledge` is called when the message is recorded, and only then does the trial get its answer; a receipt
///     that is not known any more is ignored;
///  3. `settle` returns when everything that an ended run had sent has been given to `next_message`: results of ended
///     trials must not be dropped. The session holds back the end of a run until then, and settles the runs that have
///     ended meanwhile beside it; a transport is waited for at most 5 s, after which the loss is counted and logged, and
///     a service that brings messages itself without a limit;
///  4. `next_message` is cancellable without losing a message; messages of one run come in the order in which it
///     sent them;
///  5. what cannot be understood is delivered as `TrialMessage::Kind::garbage`, and costs no other message;
///  6. `send` returns when the parameters are queued for the run, not when the run has taken them.
///
/// @tparam Policy  a transport, or a service whose own link brings messages
template <class Policy>
concept TrialChannel = true NNI_TRIAL_CHANNEL(NNI_AND_HAS);

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_METRIC_TRANSPORT(Operation) \
  Operation(7, awaitable<void>, open, (Context&, Store&), , ) \
  Operation(8, EnvironmentVariables, environment, (RunId), , ) \
  Operation(10, awaitable<void>, close, (), , )
// clang-format on

/// Brings messages for services that have no link of their own, perhaps through files of a storage.
///
/// A model promises what `TrialChannel` promises, and
///  7. `open` is awaited before anything else; it throws when no trial could be reached, and starts nothing then;
///  8. `environment` says what the process of a run must be told to find the channel; it is called once before the
///     run is submitted, does no I/O, and the values may hold secrets: they go to the trial and nowhere else;
///  9. a transport that brings parameters to trials has the hook `prepare(const TrialJobForm&)`: every request of the run
///     for its first parameters is answered from the form. It is called before `environment` (`PreparesRuns`), or returns
///     `awaitable<void>` for files that have to be written, and the run is submitted when it has returned (`PreparesFiles`);
/// 10. `close` ends whatever `open` started; a pending `next_message` ends with `Errc::closed`;
/// 11. a transport whose messages outlive the manager has the hook `resume(RunId)` (`ResumableChannel`), which is called
///     for each run that an earlier manager had submitted: what the run reported, or goes on to report, is delivered, at
///     least once.
///
/// Hooks (nni/concepts/hooks.hpp): `PreparesRuns` or `PreparesFiles`, `ResumableChannel`, `UsesExperimentDirectory`,
/// `AdvertisesAddress`, and the flags `ends_come_last` and `multi_phase`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::metric_transport;`
/// @tparam Store   the storage of the experiment
/// @see nni::transport::Http, nni::transport::Carried, docs/how-to/transport.md
template <class Policy, class Store>
concept MetricTransportOver =
    PlaysRole<Policy, role::metric_transport> && std::movable<Policy> && Storage<Store> &&
    TrialChannel<Policy> NNI_METRIC_TRANSPORT(NNI_AND_HAS);

}  // namespace nni
