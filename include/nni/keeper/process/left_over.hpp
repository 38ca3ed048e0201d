#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>

namespace nni::keeper {

/// Returns false when a process that was found by the number and the start time of a run's process serves another
/// directory: that of the experiment from which this one was copied.
///
/// The variable NNI_OUTPUT_DIR decides, or the files that the process prints to: a program may replace its environment.
/// Without any evidence it is the run's own process, whose number was recorded in this directory.
///
/// @param pid     of the process
/// @param trials  parent of the directories of all runs
/// @param run     that recorded the process
[[nodiscard]] bool belongs_to_run(pid_t pid, const std::filesystem::path& trials, RunId run);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY && NNI_WITH_PROCESS
#include <nni/keeper/process/left_over_inl.hpp>
#endif
