#pragma once

#include <filesystem>
#include <string>

#include <nni/core/time.hpp>

namespace nni::datastore::detail {

/// A process, as far as people and a restarted manager need to know it.
class Owner {
 public:
  Owner() = default;

  /// This process, now.
  [[nodiscard]] static Owner current();

  std::string host;
  std::string boot_id;  ///< changes with every start of the machine
  long long pid = 0;
  std::string program;
  TimePoint since{};  ///< when the process began
};

/// Makes this process the only one that writes an experiment.
///
/// A file `owner` in the experiment's directory is locked for as long as this object lives; the lock dies with the
/// process, whatever kills it. The file says who holds it, for the message that others get.
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
