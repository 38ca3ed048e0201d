#pragma once

#include <concepts>

#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/resources.hpp>

namespace nni {

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_SCHEDULER(Operation) \
  Operation(1, PlacementResult, place, (const ResourceRequest&, const ResourceSnapshot&), , ) \
  Operation(4, void, hold, (const Placement&), , ) \
  Operation(4, void, release, (const Placement&), , noexcept)
// clang-format on

/// Chooses the machine and the devices for one run.
///
/// A scheduler is a pure decision: it sees a snapshot, answers, and remembers only what it has handed out.
/// It performs no I/O, so `place` may be called as often as the experiment likes.
///
/// A model promises:
///  1. equal history and equal snapshot give an equal answer;
///  2. `Impossible` only when no later snapshot of the same hardware could help, otherwise `Wait`;
///  3. both refusals carry a reason with numbers that a user can act on;
///  4. a placement counts as taken from the moment it is returned, or told by `hold`, until `release`;
///  5. it names a machine of the snapshot (or none, where the platform chooses), and as many different devices of that
///     machine as the request asks for.
///
/// Hooks (nni/concepts/hooks.hpp): `AdvertisesAddress`, and the flag `hands_out_gpus`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::scheduler;`
/// @see nni::scheduling::Unlimited, nni::testing::check_scheduler, docs/how-to/scheduler.md
template <class Policy>
concept Scheduler = PlaysRole<Policy, role::scheduler> && std::movable<Policy> NNI_SCHEDULER(NNI_AND_HAS);

}  // namespace nni
