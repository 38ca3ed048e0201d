#pragma once

#include <nni/keeper/process/left_over.hpp>

#if NNI_WITH_PROCESS

#include <system_error>

#include <nni/process/group.hpp>

namespace nni::keeper {

NNI_INLINE bool belongs_to_run(pid_t pid, const std::filesystem::path& trials, RunId run) {
  namespace fs = std::filesystem;
  // Compared as files, not as texts: the experiment may have been moved, or be reached by another path.
  const fs::path own = trials / to_string(run);
  std::error_code ignored;
  const fs::path given = process::environment_of(pid, "NNI_OUTPUT_DIR");
  if (!given.empty() && fs::equivalent(given, own, ignored)) return true;
  bool prints_elsewhere = false;
  for (const char* const name : {"1", "2"}) {
    const fs::path output = fs::read_symlink("/proc/" + std::to_string(pid) + "/fd/" + name, ignored);
    if (output.filename() != "trial.stdout" && output.filename() != "trial.stderr") continue;
    if (fs::equivalent(output.parent_path(), own, ignored)) return true;
    prints_elsewhere = true;
  }
  return !prints_elsewhere && (given.empty() || !fs::exists(given, ignored));
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
