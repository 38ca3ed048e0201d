#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <sys/types.h>

#include <nni/core/macros.hpp>

namespace nni::keeper {

/// The lock of an experiment's keeper: one process at a time looks after the trials of a directory.
///
/// The lock ends with its process, however that dies. The file also records for the next owner how the last one ended: it is
/// empty after an orderly end.
class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

  /// What the last owner left.
  enum class Before {
    orderly,  ///< nothing to clean up
    killed,   ///< it died in this boot; its trials may still run
    rebooted  ///< the machine was restarted since: nothing of it runs
  };

  /// Takes the lock.
  /// @param file  is created if necessary; its directory exists
  /// @throws Error  `Errc::in_use` with the id of the owner's process, or a system error
  Before acquire(const std::filesystem::path& file);

  /// Returns the process that has the lock of `file`, without taking it: 0 when it has not written its number, nothing
  /// when the lock is free or there is no such file.
  [[nodiscard]] static std::optional<pid_t> holder(const std::filesystem::path& file);

  /// Gives the lock back after an orderly end.
  void release() noexcept;

  /// True between `acquire` and `release`.
  [[nodiscard]] bool held() const noexcept { return file_ >= 0; }

 private:
  int file_ = -1;
};

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/wire/lock_inl.hpp>
#endif
