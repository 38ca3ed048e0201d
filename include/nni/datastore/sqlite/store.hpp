#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/file_store.hpp>
#include <nni/datastore/sqlite/database.hpp>
#include <nni/datastore/sqlite/reader.hpp>
#include <nni/datastore/sqlite/recorder.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

/// A connection for reading, separate from the one that writes: a long read delays no commit, and can be interrupted.
class SqliteReadConnection {
 public:
  SqliteReadConnection(const std::filesystem::path& file, const std::string& layer);

  [[nodiscard]] ExperimentSnapshot snapshot() { return reader_.snapshot(); }
  [[nodiscard]] std::optional<TrialJobDetail> load(TrialId trial) { return reader_.load(trial); }
  [[nodiscard]] TrialPage page(const TrialQuery& query) { return reader_.page(query); }
  [[nodiscard]] std::vector<Metric> metrics(TrialId trial) { return reader_.metrics(trial); }

  /// Interrupts the read in progress. Any thread.
  void interrupt() noexcept { database_.interrupt(); }

 private:
  Database database_;
  SqliteReader reader_;
};

/// Opens the file of an experiment.
class SqliteFiles {
 public:
  using Recorder = SqliteRecorder;
  using Reader = SqliteReadConnection;

  explicit SqliteFiles(SqliteOptions options) : options_(std::move(options)) {}

  /// @param home  directory of the experiment
  OpenedFiles<Recorder, Reader> open(const std::filesystem::path& home, const std::string& id) const;

 private:
  SqliteOptions options_;
};

}  // namespace nni::datastore::detail

#endif

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/store_inl.hpp>
#endif
