#pragma once

#include <concepts>
#include <optional>

#include <nni/concepts/contract.hpp>
#include <nni/concepts/role_check.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_TUNER(Operation) \
  Operation(1, void, start, (const SearchSpace&, const Objectives&), , ) \
  Operation(5, void, update_search_space, (const SearchSpace&), , ) \
  Operation(3, std::optional<Parameters>, generate, (ParameterId), , ) \
  Operation(4, void, observe, (const TrialOutcome&), , )
// clang-format on

/// Suggests parameters and learns from results.
///
/// A tuner is synchronous and does no I/O, so it needs no Asio and can be driven by a plain loop
/// (nni/tuning/ask_tell.hpp). One that must wait for something models `Advisor` instead.
///
/// A model promises:
///  1. `start` is called once, before anything else, and may throw `ConfigError` for a space that it cannot search;
///  2. suggestion k is a function of the seed, k and the results observed so far: the same calls give the same
///     suggestions, whatever the time and the thread;
///  3. `generate` answers nothing when it has no more to suggest; it may have more after the next `observe`;
///  4. each finished trial is observed once; trials without a usable value are observed too (`succeeded()` is false);
///  5. after `update_search_space` suggestions come from the new space; results of the old one that still fit are kept;
///  6. a resumed experiment observes its history in the order of trial ids and goes on with the next unused k. Results
///     that were imported are observed too, under `imported_parameter`.
///
/// The space that `start` is given is the tuner's own: an `Experiment` and `tuning::AskTell` read it from
/// `const SearchSpace& search_space() const` (`BringsSearchSpace`), and a tuner without it does not compile there, alone
/// or inside an advisor (`WrapsTuner`). Only an advisor that says itself what to try may do without a space; it is given
/// an empty one, and every parameter fits that.
///
/// Further hooks (nni/concepts/hooks.hpp): `HasSeed` and `Reseedable`, `AdoptsUnfinished`; `tuning::PointTuner`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::tuner;`
/// @see nni::tuning::Random, nni::tuning::Tpe, docs/how-to/tuner.md
template <class Policy>
concept Tuner = PlaysRole<Policy, role::tuner> && std::movable<Policy> NNI_TUNER(NNI_AND_HAS);

}  // namespace nni
