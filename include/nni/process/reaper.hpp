#pragma once

#include <functional>
#include <memory>

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>

#include <nni/core/macros.hpp>

namespace nni::process {

/// How a child ended.
struct Exit {
  /// How a process ended.
  enum class How {
    exited,     ///< by itself; `code` is its exit code
    signalled,  ///< `code` is the number of the signal
    unknown     ///< another part of the program waited for the child and took its status
  };

  pid_t pid = 0;          ///< the process
  How how = How::exited;  ///< what `code` means
  int code = 0;           ///< exit code, or number of the signal
};

/// Learns of the ends of children through one descriptor, however many there are.
///
/// The handler runs on the executor and is called before the child is reaped: until it returns, neither the process id
/// nor the id of its group can belong to anybody else, so it may signal what is left of the group.
class Reaper {
 public:
  /// Whose children are waited for.
  enum class Scope {
    everything,  ///< all children of this process, adopted orphans included; for programs that own their process.
                 ///< Blocks SIGCHLD in the calling thread, so construct it before there are others.
    watched      ///< only those given to `watch`; other children and signal handlers of the program stay untouched
  };
  /// Called once, when the process has ended.
  using Handler = std::function<void(const Exit&)>;

  /// @param executor  single-threaded
  /// @param scope     whose children are waited for
  /// @param handler   must not throw, nor destroy the reaper
  /// @throws Error    when the system refuses the descriptor
  Reaper(boost::asio::any_io_executor executor, Scope scope, Handler handler);
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  ~Reaper();

  /// Waits for this child as well; does nothing in scope `everything`.
  void watch(pid_t child);

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace nni::process

#if NNI_HEADER_ONLY
#include <nni/process/reaper_inl.hpp>
#endif
