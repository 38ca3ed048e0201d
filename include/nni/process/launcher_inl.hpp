#pragma once

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
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

/// Opens a file that takes the output of a process, in place of whatever has its name. System calls only.
/// @param null  stands for /dev/null
/// @returns     a descriptor, `null` itself for /dev/null; or the negated `errno`
[[nodiscard]] NNI_INLINE int open_output(const char* path, int null) noexcept {
  return std::strcmp(path, "/dev/null") == 0 ? null : files::make_own(path);
}

/// The files that take the output of a process which this one has not started yet.
class Outputs {
 public:
  Outputs(const LaunchSpec& spec, int null)
      : null_(null), output_(open_output(spec.standard_output, null)), error_(open_output(spec.standard_error, null)) {}
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs() {
    for (const int file : {output_, error_})
      if (file >= 0 && file != null_) ::close(file);
  }

  int output() const noexcept { return output_; }
  int error() const noexcept { return error_; }

 private:
  int null_;
  int output_;
  int error_;
};

/// The limit on open files before it was raised; no limit at all where it was not.
NNI_INLINE rlimit& limit_to_give_back() noexcept {
  static rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  return limit;
}

/// In a child that shares the memory of its parent: system calls only. Returns an `errno` when the program cannot run.
[[gnu::noinline]] NNI_INLINE int become(const LaunchSpec& spec, int null, const rlimit& files) {
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGHUP, SIGPIPE, SIGTERM}) ::sigaction(number, &usual, nullptr);
  if (::setpgid(0, 0) != 0 || ::dup2(null, STDIN_FILENO) < 0) return errno;
  const int output = open_output(spec.standard_output, null);
  if (output < 0) return -output;
  if (::dup2(output, STDOUT_FILENO) < 0) return errno;
  const int error = open_output(spec.standard_error, null);
  if (error < 0) return -error;
  if (::dup2(error, STDERR_FILENO) < 0) return errno;
  if (spec.directory && ::chdir(spec.directory) != 0) return errno;
#if defined(SYS_close_range)
  ::syscall(SYS_close_range, STDERR_FILENO + 1U, ~0U, 0);  // where it does not exist, close-on-exec has to do
#endif
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (files.rlim_cur != RLIM_INFINITY) ::setrlimit(RLIMIT_NOFILE, &files);
  ::execve(spec.program, spec.arguments, spec.environment);
  return errno;
}

NNI_INLINE std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace detail

NNI_INLINE Launcher::Launcher(Surroundings surroundings)
    : surroundings_(surroundings), null_(files::open_any("/dev/null", O_RDWR)) {
  if (null_ < 0) throw Error(files::error_of(null_), "/dev/null cannot be opened");
  ::posix_spawnattr_init(&attributes_);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  // Signals that this process ignores would stay ignored in the child: trials must receive SIGINT and SIGPIPE.
  ::posix_spawnattr_setsigdefault(&attributes_, &all);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setpgroup(&attributes_, 0);
  ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

NNI_INLINE Launcher::~Launcher() {
  ::posix_spawnattr_destroy(&attributes_);
  ::close(null_);
}

NNI_INLINE Launched Launcher::launch(const LaunchSpec& spec) {
  Launched result;
  const StartClock clock;
  if (surroundings_ == Surroundings::own)
    result.error = fork_and_execute(spec, result.process.pid);
  else
    result.error = spawn(spec, result.process.pid);
  if (result.error == 0) result.process.start_ticks = clock.ticks_of(result.process.pid);
  return result;
}

NNI_INLINE int Launcher::spawn(const LaunchSpec& spec, pid_t& child) {
  const detail::Outputs outputs(spec, null_);
  if (outputs.output() < 0) return -outputs.output();
  if (outputs.error() < 0) return -outputs.error();
  detail::FileActions actions;
  int error = ::posix_spawn_file_actions_adddup2(actions.get(), null_, STDIN_FILENO);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(actions.get(), outputs.output(), STDOUT_FILENO);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(actions.get(), outputs.error(), STDERR_FILENO);
  if (error == 0 && spec.directory) error = ::posix_spawn_file_actions_addchdir_np(actions.get(), spec.directory);
  // Libraries open files without close-on-exec; a trial that holds a port or a lock of ours outlives its owner.
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(actions.get(), STDERR_FILENO + 1);
  if (error != 0) return error;
  return ::posix_spawn(&child, spec.program, actions.get(), &attributes_, spec.arguments, spec.environment);
}

// The child borrows this thread's memory until it executes its program, so what it writes here is read by the parent.
NNI_INLINE int Launcher::fork_and_execute(const LaunchSpec& spec, pid_t& child) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler may run in the child
  const rlimit files = detail::limit_to_give_back();
  volatile int error = 0;
  const pid_t id = ::vfork();
  if (id == 0) {
    error = detail::become(spec, null_, files);
    ::_exit(127);
  }
  if (id < 0) error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (id > 0 && error != 0) {
    int status = 0;
    while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
    }
  }
  child = id;
  return error;
}

NNI_INLINE void raise_file_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlimit before = limit;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) detail::limit_to_give_back() = before;
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
  // Braces around a shell line make it a list of one argument, which is easily done and hard to see.
  const std::string hint =
      name.find(' ') == std::string::npos
          ? ""
          : "; it is one argument of a list, which nothing splits at blanks: list its words, or give a shell line as a "
            "text";
  if (name.find('/') == std::string::npos) return "the command \"" + name + "\" was not found in PATH" + hint;
  const fs::path program = spec.directory ? fs::path(spec.directory) / name : fs::path(name);
  if (!fs::exists(program, ignored)) return "the program " + program.string() + " does not exist" + hint;
  if (fs::is_directory(program, ignored)) return "the program " + program.string() + " is a directory";
  if (::access(program.c_str(), X_OK) != 0)
    return "the program " + program.string() + " may not be executed: " + detail::errno_text(errno);
  if (error == ENOEXEC)
    return "the program " + program.string() +
           " is in no format that this machine can run; a script needs a first line such as #!/bin/sh";
  for (const char* output : {spec.standard_output, spec.standard_error}) {
    const fs::path folder = fs::path(output).parent_path();
    if (!fs::is_directory(folder, ignored)) return "the output directory " + folder.string() + " does not exist";
    if (fs::is_directory(output, ignored))
      return "the output file " + std::string(output) + " cannot be made: it is a directory; move it away";
    if (::access(folder.c_str(), W_OK) != 0)
      return "the output directory " + folder.string() + " may not be written: " + detail::errno_text(errno);
  }
  if (error == ENOENT) return "the interpreter or loader that " + program.string() + " names does not exist";
  return "the program " + program.string() + " could not be started: " + reason;
}

}  // namespace nni::process
