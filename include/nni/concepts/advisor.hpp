#pragma once

#include <concepts>
#include <cstddef>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

/// Orders trials and reacts to results, asynchronously: an external process, or a tuner and an assessor
/// (nni::tuning::AsAdvisor).
///
/// A model promises:
///  1. `start` is called once; what follows may come in any order;
///  2. after `request(n)` it orders n trials, or fewer followed by `NoMoreTrials`;
///  3. `report` is called for every intermediate value of a run, in order, and for the first final one, or for every final
///     one of an advisor with `static constexpr bool hears_every_final = true`; `trial_ended` once per trial, after its last
///     `report`;
///  4. `next_order` is cancellable without losing an order; an order to kill a trial that has ended is harmless; while
///     10,000 ordered trials wait for a place, no further order is taken;
///  5. `stop` ends whatever it started, within the context's shutdown limit.
///
/// What an earlier manager's advisor had learnt is told between `start` and the first `request`, where there are members
/// for it: `replay(const TrialOutcome&, std::vector<double>)` for each trial that ended, in the order of their ids, with
/// the finite numbers among its intermediate results; `replay_unfinished(ParameterId, const Parameters&, RunId,
/// std::vector<double>)` for each that has not; `import_result(const ResultImported&)` for results from elsewhere, also of
/// a new experiment. An advisor without them begins anew after a resume, and may suggest again what was tried. With
/// `update_search_space(const SearchSpace&)` it can be given another space while it runs.
///
/// @tparam A  policy type; declares `using role = nni::role::advisor;`
template <class A>
concept Advisor =
    PlaysRole<A, role::advisor> && std::movable<A> &&
    requires(A& a, Context& ctx, const SearchSpace& space, const Objectives& goals, std::size_t count,
             const Metric& metric, const TrialOutcome& outcome) {
      { a.start(ctx, space, goals) } -> AwaitableOf<void>;
      { a.request(count) } -> AwaitableOf<void>;
      { a.report(metric) } -> AwaitableOf<void>;
      { a.trial_ended(outcome) } -> AwaitableOf<void>;
      { a.next_order() } -> AwaitableOf<Order>;
      { a.stop() } -> AwaitableOf<void>;
    };

/// True for an advisor with `static constexpr bool hears_every_final = true`: it is given every final value of a run, not
/// only the first.
/// @tparam A  models `Advisor`
template <class A>
inline constexpr bool hears_every_final = false;

template <class A>
  requires requires { A::hears_every_final; }
inline constexpr bool hears_every_final<A> = A::hears_every_final;  ///< the value of the member

/// True for an advisor with `static constexpr bool brings_commands = true`: it gives trials their commands, so an
/// experiment may leave out `trial_command`.
/// @tparam A  models `Advisor`
template <class A>
inline constexpr bool brings_commands = false;

template <class A>
  requires requires { A::brings_commands; }
inline constexpr bool brings_commands<A> = A::brings_commands;  ///< the value of the member

}  // namespace nni
