#pragma once

#include <concepts>
#include <span>

#include <nni/concepts/contract.hpp>
#include <nni/concepts/role_check.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/objectives.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_ASSESSOR(Operation) \
  Operation(1, void, start, (const Objectives&), , ) \
  Operation(2, Verdict, assess, (const RunId&, std::span<const double>), , ) \
  Operation(3, void, trial_ended, (const RunId&, bool), , )
// clang-format on

/// Judges running trials by their intermediate results.
///
/// A model promises:
///  1. `start` is called once, before anything else, with the direction of the objective;
///  2. `assess` is called after each intermediate result of a run with all of its numbers so far, oldest first, in the
///     order in which the results of all runs arrived; its verdict depends on these and on the histories seen before, not
///     on time;
///  3. `trial_ended` is called once per run; a run may be compared with others that have not ended;
///  4. after a resume each stored history is given once, whole, through `assess`, in the order of trial ids: those of
///     ended trials, with `trial_ended` after each, then those of runs that have not ended. The verdicts are ignored, and
///     later ones are as if the histories had been given step by step: an assessor looks at every step of a history that
///     it has not seen, not only at the last.
///
/// Hooks (nni/concepts/hooks.hpp): the flag `stops_no_trial`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::assessor;`
/// @see nni::assessing::MedianStop, docs/how-to/assessor.md
template <class Policy>
concept Assessor = PlaysRole<Policy, role::assessor> && std::movable<Policy> NNI_ASSESSOR(NNI_AND_HAS);

}  // namespace nni
