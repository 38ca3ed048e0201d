#pragma once

#include <concepts>
#include <filesystem>
#include <string>

#include <nni/core/ids.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/system.hpp>

namespace nni {

/// A policy that keeps files of its own in the experiment's directory. It is told before it is opened or started.
template <class P>
concept PlacedPolicy = requires(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  { policy.set_experiment_directory(directory, id) } -> std::same_as<void>;
};

namespace detail {

/// Tells a policy where the experiment's files are, if it wants to know.
template <class P>
void place_policy(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  if constexpr (PlacedPolicy<P>) policy.set_experiment_directory(directory, id);
}

/// The parent directory of experiments that a data store was given, empty when it has none.
template <class Store>
std::filesystem::path root_of(const Store& store) {
  if constexpr (requires {
                  { store.directory() } -> std::convertible_to<std::filesystem::path>;
                })
    return store.directory();
  else
    return {};
}

/// Makes the experiment's directory, so that its name survives a loss of power.
/// @throws Error  one sentence that says which directory and what to do, also for one in which another user may put
///                links in the place of files
inline void make_directory(const std::filesystem::path& directory, files::System& system = *files::System::real()) {
  files::own_directory(system, directory);
}

}  // namespace detail

}  // namespace nni
