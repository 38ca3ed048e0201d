/*
 * The peer of `sqlite_limit`: the rows that the store keeps for empty trials, written by a plain program.
 *
 *   sqlite_rows FILE TRIALS COMMITS full|normal [once]
 *
 * Six rows per trial (three events, a metric, a trial, a run) with the texts and lengths that ours have, spread evenly over
 * COMMITS transactions in a write-ahead log, which is synced with each of them (full) or never (normal); indexes at the
 * end, as the store makes them, and the log moved into the file. As in the store, a trial begins in one transaction (its
 * first event, its trial, its run) and ends in the next (the other events, the metric, its trial and its run again).
 * With `once` everything of a trial is written in one transaction and no row a second time, which a store that can be
 * killed between the two cannot do.
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

/* The names of a trial. */
struct trial {
  char id[8], parameter[24];
};

static struct trial trial_of(long number) {
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  struct trial made;
  unsigned long long mixed = (unsigned long long)number * 40014011ULL % 60466176ULL; /* five letters, no order */
  for (int place = 4; place >= 0; --place, mixed /= 36) made.id[place] = letters[mixed % 36];
  made.id[5] = 0;
  snprintf(made.parameter, sizeof made.parameter, "%ld", number);
  return made;
}

static const long long now = 1700000000000;
static sqlite3_stmt *event, *metric, *trial, *attempt;

static void write_event(long number_of, const struct trial *which, const char *state, const char *record) {
  number(event, 1, now + number_of), text(event, 2, which->id), text(event, 3, state);
  if (record) text(event, 4, record);
  else check(sqlite3_bind_null(event, 4), "bind");
  number(event, 5, number_of), step(event);
}

static void write_trial(long number_of, long long event_row, int ended) {
  number(trial, 1, number_of + 1), number(trial, 2, number_of), number(trial, 3, now + number_of), number(trial, 4, event_row);
  if (ended) {
    text(trial, 5, "SUCCEEDED"), text(trial, 6, "0.0"), check(sqlite3_bind_double(trial, 7, 0.0), "bind");
  } else {
    text(trial, 5, "WAITING"), check(sqlite3_bind_null(trial, 6), "bind"), check(sqlite3_bind_null(trial, 7), "bind");
  }
  step(trial);
}

static void write_run(long number_of, const struct trial *which, long long value) {
  number(attempt, 1, number_of + 1), number(attempt, 2, now + number_of);
  if (value) {
    text(attempt, 3, which->parameter), number(attempt, 4, now + number_of), number(attempt, 5, now + number_of);
    text(attempt, 6, "exited"), number(attempt, 7, 0), number(attempt, 8, value), number(attempt, 9, value);
  } else {
    for (int column = 3; column <= 9; ++column) check(sqlite3_bind_null(attempt, column), "bind");
  }
  step(attempt);
}

static long long write_beginning(long number_of, int once) {
  const struct trial which = trial_of(number_of);
  char record[160];
  snprintf(record, sizeof record,
           "{\"parameter_id\":%ld,\"parameter_source\":\"algorithm\",\"parameters\":{\"x\":0.%017ld},\"parameter_index\":0}",
           number_of, number_of);
  write_event(number_of, &which, "WAITING", record);
  const long long row = sqlite3_last_insert_rowid(database);
  if (!once) write_trial(number_of, row, 0), write_run(number_of, &which, 0);
  return row;
}

static void write_end(long number_of, long long event_row) {
  const struct trial which = trial_of(number_of);
  write_event(number_of, &which, "RUNNING", NULL);
  write_event(number_of, &which, "SUCCEEDED", NULL);
  number(metric, 1, now + number_of), text(metric, 2, which.id), text(metric, 3, which.parameter), step(metric);
  write_run(number_of, &which, sqlite3_last_insert_rowid(database));
  write_trial(number_of, event_row, 1);
}

int main(int argc, char **argv) {
  const int once = argc == 6 && strcmp(argv[5], "once") == 0;
  if (argc != 5 && !once) return fprintf(stderr, "usage: sqlite_rows FILE TRIALS COMMITS full|normal [once]\n"), 2;
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
  event = prepare("INSERT INTO TrialJobEvent VALUES (?, ?, ?, ?, NULL, ?, NULL, NULL)");
  metric = prepare("INSERT INTO MetricData VALUES (?, ?, ?, 'FINAL', 0, '\"0.0\"')");
  trial = prepare("REPLACE INTO trials VALUES (?, ?, ?, ?, ?, 1, ?, ?)");
  attempt = prepare("REPLACE INTO runs VALUES (?, 0, 1, ?, NULL, ?, ?, NULL, NULL, ?, ?, ?, NULL, NULL, ?, ?)");

  long long *rows = malloc((size_t)trials * sizeof *rows); /* of the first events */
  if (!rows) return fprintf(stderr, "sqlite_rows: no memory for %ld trials\n", trials), 1;
  long begun = 0, ended = 0;
  for (long commit = 1; ended < trials; ++commit) {
    const long share = commit >= commits ? trials : (long)((double)trials * (double)commit / (double)commits);
    const long running = begun; /* since the commit before */
    run("BEGIN IMMEDIATE");
    if (!once)
      for (; ended < running; ++ended) write_end(ended, rows[ended]);
    for (; begun < share; ++begun) {
      rows[begun] = write_beginning(begun, once);
      if (once) write_end(ended++, rows[begun]);
    }
    run("COMMIT");
  }
  free(rows);
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
