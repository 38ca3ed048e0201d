#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/detail/file_store.hpp>
#include <nni/datastore/detail/journal_file.hpp>
#include <nni/datastore/detail/journal_index.hpp>
#include <nni/datastore/detail/owner_lock.hpp>
#include <nni/datastore/detail/record_lane.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore::detail {

/// What the recorder and the reader of a journal have in common. Lines that the index names are in the file.
class JournalState {
 public:
  JournalState() = default;

  std::mutex mutex;  ///< of the index
  JournalIndex index;
  JournalFile file;
};

/// Reads trials of a journal.
class JournalReader {
 public:
  explicit JournalReader(std::shared_ptr<JournalState> state) : state_(std::move(state)), lines_(state_->file) {}

  /// Everything that a snapshot holds.
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
  OpenTrial trial_at(const TrialPlaces& places);
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
        reader_(state_),
        noted_(state_->file.synced()) {}

  void record(std::span<const StoreEvent> events, TimePoint now) override;
  void sync() override { state_->file.sync(); }

  /// Notes that everything is on the disk and this process has ended its work.
  void finish(TimePoint now);

  /// It ends soon by itself.
  void interrupt() noexcept {}

 private:
  bool is_known(const Metric& metric);

  OwnerLock lock_;  // let go last
  Owner self_;
  std::shared_ptr<JournalState> state_;
  JournalReader reader_;  // for values that come after their run
  std::uint64_t noted_;   // what the last line about a sync says
  bool has_session_ = false;
  std::string text_;
};

/// How the file of an experiment is opened.
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

/// The state of a `Journal` store, on the executor.
class JournalStore : public FileStore<JournalFiles> {
 public:
  using FileStore::FileStore;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/detail/impl/journal_store.ipp>
#endif
