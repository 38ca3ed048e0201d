#pragma once

#include <cstdint>

#include <nni/datastore/sqlite/database.hpp>

namespace nni::datastore::detail {

/// The tables of a store file.
///
/// Three belong to NNI: its clients and its users' scripts read them by name and by the order of their columns
/// (NNI 3.0, `sqlDatabase.ts`). Ours are:
///
///  - `nni_meta`             the version of this schema, and the settings of the experiment for a resume
///  - `nni_experiment`       one row: what `ExperimentProfile` has no column for
///  - `nni_sessions`         each opening of the store that wrote something: the process, and the boot of its machine
///  - `nni_trials`           the order log: one row per trial in the order of creation, with its state and result.
///                           `number` is `TrialJobEvent.sequenceId` + 1, `event_row` the row there with its parameters
///  - `nni_runs`             one row per attempt, with the session in which it was intended. The rows of its values
///                           in `MetricData` lie between `metrics_first` and `metrics_last`: that replaces an index,
///                           and their `sequence` distinguishes a second delivery from a new value
///  - `nni_imported`         results from elsewhere that the advisor has learned from
///  - `nni_earlier_metrics`  values of attempts before the last one, which NNI's view of a trial does not show
class SqliteSchema {
 public:
  static constexpr std::int64_t version = 3;

  /// NNI's indexes cost more than everything else together once trial ids no longer fit into a few pages, so they
  /// are dropped when an experiment outgrows this number of trials, and created again when it is closed.
  static constexpr std::uint64_t indexed_trials = 2'000;

  /// True when the file holds a store that this version understands, false when it is empty.
  /// @throws Error  `Errc::store_corrupt` for everything else, with what to do
  [[nodiscard]] static bool exists(Database& database);

  /// Creates all tables and indexes, with the columns that version 3 began with.
  static void create(Database& database);

  /// Adds the columns that the field lists have gained since (common/fields.hpp).
  static void add_missing_columns(Database& database);

  /// True when NNI's indexes are there.
  [[nodiscard]] static bool has_indexes(Database& database);
  static void create_indexes(Database& database);
  static void drop_indexes(Database& database);
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/schema_inl.hpp>
#endif
