#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <nni/core/macros.hpp>
#include <nni/keeper/process/keeper_options.hpp>

namespace nni::keeper {

/// Finds the program that can be a keeper.
///
/// In this order: `given`; variable NNI_KEEPER; `nni-keeper` beside the executable of this process; `nni-keeper` in
/// PATH; this very program, if its main calls `run_if_asked`.
///
/// @param given   path from the options; empty: look further
/// @returns       a path that can be executed; nothing when there is none
/// @throws Error  `Errc::not_found` when `given` or NNI_KEEPER names something that cannot be executed
[[nodiscard]] std::optional<std::filesystem::path> find_keeper(const std::string& given);

/// Finds the program that trials call to report: this very program, if it is `nni-keeper` or its main calls `run_if_asked`;
/// otherwise what `find_keeper` finds.
/// @returns  an absolute path; nothing when there is none
[[nodiscard]] std::optional<std::filesystem::path> find_reporter();

/// What became of the start of a keeper.
enum class KeeperStart {
  ready,  ///< it listens
  busy,   ///< another keeper has the directory
  killed  ///< it was killed before it listened
};

/// Starts a keeper that is detached from this process, and waits until it listens. Blocks; any thread.
///
/// @param program  from `find_keeper`
/// @param options  directory, experiment, environment, platform
/// @throws Error   `Errc::spawn_failed` with what the keeper said
KeeperStart start_keeper(const std::filesystem::path& program, const KeeperOptions& options);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/manager/launch_inl.hpp>
#endif
