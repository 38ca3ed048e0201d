#pragma once

#include <utility>

#include <boost/asio/error.hpp>

#include <nni/datastore/sqlite/database.hpp>

#if NNI_WITH_SQLITE

#include <sqlite3.h>

namespace nni::datastore::detail {

NNI_INLINE Error sqlite_error(const std::filesystem::path& file, int code, const char* text) {
  const std::string name = file.string();
  const std::string reason = text != nullptr ? text : sqlite3_errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return Error(Errc::store_corrupt, name + " is not an SQLite database; move it away, or choose another directory");
    case SQLITE_CORRUPT:
      return Error(Errc::store_corrupt,
                   name + " is damaged (" + reason + "); restore it from a copy, or save what is left with \"sqlite3 " +
                       name + " .recover\"");
    case SQLITE_FULL:
      return Error(Errc::storage_failed, "the disk is full: cannot write " + name + "; free space there");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Error(
          Errc::storage_failed,
          "cannot open " + name + " (" + reason + "); check that the directory exists and that you may write there");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(Errc::storage_failed,
                   name + " is locked by another program (" + reason + "); end that program and try again");
    case SQLITE_INTERRUPT:
      return Error(boost::asio::error::make_error_code(boost::asio::error::operation_aborted),
                   "reading " + name + " was stopped");
    default:
      return Error(Errc::storage_failed, "cannot read or write " + name + ": " + reason + " (SQLite code " +
                                             std::to_string(code) + "); check the disk");
  }
}

NNI_INLINE Error sqlite_error(const std::filesystem::path& file, sqlite3* database) {
  return sqlite_error(file, sqlite3_extended_errcode(database), sqlite3_errmsg(database));
}

NNI_INLINE Statement::Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file)
    : file_(&file) {
  const int failed = sqlite3_prepare_v3(
      database, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
  if (failed != SQLITE_OK) throw sqlite_error(file, database);
}

NNI_INLINE Statement::Statement(Statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(other.file_) {}

NNI_INLINE Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  return *this;
}

NNI_INLINE Statement::~Statement() { sqlite3_finalize(handle_); }

// Binding fails only for an index that the statement does not have, or for a text of more than a gigabyte.
NNI_INLINE void require_bound(int code, const std::filesystem::path& file) {
  if (code != SQLITE_OK) throw sqlite_error(file, code, nullptr);
}

NNI_INLINE Statement& Statement::integer(int index, std::int64_t value) {
  require_bound(sqlite3_bind_int64(handle_, index, value), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::real(int index, double value) {
  require_bound(sqlite3_bind_double(handle_, index, value), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::text(int index, std::string_view value) {
  require_bound(sqlite3_bind_text64(handle_, index, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8), *file_);
  return *this;
}

NNI_INLINE Statement& Statement::null(int index) {
  require_bound(sqlite3_bind_null(handle_, index), *file_);
  return *this;
}

NNI_INLINE void Statement::execute() {
  while (next()) {
  }
}

NNI_INLINE bool Statement::next() {
  const int code = sqlite3_step(handle_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(handle_);
    return false;
  }
  const Error failure = sqlite_error(*file_, sqlite3_db_handle(handle_));
  sqlite3_reset(handle_);
  throw failure;
}

NNI_INLINE void Statement::reset() noexcept { sqlite3_reset(handle_); }

NNI_INLINE bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }
NNI_INLINE std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }
NNI_INLINE double Statement::real(int column) const { return sqlite3_column_double(handle_, column); }

NNI_INLINE std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

NNI_INLINE Database::Database(std::filesystem::path file, Mode mode, const std::string& layer)
    : file_(std::move(file)) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (mode == Mode::create) flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (mode == Mode::read_write) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::read_only) flags |= SQLITE_OPEN_READONLY;
  // A link in the place of the file is refused; SQLite refuses one anywhere in the path, and those above are the user's.
  std::filesystem::path name = file_;
#if defined(SQLITE_OPEN_NOFOLLOW)
  std::error_code missing;
  const std::filesystem::path above = std::filesystem::canonical(file_.parent_path(), missing);
  if (!missing) {
    flags |= SQLITE_OPEN_NOFOLLOW;
    name = above / file_.filename();
  }
#endif
  const int failed = sqlite3_open_v2(name.c_str(), &handle_, flags, layer.empty() ? nullptr : layer.c_str());
  if (failed != SQLITE_OK) {
    const Error failure = sqlite_error(file_, failed, handle_ != nullptr ? sqlite3_errmsg(handle_) : nullptr);
    sqlite3_close_v2(handle_);
    throw failure;
  }
#if defined(SQLITE_DBCONFIG_TRUSTED_SCHEMA)
  // The file may be foreign: nothing in its schema may call functions with side effects.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
#endif
  // Readers from outside hold locks for moments only.
  sqlite3_busy_timeout(handle_, 5000);
  // Our own hook replaces SQLite's, which would checkpoint inside commits and hide failures.
  sqlite3_wal_hook(
      handle_,
      [](void* self, sqlite3*, const char*, int frames) {
        static_cast<Database*>(self)->log_frames_ = frames;
        static_cast<Database*>(self)->all_moved_ = false;
        return SQLITE_OK;
      },
      this);
}

NNI_INLINE Database::~Database() { sqlite3_close_v2(handle_); }

NNI_INLINE void Database::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) throw sqlite_error(file_, handle_);
}

NNI_INLINE void Database::roll_back() noexcept { sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr); }

NNI_INLINE std::int64_t Database::number(std::string_view sql) {
  Statement statement = prepare(sql);
  return statement.next() ? statement.integer(0) : 0;
}

NNI_INLINE bool Database::has_table(std::string_view name) {
  Statement statement = prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  return statement.text(1, name).next();
}

NNI_INLINE bool Database::has_index(std::string_view name) {
  Statement statement = prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?");
  return statement.text(1, name).next();
}

NNI_INLINE std::vector<std::string> Database::columns(std::string_view table) {
  Statement statement = prepare("SELECT name FROM pragma_table_info(?)");
  statement.text(1, table);
  std::vector<std::string> names;
  while (statement.next()) names.emplace_back(statement.text(0));
  return names;
}

NNI_INLINE std::int64_t Database::last_row() const noexcept { return sqlite3_last_insert_rowid(handle_); }

NNI_INLINE void Database::interrupt() noexcept { sqlite3_interrupt(handle_); }

NNI_INLINE void Database::checkpoint(bool truncate) {
  // Readers from outside may hold a truncation up; everything is durable without it.
  if (truncate) sqlite3_busy_timeout(handle_, 200);
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int frames = 0;
  int moved = -1;
  const int failed = sqlite3_wal_checkpoint_v2(handle_, "main", mode, &frames, &moved);
  // Readers hold it: the log stays as it is and the next checkpoint continues.
  if ((failed & 0xff) == SQLITE_BUSY) return;
  if (failed != SQLITE_OK) throw sqlite_error(file_, failed, sqlite3_errmsg(handle_));
  all_moved_ = frames == moved;
}

NNI_INLINE bool Database::failed_in_files() const noexcept {
  return (sqlite3_extended_errcode(handle_) & 0xff) == SQLITE_IOERR;
}

NNI_INLINE void Database::keep_log_on_close() {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

NNI_INLINE void Database::leave_log() noexcept {
  sqlite3_busy_timeout(handle_, 0);
  sqlite3_exec(handle_, "PRAGMA journal_mode = DELETE", nullptr, nullptr, nullptr);
}

}  // namespace nni::datastore::detail

#endif
