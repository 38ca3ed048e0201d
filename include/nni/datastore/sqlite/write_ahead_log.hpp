#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <nni/core/error.hpp>
#include <nni/datastore/sqlite/database.hpp>

namespace nni::datastore::detail {

/// The intact part of a write-ahead log: the frames whose checksums continue each other.
class IntactLog {
 public:
  IntactLog() = default;
  std::size_t bytes = 0;  ///< with the header; 0 when not even that is intact
  int frames = 0;
  std::size_t page_size = 0;
  std::uint32_t database_pages = 0;  ///< after the last commit in it
  std::set<std::uint32_t> pages;     ///< numbers of the pages in it
};

/// Checks the bytes of a log against its checksums (SQLite file format, sections 4.1 and 4.2).
[[nodiscard]] IntactLog intact_part(const std::string& log);

/// Refuses a database file that lacks pages at its end. SQLite takes the number of pages from the log, if there is one,
/// and would find the hole only when it reads there.
/// @throws Error  `Errc::store_corrupt`
void require_whole(const std::filesystem::path& file, const IntactLog& log);

/// The write-ahead log of a database, opened a second time: so it can be synced on one thread while the connection
/// commits on another.
///
/// A commit under `synchronous = NORMAL` writes its frames and leaves the sync to the next checkpoint. Syncing the log
/// makes every commit in it durable; what a checkpoint has moved out of it was synced with the database file.
///
/// A system that could not write pages may call them clean afterwards, and let the next sync succeed without them. So
/// after a failed sync, through whatever file, the log is in doubt: its bytes have to be read back, checked against its
/// checksums, and written once more, before a sync means something again.
class WriteAheadLog {
 public:
  /// @param database  in the journal mode WAL; outlives this object
  explicit WriteAheadLog(Database& database);
  WriteAheadLog(const WriteAheadLog&) = delete;
  WriteAheadLog& operator=(const WriteAheadLog&) = delete;
  ~WriteAheadLog();

  /// The file.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  /// Returns when all commits that were done before the call are on the disk.
  /// @throws Error  `Errc::storage_failed`; the log is in doubt then
  void sync();

  /// Notes that a sync may have failed: SQLite syncs as well, and does not always report which call failed.
  void doubt() noexcept { doubtful_ = true; }

  /// True when a sync alone would not prove durability.
  [[nodiscard]] bool doubtful() const noexcept { return doubtful_; }

  /// @throws Error  `Errc::storage_failed` while the log is in doubt
  void require_certain() const;

  /// Reads the log back, rewrites its intact part, and syncs it. Nothing else may write meanwhile.
  /// @param frames  that are known to be in it
  /// @returns       the intact part
  /// @throws Error  `Errc::store_corrupt` when fewer frames are left than there should be: the system has dropped some
  IntactLog write_again(int frames);

 private:
  /// Reads the log as far as it is intact, and a little further.
  /// @param bytes  empty; receives them
  [[nodiscard]] IntactLog read(std::string& bytes);
  void require_done(int code, const char* what) const;

  std::filesystem::path path_;
  std::unique_ptr<std::max_align_t[]> file_;  // an sqlite3_file of the size that the file system layer wants
  std::atomic<bool> doubtful_{false};
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/sqlite/write_ahead_log_inl.hpp>
#endif
