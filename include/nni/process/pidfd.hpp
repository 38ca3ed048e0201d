#pragma once

#include <cerrno>

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace nni::process {

/// A descriptor for a process; it becomes readable when the process ends, and closes on exec.
/// @returns  -1 and `errno` where the kernel is too old for it, or there is no such process
[[nodiscard]] inline int open_pidfd(pid_t pid) noexcept {
#if defined(SYS_pidfd_open)
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

/// Sends `signal` to the process of the descriptor `file`; nobody else can have its id meanwhile.
/// @returns  0, or -1 and `errno`
inline int signal_pidfd(int file, int signal) noexcept {
#if defined(SYS_pidfd_send_signal)
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, file, signal, nullptr, 0));
#else
  (void)file;
  (void)signal;
  errno = ENOSYS;
  return -1;
#endif
}

}  // namespace nni::process
