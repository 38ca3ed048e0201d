#pragma once

#include <string>
#include <vector>

#include <spawn.h>
#include <sys/types.h>

#include <nni/core/macros.hpp>
#include <nni/process/identity.hpp>

namespace nni::process {

/// How to start a process. All pointers belong to the caller.
struct LaunchSpec {
  const char* program = nullptr;              ///< path; one with a slash that is not absolute counts from `directory`
  char* const* arguments = nullptr;           ///< null-terminated, the name of the program first
  char* const* environment = nullptr;         ///< null-terminated `NAME=value`
  const char* directory = nullptr;            ///< where it starts; null: where this process is
  const char* standard_output = "/dev/null";  ///< absolute path of a file that is made, in place of what had the name
  const char* standard_error = "/dev/null";   ///< likewise
};

/// What became of a launch.
class Launched {
 public:
  Launched() = default;

  /// True when the process was started.
  [[nodiscard]] bool succeeded() const noexcept { return error == 0; }

  Identity process;  ///< who it is; only when it was started
  int error = 0;     ///< `errno` of what failed, see `explain`
};

/// Starts processes at a cost that does not grow with the memory of this process.
///
/// Each becomes the leader of a process group of its own, with default signal handling, nothing blocked, standard
/// input from /dev/null, and no other open file of this process. No shell is involved. The caller waits for the
/// children (see `Reaper`); one launcher is used by one thread at a time.
class Launcher {
 public:
  /// How much is known of the process that launches.
  enum class Surroundings {
    any,  ///< nothing: `posix_spawn`, which copes with every signal handler of the program
    own   ///< it is ours, handles no signal but SIGTERM, and ignores none but SIGINT, SIGHUP and SIGPIPE: `vfork`,
          ///< which saves a twentieth of the processor time of a short trial
  };

  /// @throws Error  when /dev/null cannot be opened
  explicit Launcher(Surroundings surroundings = Surroundings::any);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  /// Starts a process; returns when its program runs, or could not be run.
  [[nodiscard]] Launched launch(const LaunchSpec& spec);

 private:
  int spawn(const LaunchSpec& spec, pid_t& child);
  int fork_and_execute(const LaunchSpec& spec, pid_t& child);

  Surroundings surroundings_;
  posix_spawnattr_t attributes_;
  int null_ = -1;
};

/// Lets this process open as many files as the system permits. Programs that a `Launcher` in surroundings of its own
/// starts get the limit back that was there before: some of them look at every number that a file could have.
/// For the beginning of a program that owns its process.
void raise_file_limit() noexcept;

/// Finds a program as a shell would.
///
/// @param name  a name to look for in `path`, or anything with a slash, which is returned as it is
/// @param path  directories separated by colons, as in `PATH`
/// @returns     a path; `name` itself when nothing is found, so that the launch fails with a reason
[[nodiscard]] std::string find_program(const std::string& name, const std::string& path);

/// One sentence for people about a launch that failed: which file or directory is to blame, and why.
/// @param spec   what was to be started
/// @param error  the `errno` that it ended with
[[nodiscard]] std::string explain(const LaunchSpec& spec, int error);

}  // namespace nni::process

#if NNI_HEADER_ONLY
#include <nni/process/launcher_inl.hpp>
#endif
