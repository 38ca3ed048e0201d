#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/error.hpp>

struct sqlite3;
struct sqlite3_stmt;

namespace nni::datastore::detail {

/// Returns the error for a failure of SQLite, with advice for people.
/// @param code  extended result code
/// @param text  the message of SQLite; null: the text of the code
[[nodiscard]] Error sqlite_error(const std::filesystem::path& file, int code, const char* text);

/// A prepared statement. It dies before its database.
///
/// Texts are bound without a copy: they live until the statement was stepped and reset.
class Statement {
 public:
  Statement() = default;
  Statement(sqlite3* database, std::string_view sql, const std::filesystem::path& file);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& integer(int index, std::int64_t value);
  Statement& real(int index, double value);
  Statement& text(int index, std::string_view value);
  Statement& null(int index);

  /// NULL for an empty text.
  Statement& text_or_null(int index, std::string_view value) {
    return value.empty() ? null(index) : text(index, value);
  }

  /// NULL for nothing.
  Statement& integer_or_null(int index, const std::optional<std::int64_t>& value) {
    return value ? integer(index, *value) : null(index);
  }

  /// Runs to the end and resets the statement.
  void execute();

  /// Steps to the next row; resets the statement after the last one. @returns false after the last row
  bool next();

  /// Discards rows that were not read.
  void reset() noexcept;

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  /// Valid until the next step.
  [[nodiscard]] std::string_view text(int column) const;

 private:
  sqlite3_stmt* handle_ = nullptr;
  const std::filesystem::path* file_ = nullptr;
};

/// One connection to a database file. Used by one thread at a time.
class Database {
 public:
  enum class Mode { create, read_write, read_only };

  Database() = default;
  /// @param layer   name of SQLite's file layer; empty: the default one
  /// @throws Error  `Errc::store_corrupt` for a file that is no database, otherwise `Errc::storage_failed`
  Database(std::filesystem::path file, Mode mode, const std::string& layer = {});
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  [[nodiscard]] Statement prepare(std::string_view sql) { return Statement(handle_, sql, file_); }

  /// Runs statements without results.
  void run(const char* sql);

  /// Ends a transaction without its changes; SQLite may have done so already.
  void roll_back() noexcept;

  /// The first column of the first row, as an integer; 0 without a row.
  [[nodiscard]] std::int64_t number(std::string_view sql);

  /// True when there is a table of this name.
  [[nodiscard]] bool has_table(std::string_view name);

  /// True when there is an index of this name.
  [[nodiscard]] bool has_index(std::string_view name);

  /// Returns the names of a table's columns.
  [[nodiscard]] std::vector<std::string> columns(std::string_view table);

  /// Row number of the last insert.
  [[nodiscard]] std::int64_t last_row() const noexcept;

  /// Stops what runs on this connection now. Any thread.
  void interrupt() noexcept;

  /// Frames in the write-ahead log after the last commit.
  [[nodiscard]] int log_frames() const noexcept { return log_frames_; }

  /// Of these, the ones that are needed: none once all of them were moved into the file.
  [[nodiscard]] int needed_frames() const noexcept { return all_moved_ ? 0 : log_frames_; }

  /// True when the last call failed in the file system, and not for want of space. It may have been a sync.
  [[nodiscard]] bool failed_in_files() const noexcept;

  /// Closing then leaves the log as it is: a log that could not be synced must not be moved into the file.
  void keep_log_on_close();

  /// Moves the write-ahead log into the file, as far as readers allow.
  /// @param truncate  waits for readers for a short time, and empties the log
  void checkpoint(bool truncate);

  /// Turns it into a plain file without a log, unless another process has it open. Readers then need no second file.
  void leave_log() noexcept;

  [[nodiscard]] const std::filesystem::path& file() const noexcept { return file_; }
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
  std::filesystem::path file_;
  int log_frames_ = 0;
  bool all_moved_ = false;
};

/// Resets a statement at the end of a scope, also when reading has failed.
class RowScope {
 public:
  explicit RowScope(Statement& statement) noexcept : statement_(statement) {}
  RowScope(const RowScope&) = delete;
  RowScope& operator=(const RowScope&) = delete;
  ~RowScope() { statement_.reset(); }

 private:
  Statement& statement_;
};

/// A transaction that is rolled back unless it is committed.
class Transaction {
 public:
  enum class Kind { reading, writing };

  Transaction(Database& database, Kind kind) : database_(database) {
    database_.run(kind == Kind::writing ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!ended_) database_.roll_back();
  }

  void commit() {
    database_.run("COMMIT");
    ended_ = true;
  }

 private:
  Database& database_;
  bool ended_ = false;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/database_inl.hpp>
#endif
