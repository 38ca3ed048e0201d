#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/commit_queue.hpp>
#include <nni/datastore/common/file_identity.hpp>
#include <nni/datastore/common/file_store.hpp>
#include <nni/datastore/common/owner_lock.hpp>
#include <nni/datastore/journal/file.hpp>
#include <nni/datastore/journal/index.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore::detail {

/// The state that the recorder and the reader of a journal share. Lines that the index names are in the file.
class JournalState {
 public:
  JournalState() = default;

  /// Locks the index, for reading.
  /// @throws Error  `Errc::storage_failed` in the rare moment in which it names lines that are not in the file
  [[nodiscard]] std::unique_lock<std::mutex> look();

  /// Takes a line of the file into an index.
  static void take(JournalIndex& index, JournalLine& line, std::uint64_t offset);

  /// Rebuilds the index from what was committed. The mutex is locked.
  /// @throws Error  like `JournalFile::read_again`; the index is as it was
  void read_again();

  std::mutex mutex;  ///< of the index
  JournalIndex index;
  bool is_ahead = false;  ///< the index names lines that are not in the file
  JournalFile file;
};

/// Reads trials of a journal.
class JournalReader {
 public:
  explicit JournalReader(std::shared_ptr<JournalState> state) : state_(std::move(state)), lines_(state_->file) {}

  /// Returns a snapshot.
  [[nodiscard]] ExperimentSnapshot snapshot();
  [[nodiscard]] std::optional<TrialJobDetail> load(TrialId trial);
  [[nodiscard]] TrialPage page(const TrialQuery& query);
  [[nodiscard]] std::vector<Metric> metrics(TrialId trial);

  /// Reads are short; there is nothing to interrupt.
  void interrupt() noexcept {}

  /// All values of a trial, in the order of arrival.
  /// @param last  where the line of its last value begins; 0: none
  [[nodiscard]] std::vector<Metric> values(std::uint64_t last);

 private:
  TrialState trial_at(const TrialPlaces& places);
  template <class Event>
  Event event_at(std::uint64_t offset);

  std::shared_ptr<JournalState> state_;
  JournalLines lines_;
};

/// Appends events to a journal.
class JournalRecorder final : public Recorder {
 public:
  /// @param lock  of the experiment; held for as long as this object lives
  /// @param self  the process that records
  JournalRecorder(std::shared_ptr<JournalState> state, OwnerLock lock, Owner self)
      : lock_(std::move(lock)),
        self_(std::move(self)),
        state_(std::move(state)),
        identity_(state_->file.path()),
        reader_(state_),
        noted_(state_->file.synced()) {}

  /// Rewrites what the system could not sync, and may have dropped.
  ~JournalRecorder() override;

  void record(std::span<const StoreEvent> events, TimePoint now) override;
  void sync() override;

  /// True when much was committed without a sync: it is held in memory until then.
  [[nodiscard]] bool wants_tidying() const noexcept override { return state_->file.unsynced() > most_unsynced; }
  void tidy() override { sync(); }
  void recover() override;

  /// Notes that everything is on the disk and this process has ended its work.
  void finish(TimePoint now);

  /// It ends soon by itself.
  void interrupt() noexcept {}

 private:
  static constexpr std::uint64_t most_unsynced = 8 * 1024 * 1024;

  /// The known values of a run that has ended. A platform that redelivers does so with many values in a row.
  struct Past {
    RunId run;
    std::uint64_t last = 0;  ///< where the line of the trial's last value begins; 0: nothing was read
    SeenMetrics seen;
  };

  void look_up(RunId run, std::uint64_t last);
  void write(std::span<const StoreEvent> events, TimePoint now);

  OwnerLock lock_;  // released last
  Owner self_;
  std::shared_ptr<JournalState> state_;
  FileIdentity identity_;
  JournalReader reader_;  // for values that come after their run
  std::uint64_t noted_;   // what the last line about a sync says
  bool has_session_ = false;
  Past past_;
  std::string text_;
};

/// Opens the file of an experiment.
class JournalFiles {
 public:
  using Recorder = JournalRecorder;
  using Reader = JournalReader;

  JournalFiles(bool read_only, std::shared_ptr<files::System> system)
      : read_only_(read_only), system_(std::move(system)) {}

  /// @param home  directory of the experiment
  OpenedFiles<Recorder, Reader> open(const std::filesystem::path& home, const std::string& id) const;

 private:
  bool read_only_;
  std::shared_ptr<files::System> system_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/store_inl.hpp>
#endif
