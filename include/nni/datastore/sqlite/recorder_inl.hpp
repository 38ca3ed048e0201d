#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include <nni/async/cancellation.hpp>
#include <nni/core/crash_point.hpp>
#include <nni/core/json.hpp>
#include <nni/datastore/common/fields.hpp>
#include <nni/datastore/sqlite/columns.hpp>
#include <nni/datastore/sqlite/recorder.hpp>
#include <nni/datastore/sqlite/schema.hpp>

#if NNI_WITH_SQLITE

namespace nni::datastore::detail {

/// Capacity of the scratch text that is kept between values; more is freed.
inline constexpr std::size_t kept_scratch = 1024 * 1024;

/// Opens a store file for writing, in the journal mode that this store needs.
NNI_INLINE Database& prepared(Database& database) {
  const bool known = SqliteSchema::exists(database);
  // A commit hands it to the kernel (written); `sync` brings it to the disk (synced).
  database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16000");
  if (!known) {
    Transaction all(database, Transaction::Kind::writing);
    SqliteSchema::create(database);
    NNI_CRASH_POINT("creation of the store");
    all.commit();
    NNI_CRASH_POINT("creation of the store");
  }
  SqliteSchema::add_missing_columns(database);
  return database;
}

NNI_INLINE SqliteRecorder::SqliteRecorder(
    const std::filesystem::path& file, OwnerLock lock, Owner self, const SqliteOptions& options)
    : lock_(std::move(lock)),
      database_(file, Database::Mode::create, options.vfs),
      reader_(prepared(database_)),
      log_(std::in_place, database_),
      identity_(file),
      log_identity_(log_->path()),
      self_(std::move(self)),
      log_pages_(std::max(1, options.log_pages)),
      begin_(database_.prepare("BEGIN IMMEDIATE")),
      commit_(database_.prepare("COMMIT")),
      insert_event_(database_.prepare("INSERT INTO TrialJobEvent VALUES (?, ?, ?, ?, ?, ?, ?, ?)")),
      insert_metric_(database_.prepare("INSERT INTO MetricData VALUES (?, ?, ?, ?, ?, ?)")),
      put_trial_(database_.prepare(Table::trials().write("REPLACE"))),
      put_run_(database_.prepare(Table::runs().write("REPLACE"))) {
  database_.keep_log_on_close();  // `finish` empties it
  // The log of an earlier process may contain commits whose sync has failed, and only that process knew.
  require_whole(file, log_->write_again(0));
}

NNI_INLINE ExperimentSnapshot SqliteRecorder::restore() {
  open_.clear();
  changed_.clear();
  std::vector<StoredTrial> open;
  ExperimentSnapshot snapshot = reader_.snapshot(&open);
  for (StoredTrial& stored : open) {
    const std::uint64_t number = stored.state.detail.trial.number;
    stored.state.detail.parameters = {};  // in the file; it is not needed for recording
    open_.emplace(number, std::move(stored));
  }
  trials_ = snapshot.trials;
  revision_ = database_.number("SELECT max(revision) FROM ExperimentProfile");
  indexed_ = SqliteSchema::has_indexes(database_);
  return snapshot;
}

// Without its log the database lacks the last commits, and writes to a removed log are lost.
NNI_INLINE void SqliteRecorder::require_files() const {
  identity_.require(database_.file());
  log_identity_.require(log_->path());
}

NNI_INLINE void SqliteRecorder::record(std::span<const StoreEvent> events, TimePoint now) {
  require_files();
  begin_.execute();
  half_recorded_ = true;
  try {
    if (session_ == 0) begin_session(now);
    if (indexed_ && trials_ > SqliteSchema::indexed_trials) {
      SqliteSchema::drop_indexes(database_);
      indexed_ = false;
    }
    for (const StoreEvent& event : events) std::visit([this](const auto& what) { take(what); }, event);
    write_changes();
    NNI_CRASH_POINT("before commit");
    commit_.execute();
    half_recorded_ = false;
    NNI_CRASH_POINT("committed");
    NNI_CRASH_POINTS_KEPT();
  } catch (...) {
    if (database_.failed_in_files()) log_->doubt();
    database_.roll_back();
    throw;
  }
}

NNI_INLINE void SqliteRecorder::sync() {
  require_files();
  const std::lock_guard one(log_use_);
  log_->require_certain();
  log_->sync();
}

NNI_INLINE void SqliteRecorder::recover() {
  // First the log: SQLite reads from it.
  if (log_->doubtful()) static_cast<void>(log_->write_again(database_.needed_frames()));
  if (half_recorded_) {
    static_cast<void>(restore());
    // The rows of this session and of its last profile may have been rolled back.
    if (database_.number("SELECT count(*) FROM nni_sessions WHERE number = " + std::to_string(session_)) == 0)
      session_ = 0;
    profile_row_ = 0;
    half_recorded_ = false;
  }
}

NNI_INLINE void SqliteRecorder::begin_session(TimePoint now) {
  Statement row = database_.prepare("INSERT INTO nni_sessions VALUES (NULL, ?, NULL, ?, ?, ?, ?)");
  row.integer(1, to_epoch_ms(now)).text(2, self_.program).integer(3, self_.pid);
  row.text(4, self_.host).text(5, self_.boot_id).execute();
  session_ = database_.last_row();
}

NNI_INLINE StoredTrial& SqliteRecorder::held(TrialId trial) {
  if (const auto found = open_.find(trial.number); found != open_.end()) return found->second;
  // It has ended, and a late record names it.
  std::optional<StoredTrial> stored = reader_.stored(trial);
  if (!stored) throw Error(Errc::internal, "a record names trial " + to_string(trial) + ", which was never ordered");
  return open_.emplace(trial.number, std::move(*stored)).first->second;
}

NNI_INLINE void SqliteRecorder::change(StoredTrial& stored) {
  if (!std::exchange(stored.changed, true)) changed_.push_back(&stored);
}

NNI_INLINE void SqliteRecorder::write_event(
    const StoredTrial& stored, TimePoint at, std::string_view event, std::string_view data) {
  const TrialJobDetail& detail = stored.state.detail;
  insert_event_.integer(1, to_epoch_ms(at)).text(2, stored.id).text(3, event).text_or_null(4, data);
  insert_event_.text_or_null(5, detail.working_directory);
  insert_event_.integer(6, static_cast<std::int64_t>(detail.trial.sequence()));
  insert_event_.text_or_null(7, detail.message).text_or_null(8, detail.environment).execute();
}

NNI_INLINE void SqliteRecorder::take(const ProfileChanged& event) {
  // Rows that differ in their times only do not pile up: a long experiment writes one every ten seconds.
  const bool is_tick =
      profile_row_ != 0 && event.params == profile_.params && event.status == profile_.status &&
      event.message == profile_.message;
  Statement row = database_.prepare(Table::nni_profile().write("INSERT"));
  RowBinder nni(row);
  nni_profile_columns(nni, event, ++revision_);
  row.execute();
  const std::int64_t written = database_.last_row();
  if (is_tick) database_.prepare("DELETE FROM ExperimentProfile WHERE rowid = ?").integer(1, profile_row_).execute();
  profile_row_ = written;
  profile_ = event;

  Statement ours = database_.prepare(Table::experiment().write_only_row());
  RowBinder beside(ours);
  profile_columns(beside, event);
  ours.execute();
  if (!is_tick || event.settings != settings_)
    database_.prepare("REPLACE INTO nni_meta VALUES ('settings', ?)").text(1, event.settings).execute();
  settings_ = event.settings;
}

NNI_INLINE void SqliteRecorder::take(const TrialOrdered& event) {
  StoredTrial& stored = open_[event.trial.number];
  stored.state.ordered(event);
  stored.id = to_string(event.trial);
  trials_ = std::max(trials_, event.trial.number);
  write_event(
      stored, event.at, to_string(TrialJobStatus::waiting), parameter_record(event.parameter, event.parameters));
  stored.event_row = database_.last_row();
  change(stored);
}

NNI_INLINE void SqliteRecorder::take(const RunIntended& event) {
  NNI_CRASH_POINT_WHEN_KEPT("intent written");
  StoredTrial& stored = held(event.run.trial);
  if (stored.state.has_run) {
    write_run(stored);
    set_values_aside(stored);
  }
  stored.state.intended(event);
  stored.session = session_;
  change(stored);
}

NNI_INLINE void SqliteRecorder::take(const RunStarted& event) {
  NNI_CRASH_POINT_WHEN_KEPT("started recorded");
  StoredTrial& stored = held(event.started.run.trial);
  stored.state.started(event);
  write_event(stored, event.started.at, to_string(TrialJobStatus::running), {});
  change(stored);
}

NNI_INLINE void SqliteRecorder::take(const MetricReceived& event) {
  const Metric& metric = event.metric;
  StoredTrial& stored = held(metric.run.trial);
  if (!stored.state.is_current(metric.run)) {
    change(stored);  // releases a trial that was loaded for this
    keep_earlier(metric);
    return;
  }
  change(stored);
  if (!stored.state.received(metric)) return;
  scratch_.clear();
  append_json_string(scratch_, metric.value);
  const std::string parameter = std::to_string(stored.state.detail.parameter.value);
  insert_metric_.integer(1, to_epoch_ms(metric.at)).text(2, stored.id).text(3, parameter);
  insert_metric_.text(4, to_string(metric.kind)).integer(5, metric.sequence).text(6, scratch_).execute();
  if (scratch_.capacity() > kept_scratch) std::string().swap(scratch_);
  stored.metrics_last = database_.last_row();
  if (stored.metrics_first == 0) stored.metrics_first = stored.metrics_last;
}

NNI_INLINE void SqliteRecorder::take(const RunEnded& event) {
  NNI_CRASH_POINT_WHEN_KEPT("ended recorded");
  StoredTrial& stored = held(event.run.trial);
  stored.state.ended(event);
  // A trial that is retried waits: a terminal event would hide it from a resume.
  write_event(stored, event.at, to_string(event.status), {});
  change(stored);
}

NNI_INLINE void SqliteRecorder::take(const ResultImported& event) {
  std::string history = "[";
  for (const double value : event.history) {
    if (history.size() > 1) history += ',';
    append_json_number(history, value);
  }
  history += ']';
  Statement row = database_.prepare("INSERT INTO nni_imported VALUES (NULL, ?, ?, ?, ?)");
  row.text(1, event.parameters.text()).real(2, event.value).text(3, history);
  row.integer(4, static_cast<std::int64_t>(event.after)).execute();
}

NNI_INLINE void SqliteRecorder::set_values_aside(StoredTrial& stored) {
  if (stored.metrics_first == 0) return;
  const auto number = static_cast<std::int64_t>(stored.state.detail.trial.number);
  Statement copy = database_.prepare(
      "INSERT INTO nni_earlier_metrics SELECT ?, ?, rowid, timestamp, type, sequence, data FROM MetricData"
      " WHERE rowid BETWEEN ? AND ? AND +trialJobId = ?");
  copy.integer(1, number).integer(2, stored.state.attempt).integer(3, stored.metrics_first);
  copy.integer(4, stored.metrics_last).text(5, stored.id).execute();
  Statement remove = database_.prepare("DELETE FROM MetricData WHERE rowid BETWEEN ? AND ? AND +trialJobId = ?");
  remove.integer(1, stored.metrics_first).integer(2, stored.metrics_last).text(3, stored.id).execute();
  stored.metrics_first = stored.metrics_last = 0;
}

NNI_INLINE void SqliteRecorder::keep_earlier(const Metric& metric) {
  scratch_.clear();
  append_json_string(scratch_, metric.value);
  const auto number = static_cast<std::int64_t>(metric.run.trial.number);
  Statement known = database_.prepare(
      "SELECT 1 FROM nni_earlier_metrics WHERE trial = ? AND attempt = ? AND type = ? AND sequence = ?"
      " AND data = ?");
  known.integer(1, number).integer(2, metric.run.attempt).text(3, to_string(metric.kind));
  known.integer(4, metric.sequence).text(5, scratch_);
  if (known.next()) return;
  Statement row = database_.prepare(
      "INSERT INTO nni_earlier_metrics SELECT ?1, ?2, coalesce(max(position), 0) + 1, ?3, ?4, ?5, ?6"
      " FROM nni_earlier_metrics WHERE trial = ?1 AND attempt = ?2");
  row.integer(1, number).integer(2, metric.run.attempt).integer(3, to_epoch_ms(metric.at));
  row.text(4, to_string(metric.kind)).integer(5, metric.sequence).text(6, scratch_).execute();
  if (scratch_.capacity() > kept_scratch) std::string().swap(scratch_);
}

NNI_INLINE void SqliteRecorder::write_run(const StoredTrial& stored) {
  RowBinder out(put_run_);
  run_columns(out, stored);
  put_run_.execute();
}

NNI_INLINE void SqliteRecorder::write_changes() {
  for (StoredTrial* stored : changed_) {
    RowBinder out(put_trial_);
    trial_columns(out, *stored);
    put_trial_.execute();
    if (stored->state.has_run) write_run(*stored);
    stored->changed = false;
    const TrialJobDetail& detail = stored->state.detail;
    if (is_terminal(detail.status)) open_.erase(detail.trial.number);
  }
  changed_.clear();
}

NNI_INLINE bool SqliteRecorder::wants_tidying() const noexcept {
  const int now = database_.log_frames();
  return now - (now < checkpointed_at_ ? 0 : checkpointed_at_) >= log_pages_;
}

NNI_INLINE void SqliteRecorder::tidy() {
  const int frames = database_.log_frames();
  NNI_CRASH_POINT("checkpoint");
  const std::lock_guard one(log_use_);
  // Frames that the log has lost must not reach the file in part.
  log_->require_certain();
  try {
    database_.checkpoint(false);
  } catch (...) {
    if (database_.failed_in_files()) log_->doubt();
    throw;
  }
  NNI_CRASH_POINT("checkpoint");
  checkpointed_at_ = frames;
}

NNI_INLINE void SqliteRecorder::finish(TimePoint now) {
  if (session_ != 0) {
    Statement last = database_.prepare("UPDATE nni_sessions SET closed_at = ? WHERE number = ?");
    last.integer(1, to_epoch_ms(now)).integer(2, session_).execute();
  }
  sync();
  // Everything is synced; the rest serves readers, and may be interrupted.
  try {
    if (!indexed_) {
      Transaction all(database_, Transaction::Kind::writing);
      SqliteSchema::create_indexes(database_);
      all.commit();
    }
    NNI_CRASH_POINT("checkpoint");
    database_.checkpoint(true);
    NNI_CRASH_POINT("checkpoint");
    log_.reset();
    database_.leave_log();
    NNI_CRASH_POINT("checkpoint");
  } catch (const Error& error) {
    if (!async::is_cancellation(error.code())) throw;
  }
}

}  // namespace nni::datastore::detail

#endif
