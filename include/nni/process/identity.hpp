#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>

namespace nni::process {

/// Names one process for good: process ids are reused within seconds, a pair of id and start time within a boot is not.
class Identity {
 public:
  Identity() = default;
  /// @param process  its number
  /// @param ticks  its start, as the kernel counts
  Identity(pid_t process, std::uint64_t ticks) : pid(process), start_ticks(ticks) {}

  friend auto operator<=>(const Identity&, const Identity&) = default;

  pid_t pid = 0;                  ///< number of the process; 0: none
  std::uint64_t start_ticks = 0;  ///< clock ticks between boot and its start: field 22 of /proc/PID/stat
};

/// The id that the kernel chose for this boot; empty where it cannot be read.
[[nodiscard]] const std::string& boot_id();

/// How long ago a process of this boot was started, to a clock tick; no clock that is set changes it.
[[nodiscard]] std::chrono::milliseconds age_of(const Identity& process);

/// Looks a process up.
/// @returns  nothing when there is no such process, or when it is a zombie
[[nodiscard]] std::optional<Identity> identify(pid_t pid);

/// Returns true while this very process runs; a zombie does not. Where the kernel refuses to say which process has the
/// number, any process that has it counts.
[[nodiscard]] bool is_alive(const Identity& process);

/// `boot_id:pid:start_ticks`, the job id of a local run.
[[nodiscard]] JobId to_job_id(const Identity& process);

/// What a job id of a local run says; nothing for any other text.
struct LocalJob {
  std::string boot;  ///< the boot of the machine in which it ran
  Identity process;  ///< who it is
};
/// The inverse of `to_job_id`; nothing for a text that is no such id.
[[nodiscard]] std::optional<LocalJob> parse_job_id(const JobId& job);

/// Tells the start time of a child without reading /proc, which costs as much as a tenth of a spawn.
///
/// The kernel stamps a process with the clock that is read here, before and after the spawn. When both readings lie in
/// the same tick, that tick is the stamp; otherwise (one spawn in twenty or so) /proc decides.
class StartClock {
 public:
  /// Reads the clock; construct it right before the spawn.
  StartClock() noexcept;

  /// The start time of a child of this process that was spawned since and is not yet waited for, in clock ticks.
  [[nodiscard]] std::uint64_t ticks_of(pid_t child) const;

 private:
  std::uint64_t before_;
};

}  // namespace nni::process

#if NNI_HEADER_ONLY
#include <nni/process/identity_inl.hpp>
#endif
