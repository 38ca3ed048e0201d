#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <nni/concepts/data_store.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore {

namespace detail {
class JournalStore;
}

/// Settings of the journal.
struct JournalOptions {
  std::filesystem::path directory = "nni-experiments";  ///< parent of the experiments' directories; made if missing
  bool read_only = false;                               ///< only look, also while another process owns the experiment
  std::shared_ptr<files::System> system = files::System::real();  ///< makes the calls; tests give another one
};

/// Keeps records in `<directory>/<experiment id>/db/nni.journal`, without any library.
///
/// The file is text to which lines are added and of which none is ever changed: each is one event, as JSON with named
/// members, behind a checksum (docs/formats/journal.md). It makes the same promises as `Sqlite`, but has
/// no tables that other programs could ask.
///
/// Appending queues; one call on the pool at a time writes what has gathered. `written` waits for that. Only when
/// somebody waits for `synced` is the file brought to the disk, which covers everything that was written so far.
///
/// When the disk is full or a call fails, nothing is lost and nothing is claimed: what was appended is kept in memory in
/// order, who waits goes on waiting, `on_trouble` is told why, and writing is tried again after 0.1 s, then after twice
/// as long, up to every 10 s. What a failed write has left is cut off first; what a failed sync may have lost is written
/// once more, from memory, and synced, before anything is called synced again. A file that does not read back as it was
/// written fails the store for good, and so does one that was removed or replaced. What was written and not synced is
/// held in memory as well; at 8 MiB it is synced unasked.
///
/// Opening reads the file through. A tail that a crash or a loss of power has torn is cut off behind the last whole
/// record, with a line in the log. The places of a trial's lines live in memory, 64 bytes for each finished trial;
/// trials and values are read from the file when they are asked for.
///
/// While it is open, a locked file `owner` in the experiment's directory keeps other processes out; it goes when
/// the store is closed, and the lock dies with the process.
class Journal {
 public:
  using role = role::data_store;

  /// @param options  where the records are
  explicit Journal(JournalOptions options = {});
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  /// The parent of the experiments' directories.
  [[nodiscard]] const std::filesystem::path& directory() const noexcept;

  /// Where the experiment `id` has its files, when that is not below `directory()`. Before `open`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id);

  /// Opens the experiment's file; makes it, with its directories, unless it is read-only.
  /// @param context  where the store works from now on; outlives it
  /// @param id       of the experiment
  /// @throws Error  `Errc::in_use` when another store owns it, and says which process; `Errc::already_exists` when the
  ///                experiment has its records in another kind of store; `Errc::store_corrupt` for a
  ///                file that is damaged, foreign or of another version, naming the line; `Errc::not_found` for one
  ///                that should be read and does not exist; `Errc::storage_failed` for everything that the file system
  ///                refuses
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

  /// Writes and syncs what was appended, and frees the file. Waits for no space: it tries once.
  /// @throws Error  when something could not be kept; the store is freed all the same
  [[nodiscard]] awaitable<void> close();

 private:
  StorePosition append_moved(std::vector<StoreEvent>& events);
  std::shared_ptr<detail::JournalStore> store_;
};
static_assert(DataStore<Journal>);

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/journal_inl.hpp>
#endif
