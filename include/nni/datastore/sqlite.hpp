#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nni/concepts/data_store.hpp>
#include <nni/datastore/sqlite_options.hpp>

namespace nni::datastore {

namespace detail {
class SqliteStore;
}

/// Keeps records in `<directory>/<experiment id>/db/nni.sqlite`.
///
/// NNI's three tables stand in it as NNI's clients and its users' scripts read them (NNI 3.0);
/// what is ours stands in tables of the prefix `nni_`. A trial that was tried again is seen through its last
/// attempt; earlier values are kept apart.
///
/// Appending queues; one call on the pool at a time writes what has gathered, in one transaction, into SQLite's
/// write-ahead log. `written` waits for that commit. Only when somebody waits for `synced` is the log brought to the
/// disk, which covers all commits so far.
///
/// When the disk is full or a call fails, nothing is lost and nothing is claimed: what was appended is kept in memory in
/// order, who waits goes on waiting, `on_trouble` is told why, and writing is tried again after 0.1 s, then after twice
/// as long, up to every 10 s. After a failed sync the log is read back, checked, written once more and synced, since the
/// system may have dropped what it could not write; only then anything is called synced. A log that does not read back
/// as it was written fails the store for good, and so does a file that was removed or replaced.
///
/// While it is open, a locked file `owner` in the experiment's directory keeps other processes out; it goes when
/// the store is closed, and the lock dies with the process. A closed store is one plain file without a log, and it
/// has NNI's indexes, which a store of more than 2,000 trials does without while it is written.
class Sqlite {
 public:
  using role = role::data_store;

  /// @param options  where the records are
  NNI_NEEDS_SQLITE(explicit Sqlite(SqliteOptions options = {}));
  Sqlite(Sqlite&&) noexcept;
  Sqlite& operator=(Sqlite&&) noexcept;
  ~Sqlite();

  /// The parent of the experiments' directories.
  [[nodiscard]] const std::filesystem::path& directory() const noexcept;

  /// Where the experiment `id` has its files, when that is not below `directory()`. Before `open`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  /// Opens the experiment's file; makes it, with its directories, unless it is read-only.
  /// @param context  where the store works from now on; outlives it
  /// @param id       of the experiment
  /// @throws Error  `Errc::in_use` when another store owns it, and says which process; `Errc::already_exists` when the
  ///                experiment has its records in another kind of store; `Errc::store_corrupt` for a
  ///                file that this version does not understand; `Errc::not_found` for one that should be read and does
  ///                not exist; `Errc::storage_failed` for everything that the file system refuses
  [[nodiscard]] awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);

  /// Queues events. @throws Error  `Errc::closed` when it is not open, `Errc::unsupported` when it is read-only
  StorePosition append(std::span<const StoreEvent> events);
  /// As above, and moves the events out of the vector, which keeps its memory. A template, so that `append({})` is clear.
  template <std::same_as<std::vector<StoreEvent>> Events>
  StorePosition append(Events&& events) {
    return append_moved(events);
  }

  /// Who is told when records cannot be kept for now, with a sentence for people, and when that is over, with an empty
  /// one. Called on the executor.
  void on_trouble(TroubleListener listener);

  /// What cannot be written now is not waited for any longer: one more attempt, and who waits is thrown the reason.
  void give_up();

  /// Suspends until everything up to a position survives a kill of this process.
  /// @throws Error  once the store has failed for good
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Suspends until everything up to a position survives a loss of power.
  /// @throws Error  once the store has failed for good
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Everything known of one trial; nothing for an unknown one.
  [[nodiscard]] awaitable<std::optional<TrialJobDetail>> load(TrialId trial);

  /// A page of trials.
  [[nodiscard]] awaitable<TrialPage> page(TrialQuery query);

  /// The values of one trial: attempt by attempt, in the order of arrival.
  [[nodiscard]] awaitable<std::vector<Metric>> metrics(TrialId trial);

  /// Writes and syncs what was appended, makes the file plain, and frees it. About 6 microseconds per trial in a
  /// store of more than 2,000, for its indexes.
  /// Waits for no space: it tries once.
  /// @throws Error  when something could not be kept; the store is freed all the same
  [[nodiscard]] awaitable<void> close();

 private:
  StorePosition append_moved(std::vector<StoreEvent>& events);
  std::shared_ptr<detail::SqliteStore> store_;
};
static_assert(DataStore<Sqlite>);

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite_inl.hpp>
#endif
