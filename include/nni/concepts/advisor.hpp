#pragma once

#include <concepts>
#include <cstddef>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_ADVISOR(Operation) \
  Operation(1, awaitable<void>, start, (Context&, const SearchSpace&, const Objectives&), , ) \
  Operation(2, awaitable<void>, request, (std::size_t), , ) \
  Operation(3, awaitable<void>, report, (const Metric&), , ) \
  Operation(3, awaitable<void>, trial_ended, (const TrialOutcome&), , ) \
  Operation(4, awaitable<Order>, next_order, (), , ) \
  Operation(5, awaitable<void>, stop, (), , )
// clang-format on

/// Orders trials and reacts to results, asynchronously: an external process, or a tuner and an assessor
/// (nni::tuning::AsAdvisor).
///
/// A model promises:
///  1. `start` is called once; what follows may come in any order;
///  2. after `request(n)` it orders n trials, or fewer followed by `NoMoreTrials`;
///  3. `report` is called for every intermediate value of a run, in order, and for the first final one, or for every final
///     one of an advisor with the flag `hears_every_final`; `trial_ended` once per trial, after its last `report`;
///  4. `next_order` is cancellable without losing an order; an order to kill a trial that has ended is harmless; while
///     10,000 ordered trials wait for a place, no further order is taken;
///  5. `stop` ends whatever it started, within the context's shutdown limit.
///
/// Hooks (nni/concepts/hooks.hpp): `ReplaysTrials`, `ReplaysUnfinished` and `ImportsResults` for what was learnt before,
/// without which an advisor starts afresh after a resume and may suggest again what was tried; `BringsSearchSpace` or
/// `WrapsTuner` for its space, `UpdatesSearchSpace`; `RequestsResources`, `CompletesForms`, `NotifiedOfStarts`; and the flags
/// `hears_every_final` and `brings_commands`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::advisor;`
template <class Policy>
concept Advisor = PlaysRole<Policy, role::advisor> && std::movable<Policy> NNI_ADVISOR(NNI_AND_HAS);

}  // namespace nni
