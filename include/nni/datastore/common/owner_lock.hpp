#pragma once

#include <filesystem>
#include <string>

#include <nni/core/time.hpp>

namespace nni::datastore::detail {

/// The identity of a process, for people and for a restarted manager.
class Owner {
 public:
  Owner() = default;

  /// Returns the identity of this process.
  [[nodiscard]] static Owner current();

  std::string host;
  std::string boot_id;  ///< changes with every start of the machine
  long long pid = 0;
  std::string program;
  TimePoint since{};  ///< when the process began
};

/// The lock of an experiment: this process is the only one that writes it.
///
/// A file `owner` in the experiment's directory is locked for as long as this object lives; the lock dies with the
/// process, whatever kills it. The file names the owner, for the error message of other processes.
class OwnerLock {
 public:
  OwnerLock() = default;

  /// @param directory  of the experiment; exists
  /// @throws Error  `Errc::in_use`, naming the owner; `Errc::storage_failed` when the file cannot be made or locked
  explicit OwnerLock(const std::filesystem::path& directory);
  OwnerLock(OwnerLock&& other) noexcept;
  OwnerLock& operator=(OwnerLock&& other) noexcept;
  ~OwnerLock();

 private:
  int file_ = -1;
  std::filesystem::path path_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/owner_lock_inl.hpp>
#endif
