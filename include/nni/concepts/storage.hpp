#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nni/async/context.hpp>
#include <nni/concepts/common.hpp>
#include <nni/concepts/contract.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// One entry of a directory of a storage.
class FileInfo {
 public:
  FileInfo() = default;

  std::string name;        ///< without its directory
  bool directory = false;  ///< it is a directory
  std::uint64_t size = 0;  ///< bytes; 0 for a directory
  TimePoint modified{};    ///< last change, by the clock of the storage
};

// The operations: promise, result, name, parameters, const, noexcept.
// clang-format off
#define NNI_STORAGE(Operation) \
  Operation(1, awaitable<void>, open, (Context&), , ) \
  Operation(1, awaitable<void>, upload, (std::filesystem::path, RemotePath), , ) \
  Operation(1, awaitable<void>, download, (RemotePath, std::filesystem::path), , ) \
  Operation(2, awaitable<std::string>, read, (RemotePath, std::uint64_t, std::size_t), , ) \
  Operation(3, awaitable<std::vector<FileInfo>>, list, (RemotePath), , ) \
  Operation(4, awaitable<void>, remove, (RemotePath), , ) \
  Operation(1, awaitable<void>, close, (), , )
// clang-format on

/// Keeps files that trials and the experiment share.
///
/// A model promises:
///  1. `upload` appears complete at its destination or not at all, for a file and for a directory;
///  2. `read` past the end returns what exists, an empty string at the end, and throws `Errc::not_found` for no file;
///  3. `list` answers in the order of names; a missing directory is `Errc::not_found`;
///  4. `remove` of something that does not exist succeeds;
///  5. a path that leaves the root (`..`) is refused with `Errc::storage_failed`;
///  6. `mount` says how a trial reaches the storage, without I/O; its type decides which services can be used.
///
/// Hooks (nni/concepts/hooks.hpp): `UsesExperimentDirectory`, `AdvertisesAddress`.
///
/// @tparam Policy  policy type; declares `using role = nni::role::storage;` and `mount_type`
/// @see nni::storage::LocalDirectory, docs/how-to/storage.md
template <class Policy>
concept Storage = PlaysRole<Policy, role::storage> && std::movable<Policy> && requires(Policy& storage, TrialId trial) {
  typename Policy::mount_type;
  { storage.mount(trial) } -> std::same_as<typename Policy::mount_type>;
} NNI_STORAGE(NNI_AND_HAS);

/// A storage that can tell when a file has grown; readers of others look from time to time.
///
/// A model promises, beside what `Storage` promises,
///  7. the first `changed` for a file begins to watch it and returns at once; each later one returns when the file has
///     changed since the last return, so that who reads after each return misses nothing;
///  8. a cancelled `changed` ends the watch of its file; `close` ends all, with `Errc::closed` for who waits;
///  9. a file that cannot be watched, although the storage can in general, is `Errc::unsupported`: its reader looks from
///     time to time.
template <class S>
concept WatchableStorage = Storage<S> && requires(S& s, RemotePath path) {
  { s.changed(path) } -> AwaitableOf<void>;
};

}  // namespace nni
