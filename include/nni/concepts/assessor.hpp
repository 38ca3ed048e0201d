#pragma once

#include <concepts>
#include <span>

#include <nni/concepts/role_check.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/objectives.hpp>

namespace nni {

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
/// @tparam A  policy type; declares `using role = nni::role::assessor;`
/// @see nni::assessing::MedianStop, docs/how-to/assessor.md
template <class A>
concept Assessor =
    PlaysRole<A, role::assessor> && std::movable<A> &&
    requires(A& a, const Objectives& goals, const RunId& run, std::span<const double> history, bool succeeded) {
      { a.start(goals) } -> std::same_as<void>;
      { a.assess(run, history) } -> std::same_as<Verdict>;
      { a.trial_ended(run, succeeded) } -> std::same_as<void>;
    };

}  // namespace nni
