#pragma once

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nni/core/error.hpp>
#include <nni/process/launcher.hpp>

namespace nni::process {

namespace detail {

/// The file actions of one launch.
class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  posix_spawn_file_actions_t* get() noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

NNI_INLINE std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace detail

NNI_INLINE Launcher::Launcher() {
  ::posix_spawnattr_init(&attributes_);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  // Signals that this process ignores would stay ignored in the child: trials must hear SIGINT and SIGPIPE.
  ::posix_spawnattr_setsigdefault(&attributes_, &all);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setpgroup(&attributes_, 0);
  ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

NNI_INLINE Launcher::~Launcher() { ::posix_spawnattr_destroy(&attributes_); }

NNI_INLINE Launched Launcher::launch(const LaunchSpec& spec) {
  constexpr int write_flags = O_WRONLY | O_CREAT | O_TRUNC;
  detail::FileActions actions;
  int error = ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (error == 0)
    error = ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, spec.standard_output, write_flags, 0666);
  if (error == 0)
    error = ::posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, spec.standard_error, write_flags, 0666);
  if (error == 0 && spec.directory) error = ::posix_spawn_file_actions_addchdir_np(actions.get(), spec.directory);
  // Libraries open files without close-on-exec; a trial that holds a port or a lock of ours outlives its owner.
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(actions.get(), STDERR_FILENO + 1);

  Launched result;
  const StartClock clock;
  if (error == 0)
    error =
        ::posix_spawn(&result.process.pid, spec.program, actions.get(), &attributes_, spec.arguments, spec.environment);
  result.error = error;
  if (error == 0) result.process.start_ticks = clock.ticks_of(result.process.pid);
  return result;
}

NNI_INLINE std::string find_program(const std::string& name, const std::string& path) {
  if (name.empty() || name.find('/') != std::string::npos) return name;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t colon = std::min(path.find(':', from), path.size());
    const std::string directory = colon == from ? std::string(".") : path.substr(from, colon - from);
    const std::string candidate = directory + "/" + name;
    struct stat info{};
    if (::access(candidate.c_str(), X_OK) == 0 && ::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      return candidate;
    from = colon + 1;
  }
  return name;
}

NNI_INLINE std::string explain(const LaunchSpec& spec, int error) {
  namespace fs = std::filesystem;
  const std::string reason = detail::errno_text(error);
  std::error_code ignored;
  if (spec.directory && !fs::is_directory(spec.directory, ignored))
    return "the working directory " + std::string(spec.directory) + " does not exist or is no directory";
  if (spec.directory && ::access(spec.directory, X_OK) != 0)
    return "the working directory " + std::string(spec.directory) + " may not be entered: " + detail::errno_text(errno);
  if (error == EAGAIN || error == ENOMEM)
    return "the system has no room for another process (" + reason +
           "); lower the concurrency or raise the limit on processes";
  if (error == EMFILE || error == ENFILE)
    return "too many open files (" + reason + "); raise the limit on open files (ulimit -n)";
  if (error == E2BIG) return "the arguments and the environment of the command are too long (" + reason + ")";

  const std::string name = spec.program ? spec.program : "";
  if (name.find('/') == std::string::npos) return "the command \"" + name + "\" was not found in PATH";
  const fs::path program = spec.directory ? fs::path(spec.directory) / name : fs::path(name);
  if (!fs::exists(program, ignored)) return "the program " + program.string() + " does not exist";
  if (fs::is_directory(program, ignored)) return "the program " + program.string() + " is a directory";
  if (::access(program.c_str(), X_OK) != 0)
    return "the program " + program.string() + " may not be executed: " + detail::errno_text(errno);
  if (error == ENOEXEC)
    return "the program " + program.string() +
           " is in no format that this machine can run; a script needs a first line such as #!/bin/sh";
  for (const char* output : {spec.standard_output, spec.standard_error}) {
    const fs::path folder = fs::path(output).parent_path();
    if (!fs::is_directory(folder, ignored)) return "the output directory " + folder.string() + " does not exist";
    if (::access(folder.c_str(), W_OK) != 0)
      return "the output directory " + folder.string() + " may not be written: " + detail::errno_text(errno);
  }
  if (error == ENOENT) return "the interpreter or loader that " + program.string() + " names does not exist";
  return "the program " + program.string() + " could not be started: " + reason;
}

}  // namespace nni::process
