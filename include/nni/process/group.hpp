#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/process/identity.hpp>

namespace nni::process {

/// Sends a signal to all members of a process group.
/// @returns  false when it has no members, or none that may be signalled
bool signal_group(pid_t group, int signal) noexcept;

/// All living descendants of a process, itself excluded. Whoever leaves the tree by losing its parent is not found.
[[nodiscard]] std::vector<Identity> descendants(pid_t ancestor);

/// Kills processes at once (SIGKILL) together with all their living descendants.
/// @param processes  those that ended meanwhile are skipped, even if their ids are used again
void kill_now(std::span<const Identity> processes);

/// Kills processes like `kill_now`, and waits until they are gone. Blocks; they need not be children.
/// @param limit  longest wait; a process that the kernel cannot end sooner is left running
void kill_and_wait(std::span<const Identity> processes, Duration limit);

/// A process and the value of one of its variables.
struct ProcessWithVariable {
  Identity process;   ///< who it is
  std::string value;  ///< of the variable that was looked for
};

/// Living processes that were started with a variable `name` whose value starts with `value_start`, this one excluded.
///
/// Finds what lost its parent or its group. Processes of other users stay invisible.
[[nodiscard]] std::vector<ProcessWithVariable> processes_with_variable(
    std::string_view name, std::string_view value_start);

/// The value of the variable `name` in the environment that the process `pid` was started with; empty when there is
/// none.
[[nodiscard]] std::string environment_of(pid_t pid, std::string_view name);

/// Living children of the calling process, adopted ones included.
/// @param wanted  asked first, and cheaper than to look one up; empty: all are wanted
[[nodiscard]] std::vector<Identity> own_children(const std::function<bool(pid_t)>& wanted = {});

}  // namespace nni::process

#if NNI_HEADER_ONLY
#include <nni/process/group_inl.hpp>
#endif
