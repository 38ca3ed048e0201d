#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/trial_state.hpp>
#include <nni/datastore/sqlite/database.hpp>

namespace nni::datastore::detail {

/// A trial and where its rows are.
class StoredTrial {
 public:
  StoredTrial() = default;

  TrialState state;
  std::string id;                  ///< text form
  std::int64_t event_row = 0;      ///< of its first event, which has its parameters
  std::int64_t session = 0;        ///< in which the current attempt was intended
  std::int64_t metrics_first = 0;  ///< row of the current attempt's first value; 0: none
  std::int64_t metrics_last = 0;
  bool changed = false;  ///< since it was last written
};

/// Returns the record text of a trial: what NNI's clients find in the first event (docs/formats/trial-channel.md).
[[nodiscard]] std::string parameter_record(ParameterId id, const Parameters& parameters);

/// The inverse; it also reads records that something else has spelled differently.
/// @throws Error  `Errc::store_corrupt`
[[nodiscard]] Parameters parameters_of_record(std::string_view record);

/// The text inside a JSON string.
/// @throws Error  `Errc::store_corrupt`
[[nodiscard]] std::string json_string_content(std::string_view text);

/// Reads a store file through one connection.
class SqliteReader {
 public:
  /// @param database  outlives this reader; has a schema that is understood
  explicit SqliteReader(Database& database);

  /// Returns a snapshot.
  /// @param open  receives the trials that have not ended, when not null
  [[nodiscard]] ExperimentSnapshot snapshot(std::vector<StoredTrial>* open = nullptr);

  [[nodiscard]] std::optional<TrialJobDetail> load(TrialId trial);
  [[nodiscard]] TrialPage page(const TrialQuery& query);
  [[nodiscard]] std::vector<Metric> metrics(TrialId trial);

  /// Returns a trial with its rows and the values of its current attempt.
  [[nodiscard]] std::optional<StoredTrial> stored(TrialId trial);

 private:
  /// @param trials  a query of trials up to its condition
  SqliteReader(Database& database, const std::string& trials);

  std::optional<StoredTrial> row_of(TrialId trial);
  TrialPage best(const TrialQuery& query);
  void add_histories(TrialPage& page, const std::vector<StoredTrial>& rows);
  ProfileChanged profile();
  std::vector<ResultImported> imported();
  std::vector<Metric> current_metrics(const StoredTrial& stored);
  std::vector<TrialId> best_trials(const TrialQuery& query);

  Database& database_;
  Statement one_trial_;
  Statement page_;
  Statement page_in_state_;
  Statement current_metrics_;
  Statement earlier_metrics_;
  Statement values_between_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/reader_inl.hpp>
#endif
