#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <nni/concepts/data_store.hpp>
#include <nni/concepts/trouble.hpp>

namespace nni::datastore {

namespace detail {
template <class Files>
class FileStore;
}

/// The operations of the stores that keep an experiment in files: `Sqlite` and `Journal`.
///
/// A handle: calls in progress keep the state alive.
///
/// @tparam Files  how one kind of store opens, writes and reads its files
template <class Files>
class FileHandle {
 public:
  using role = role::data_store;

  /// Returns the parent of the experiments' directories.
  [[nodiscard]] const std::filesystem::path& directory() const noexcept;

  /// Sets where the experiment `id` has its files, when that is not below `directory()`. Call it before `open`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  /// Opens the experiment's file; creates it, with its directories, unless the store is read-only.
  /// @param context  where the store works from now on; outlives it
  /// @param id       of the experiment
  /// @throws Error  `Errc::in_use` when another store owns it, and says which process; `Errc::already_exists` when the
  ///                experiment has its records in another kind of store; `Errc::store_corrupt` for a file that is
  ///                damaged, foreign or of another version, naming the place; `Errc::not_found` for one that should be
  ///                read and does not exist; `Errc::storage_failed` for everything that the file system refuses
  [[nodiscard]] awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);

  /// Queues events. @throws Error  `Errc::closed` when it is not open, `Errc::unsupported` when it is read-only
  StorePosition append(std::span<const StoreEvent> events);
  /// As above, and moves the events out of the vector, which keeps its memory. A template, so that `append({})` is clear.
  template <std::same_as<std::vector<StoreEvent>> Events>
  StorePosition append(Events&& events) {
    return append_moved(events);
  }

  /// Sets the listener for write failures: called on the executor with a sentence for people when records cannot be
  /// written for now, and with an empty one on recovery.
  void on_trouble(TroubleListener listener);

  /// Stops retrying: makes one last attempt, then fails all waiters with the reason.
  void give_up();

  /// Suspends until everything up to a position survives a kill of this process.
  /// @throws Error  once the store has failed for good
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Suspends until everything up to a position survives a loss of power.
  /// @throws Error  once the store has failed for good
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Returns everything known of one trial; nothing for an unknown one.
  [[nodiscard]] awaitable<std::optional<TrialJobDetail>> load(TrialId trial);

  /// Returns a page of trials.
  [[nodiscard]] awaitable<TrialPage> page(TrialQuery query);

  /// Returns the values of one trial: attempt by attempt, in the order of arrival.
  [[nodiscard]] awaitable<std::vector<Metric>> metrics(TrialId trial);

  /// Writes and syncs what was appended, and frees the file. Does not wait for disk space; tries once.
  /// @throws Error  when something could not be kept; the store is freed all the same
  [[nodiscard]] awaitable<void> close();

 protected:
  explicit FileHandle(std::shared_ptr<detail::FileStore<Files>> store) noexcept : store_(std::move(store)) {}
  FileHandle(FileHandle&&) noexcept = default;
  FileHandle& operator=(FileHandle&&) noexcept = default;
  ~FileHandle() = default;

 private:
  StorePosition append_moved(std::vector<StoreEvent>& events);

  std::shared_ptr<detail::FileStore<Files>> store_;
};

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/file_handle_inl.hpp>
#endif
