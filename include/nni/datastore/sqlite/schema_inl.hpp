#pragma once

#include <string>

#include <nni/datastore/sqlite/columns.hpp>
#include <nni/datastore/sqlite/schema.hpp>
#include <nni/version.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

NNI_INLINE bool SqliteSchema::exists(Database& database) {
  const std::string file = database.file().string();
  if (database.has_table("nni_meta")) {
    const std::int64_t found = database.number("SELECT value FROM nni_meta WHERE key = 'schema'");
    if (found == version) return true;
    throw Error(Errc::store_corrupt,
                file + " has the schema version " + std::to_string(found) + ", and this program supports " +
                    std::to_string(version) + "; use the version of the program that wrote it");
  }
  if (database.number("SELECT count(*) FROM sqlite_master") == 0) return false;
  if (database.has_table("TrialJobEvent"))
    throw Error(
        Errc::store_corrupt,
        file +
            " was written by NNI's own manager, which keeps less than a resume needs; "
            "start an experiment with another id");
  throw Error(Errc::store_corrupt, file + " is the database of another program; choose another directory");
}

NNI_INLINE void SqliteSchema::create(Database& database) {
  database.run(R"sql(
    CREATE TABLE TrialJobEvent (timestamp integer, trialJobId text, event text, data text, logPath text,
                                sequenceId integer, message text, environmentId text);
    CREATE TABLE MetricData (timestamp integer, trialJobId text, parameterId text, type text, sequence integer,
                             data text);
    CREATE TABLE ExperimentProfile (params text, id text, execDuration integer, startTime integer, endTime integer,
                                    logDir text, nextSequenceId integer, revision integer);

    CREATE TABLE nni_meta (key text PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE nni_experiment (name text, seed integer, status text, message text, duration_ns integer);
    CREATE TABLE nni_sessions (number integer PRIMARY KEY, opened_at integer, closed_at integer, program text,
                               pid integer, host text, boot_id text);
    CREATE TABLE nni_trials (number integer PRIMARY KEY, parameter integer, ordered_at integer, event_row integer,
                             status text, attempts integer, final_value text, final_number real);
    CREATE TABLE nni_runs (trial integer, attempt integer, session integer, intended_at integer, placement text,
                           job text, started_at integer, url text, directory text, ended_at integer, ended text,
                           code integer, why text, message text, metrics_first integer, metrics_last integer, retries integer,
                           pause_ns integer, losses integer, tags text, PRIMARY KEY (trial, attempt)) WITHOUT ROWID;
    CREATE TABLE nni_imported (number integer PRIMARY KEY, parameters text, value real, history text,
                               after integer);
    CREATE TABLE nni_earlier_metrics (trial integer, attempt integer, position integer, timestamp integer, type text,
                                      sequence integer, data text, PRIMARY KEY (trial, attempt, position)) WITHOUT ROWID;
  )sql");
  Statement meta = database.prepare("INSERT INTO nni_meta VALUES (?, ?)");
  meta.text(1, "schema").integer(2, version).execute();
  const std::string writer =
      "nni " + std::to_string(NNI_VERSION_MAJOR) + "." + std::to_string(NNI_VERSION_MINOR) + "." +
      std::to_string(NNI_VERSION_PATCH);
  meta.text(1, "writer").text(2, writer).execute();
  create_indexes(database);
}

NNI_INLINE void SqliteSchema::add_missing_columns(Database& database) {
  for (const Table& table : {Table::trials(), Table::runs(), Table::experiment()}) table.add_missing_columns(database);
}

NNI_INLINE bool SqliteSchema::has_indexes(Database& database) { return database.has_index("TrialJobEvent_trialJobId"); }

NNI_INLINE void SqliteSchema::create_indexes(Database& database) {
  database.run(R"sql(
    CREATE INDEX IF NOT EXISTS TrialJobEvent_trialJobId ON TrialJobEvent (trialJobId);
    CREATE INDEX IF NOT EXISTS TrialJobEvent_event ON TrialJobEvent (event);
    CREATE INDEX IF NOT EXISTS MetricData_trialJobId ON MetricData (trialJobId);
    CREATE INDEX IF NOT EXISTS MetricData_type ON MetricData (type);
    CREATE INDEX IF NOT EXISTS ExperimentProfile_id ON ExperimentProfile (id);
  )sql");
}

NNI_INLINE void SqliteSchema::drop_indexes(Database& database) {
  // The one on profiles stays: it costs nothing.
  database.run(R"sql(
    DROP INDEX IF EXISTS TrialJobEvent_event;
    DROP INDEX IF EXISTS MetricData_trialJobId;
    DROP INDEX IF EXISTS MetricData_type;
    DROP INDEX IF EXISTS TrialJobEvent_trialJobId;
  )sql");
}

}  // namespace nni::datastore::detail

#endif
