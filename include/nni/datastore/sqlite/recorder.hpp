#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/commit_queue.hpp>
#include <nni/datastore/common/file_identity.hpp>
#include <nni/datastore/common/owner_lock.hpp>
#include <nni/datastore/sqlite/database.hpp>
#include <nni/datastore/sqlite/reader.hpp>
#include <nni/datastore/sqlite/write_ahead_log.hpp>
#include <nni/datastore/sqlite_options.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

/// Writes events into a store file.
///
/// Trials that have not ended are held in memory, so that recording reads nothing; a trial that several events of a batch
/// change is written once.
class SqliteRecorder final : public Recorder {
 public:
  /// Opens the file, or makes it. A file that is refused stays as it is.
  /// @param lock     of the experiment; held for as long as this object lives
  /// @param self     the process that records
  /// @param options  names the file layer, and how far the log may grow
  SqliteRecorder(const std::filesystem::path& file, OwnerLock lock, Owner self, const SqliteOptions& options);

  /// Returns a snapshot of the file, and loads the trials that have not ended.
  [[nodiscard]] ExperimentSnapshot restore();

  /// Writes a batch in one transaction.
  void record(std::span<const StoreEvent> events, TimePoint now) override;
  void sync() override;

  /// True when the log has grown so much that it should be moved into the file.
  [[nodiscard]] bool wants_tidying() const noexcept override;
  void tidy() override;
  void recover() override;

  /// Syncs, and leaves a plain file: indexes made, nothing in a log.
  /// @param now  wall time, for the row of this session
  void finish(TimePoint now);

  /// Makes `finish` skip what is optional. Any thread.
  void interrupt() noexcept { database_.interrupt(); }

 private:
  void take(const ProfileChanged& event);
  void take(const TrialOrdered& event);
  void take(const RunIntended& event);
  void take(const RunStarted& event);
  void take(const MetricReceived& event);
  void take(const RunEnded& event);
  void take(const ResultImported& event);

  void require_files() const;
  StoredTrial& held(TrialId trial);
  void change(StoredTrial& stored);
  void write_changes();
  void write_run(const StoredTrial& stored);
  void write_event(const StoredTrial& stored, TimePoint at, std::string_view event, std::string_view data);
  void set_values_aside(StoredTrial& stored);
  void keep_earlier(const Metric& metric);
  void begin_session(TimePoint now);

  OwnerLock lock_;  // released last
  Database database_;
  SqliteReader reader_;
  std::optional<WriteAheadLog> log_;
  std::mutex log_use_;  // a sync and a checkpoint that overlap could each miss that the other's sync has failed
  FileIdentity identity_;
  FileIdentity log_identity_;
  Owner self_;
  int log_pages_;
  bool half_recorded_ = false;  // the trials in memory are ahead of the file
  bool indexed_ = true;
  std::int64_t session_ = 0;  // 0: nothing was written yet
  std::int64_t revision_ = 0;
  std::int64_t profile_row_ = 0;  // of the last profile of this session; 0: none
  ProfileChanged profile_;
  std::string settings_;  // as they were last written
  std::uint64_t trials_ = 0;
  int checkpointed_at_ = 0;  // frames in the log when it was last moved
  std::unordered_map<std::uint64_t, StoredTrial> open_;
  std::vector<StoredTrial*> changed_;
  std::string scratch_;

  Statement begin_;
  Statement commit_;
  Statement insert_event_;
  Statement insert_metric_;
  Statement put_trial_;
  Statement put_run_;
};

}  // namespace nni::datastore::detail

#endif

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/recorder_inl.hpp>
#endif
