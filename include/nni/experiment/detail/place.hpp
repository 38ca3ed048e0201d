#pragma once

#include <filesystem>

#include <nni/concepts/hooks.hpp>
#include <nni/core/ids.hpp>
#include <nni/files/directory.hpp>
#include <nni/files/system.hpp>

namespace nni {

namespace detail {

/// Gives a policy that keeps files the directory of the experiment.
template <class P>
void assign_directory(P& policy, const std::filesystem::path& directory, const ExperimentId& id) {
  if constexpr (UsesExperimentDirectory<P>) policy.set_experiment_directory(directory, id);
}

/// The parent directory of experiments that a data store was given, empty when it has none.
template <class Store>
std::filesystem::path root_of(const Store& store) {
  if constexpr (HasDirectory<Store>)
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
