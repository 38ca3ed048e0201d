#pragma once

#include <concepts>
#include <optional>
#include <span>
#include <vector>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/store_event.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_DATA_STORE(Operation) \
  Operation(3, awaitable<ExperimentSnapshot>, open, (Context&, ExperimentId), , ) \
  Operation(1, StorePosition, append, (std::span<const StoreEvent>), , ) \
  Operation(2, awaitable<void>, written, (StorePosition), , ) \
  Operation(2, awaitable<void>, synced, (StorePosition), , ) \
  Operation(5, awaitable<std::optional<TrialJobDetail>>, load, (TrialId), , ) \
  Operation(6, awaitable<TrialPage>, page, (TrialQuery), , ) \
  Operation(5, awaitable<std::vector<Metric>>, metrics, (TrialId), , ) \
  Operation(7, awaitable<void>, close, (), , )
// clang-format on

/// Keeps the records of an experiment.
///
/// Two strengths: *written* survives a kill of this process, *synced* survives a loss of power.
///
/// A model promises:
///  1. `append` never blocks and keeps the order; the position that it returns covers the events given;
///  2. `written(at)` and `synced(at)` return once every event up to `at` has that strength, and never claim what is not
///     true. A store that cannot write for now (no space, an input/output error) keeps what it was given, in order,
///     tells its trouble listener, tries again by itself, and they go on waiting. When it can never keep its promise,
///     or after `give_up`, they throw, now and from then on;
///  3. `open` answers with an empty snapshot for a new experiment and otherwise with what all synced and written
///     events amount to; it refuses a store that another process owns (`Errc::in_use`, naming the owner) and one
///     that it cannot understand (`Errc::store_corrupt`), changing neither;
///  4. appending the same metric a second time changes nothing: the same run, kind, sequence and text. Another text under
///     a known sequence is another value. Values are kept in the order in which they arrive, whatever their sequence; of
///     several final values of a run the first is its result, and `metrics` has all of them;
///  5. `load`, `page` and `metrics` see every event appended before the call;
///  6. the whole history is paged, never held: memory per finished trial is bounded (a store that lives in memory
///     is the exception and says so);
///  7. `close` writes and syncs what was appended, then frees the store for others.
///
/// A store that keeps events until they are written may also take them by `append(std::vector<StoreEvent>&&)`, which moves
/// them out of the vector: a value may be large.
///
/// Hooks (nni/concepts/hooks.hpp): `ReportsTrouble` and `StopsRetrying` of a store that may have to wait for space,
/// `UsesExperimentDirectory`, `HasDirectory`, `AdvertisesAddress`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::data_store;`
/// @see nni::datastore::Memory, nni::datastore::Sqlite
template <class Policy>
concept DataStore = PlaysRole<Policy, role::data_store> && std::movable<Policy> NNI_DATA_STORE(NNI_AND_HAS);

}  // namespace nni
