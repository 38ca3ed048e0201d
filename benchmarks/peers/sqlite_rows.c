/*
 * The peer of `sqlite_limit`: the rows that the store keeps for empty trials, written by a plain program.
 *
 *   sqlite_rows FILE TRIALS COMMITS full|normal
 *
 * Six rows per trial (three events, a metric, a trial, a run) with the texts and lengths that ours have, spread evenly over
 * COMMITS transactions in a write-ahead log, which is synced with each of them (full) or never (normal); indexes at the end, as the store makes them,
 * and the log moved into the file. Each row is written once: the store writes a trial's own two rows again when the trial
 * is spread over several commits, which here is part of what it costs.
 *
 * Prints us_per_trial.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sqlite3 *database;

static void check(int result, const char *what) {
  if (result == SQLITE_OK || result == SQLITE_DONE || result == SQLITE_ROW) return;
  fprintf(stderr, "sqlite_rows: %s: %s\n", what, sqlite3_errmsg(database));
  exit(1);
}

static void run(const char *text) { check(sqlite3_exec(database, text, NULL, NULL, NULL), text); }

static sqlite3_stmt *prepare(const char *text) {
  sqlite3_stmt *statement;
  check(sqlite3_prepare_v3(database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL), text);
  return statement;
}

static void step(sqlite3_stmt *statement) {
  check(sqlite3_step(statement), "step");
  check(sqlite3_reset(statement), "reset");
}

static void text(sqlite3_stmt *statement, int column, const char *value) {
  check(sqlite3_bind_text(statement, column, value, -1, SQLITE_STATIC), "bind");
}

static void number(sqlite3_stmt *statement, int column, long long value) {
  check(sqlite3_bind_int64(statement, column, value), "bind");
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: sqlite_rows FILE TRIALS COMMITS full|normal\n"), 2;
  const long trials = atol(argv[2]), commits = atol(argv[3]);
  const double begin = seconds();
  check(sqlite3_open(argv[1], &database), argv[1]);
  run("PRAGMA journal_mode = WAL; PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 4000");
  run(strcmp(argv[4], "full") == 0 ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  run("CREATE TABLE TrialJobEvent (timestamp integer, trialJobId text, event text, data text, logPath text,"
      " sequenceId integer, message text, environmentId text);"
      "CREATE TABLE MetricData (timestamp integer, trialJobId text, parameterId text, type text, sequence integer, data text);"
      "CREATE TABLE trials (number integer PRIMARY KEY, parameter integer, ordered_at integer, event_row integer,"
      " status text, attempts integer, final_value text, final_number real);"
      "CREATE TABLE runs (trial integer, attempt integer, session integer, intended_at integer, placement text, job text,"
      " started_at integer, url text, directory text, ended_at integer, ended text, code integer, why text, message text,"
      " metrics_first integer, metrics_last integer, PRIMARY KEY (trial, attempt)) WITHOUT ROWID");
  sqlite3_stmt *event = prepare("INSERT INTO TrialJobEvent VALUES (?, ?, ?, ?, NULL, ?, NULL, NULL)");
  sqlite3_stmt *metric = prepare("INSERT INTO MetricData VALUES (?, ?, ?, 'FINAL', 0, '\"0.0\"')");
  sqlite3_stmt *trial = prepare("REPLACE INTO trials VALUES (?, ?, ?, ?, 'SUCCEEDED', 1, '0.0', 0.0)");
  sqlite3_stmt *attempt =
      prepare("REPLACE INTO runs VALUES (?, 0, 1, ?, NULL, ?, ?, NULL, NULL, ?, 'exited', 0, NULL, NULL, ?, ?)");

  const long long now = 1700000000000;
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  long done = 0;
  for (long commit = 1; commit <= commits; ++commit) {
    run("BEGIN IMMEDIATE");
    for (const long until = (long)((double)trials * (double)commit / (double)commits); done < until; ++done) {
      char id[8], parameter[24], record[160];
      unsigned long long mixed = (unsigned long long)done * 40014011ULL % 60466176ULL; /* five letters, no order */
      for (int place = 4; place >= 0; --place, mixed /= 36) id[place] = letters[mixed % 36];
      id[5] = 0;
      snprintf(parameter, sizeof parameter, "%ld", done);
      snprintf(record, sizeof record,
               "{\"parameter_id\":%ld,\"parameter_source\":\"algorithm\",\"parameters\":{\"x\":0.%017ld},\"parameter_index\":0}",
               done, done);
      static const char *const names[] = {"WAITING", "RUNNING", "SUCCEEDED"};
      for (int state = 0; state < 3; ++state) {
        number(event, 1, now + done), text(event, 2, id), text(event, 3, names[state]);
        if (state == 0) text(event, 4, record);
        else check(sqlite3_bind_null(event, 4), "bind");
        number(event, 5, done), step(event);
      }
      const long long row = sqlite3_last_insert_rowid(database);
      number(metric, 1, now + done), text(metric, 2, id), text(metric, 3, parameter), step(metric);
      const long long value = sqlite3_last_insert_rowid(database);
      number(trial, 1, done + 1), number(trial, 2, done), number(trial, 3, now + done), number(trial, 4, row - 2), step(trial);
      number(attempt, 1, done + 1), number(attempt, 2, now + done), text(attempt, 3, parameter);
      number(attempt, 4, now + done), number(attempt, 5, now + done), number(attempt, 6, value), number(attempt, 7, value);
      step(attempt);
    }
    run("COMMIT");
  }
  run("CREATE INDEX TrialJobEvent_trialJobId ON TrialJobEvent (trialJobId);"
      "CREATE INDEX TrialJobEvent_event ON TrialJobEvent (event);"
      "CREATE INDEX MetricData_trialJobId ON MetricData (trialJobId);"
      "CREATE INDEX MetricData_type ON MetricData (type)");
  sqlite3_finalize(event), sqlite3_finalize(metric), sqlite3_finalize(trial), sqlite3_finalize(attempt);
  run("PRAGMA wal_checkpoint(TRUNCATE)");
  check(sqlite3_close(database), "close");
  printf("{\"us_per_trial\": %.4f}\n", (seconds() - begin) * 1e6 / (double)trials);
  return 0;
}
