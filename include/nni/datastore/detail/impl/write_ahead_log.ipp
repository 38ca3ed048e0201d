#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include <nni/datastore/detail/write_ahead_log.hpp>

#if NNI_WITH_SQLITE

#include <sqlite3.h>

namespace nni::datastore::detail {

// SQLite reads and writes less than 128 KiB at a time.
inline constexpr std::size_t log_chunk = 64 * 1024;

NNI_INLINE sqlite3_file* as_file(const std::unique_ptr<std::max_align_t[]>& memory) noexcept {
  return reinterpret_cast<sqlite3_file*>(memory.get());
}

NNI_INLINE WriteAheadLog::WriteAheadLog(Database& database) {
  // SQLite makes the log at the first transaction after the journal mode was changed, be it one that only reads.
  database.run("SELECT 1 FROM sqlite_master LIMIT 1");
  // Through SQLite's own layer, so that a test which puts itself between SQLite and the disk sees this sync too.
  sqlite3_vfs* layer = nullptr;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_VFS_POINTER, &layer);
  const char* const name = sqlite3_filename_wal(sqlite3_db_filename(database.handle(), "main"));
  path_ = name;
  const std::size_t size = static_cast<std::size_t>(layer->szOsFile);
  file_ = std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
  int opened_as = 0;
  const int failed = layer->xOpen(layer, name, as_file(file_), SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL, &opened_as);
  require_done(failed, nullptr);
}

NNI_INLINE WriteAheadLog::~WriteAheadLog() { as_file(file_)->pMethods->xClose(as_file(file_)); }

NNI_INLINE void WriteAheadLog::require_done(int code, const char* what) const {
  if (code != SQLITE_OK) throw sqlite_error(path_, code, what);
}

NNI_INLINE void WriteAheadLog::sync() {
  const int failed = as_file(file_)->pMethods->xSync(as_file(file_), SQLITE_SYNC_NORMAL);
  if (failed != SQLITE_OK) doubtful_ = true;
  require_done(failed, "its sync failed");
}

NNI_INLINE void WriteAheadLog::require_certain() const {
  if (doubtful_) throw sqlite_error(path_, SQLITE_IOERR_FSYNC, "its last sync failed");
}

NNI_INLINE std::string WriteAheadLog::content() {
  sqlite3_int64 size = 0;
  require_done(as_file(file_)->pMethods->xFileSize(as_file(file_), &size), nullptr);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  for (std::size_t at = 0; at < bytes.size(); at += log_chunk) {
    const int part = static_cast<int>(std::min(log_chunk, bytes.size() - at));
    const auto offset = static_cast<sqlite3_int64>(at);
    require_done(as_file(file_)->pMethods->xRead(as_file(file_), bytes.data() + at, part, offset), nullptr);
  }
  return bytes;
}

NNI_INLINE IntactLog WriteAheadLog::write_again(int frames) {
  const std::string bytes = content();
  IntactLog intact = intact_part(bytes);
  if (intact.frames < frames)
    throw Error(
        Errc::store_corrupt,
        path_.string() + " could not be synced, and of its " + std::to_string(frames) + " pages " +
            std::to_string(intact.frames) +
            " are left: the disk has lost what was written; check it, then resume the "
            "experiment, which goes on from what was synced");
  for (std::size_t at = 0; at < intact.bytes; at += log_chunk) {
    const int part = static_cast<int>(std::min(log_chunk, intact.bytes - at));
    const auto offset = static_cast<sqlite3_int64>(at);
    require_done(as_file(file_)->pMethods->xWrite(as_file(file_), bytes.data() + at, part, offset), nullptr);
  }
  if (intact.bytes != 0) sync();
  doubtful_ = false;
  return intact;
}

NNI_INLINE void require_whole(const std::filesystem::path& file, const IntactLog& log) {
  if (log.database_pages == 0) return;
  const std::uint64_t there = std::filesystem::file_size(file) / log.page_size;
  for (std::uint64_t page = there + 1; page <= log.database_pages; ++page) {
    if (log.pages.contains(static_cast<std::uint32_t>(page))) continue;
    throw Error(
        Errc::store_corrupt,
        file.string() + " was cut off: it ends before page " + std::to_string(page) + " of " +
            std::to_string(log.database_pages) + "; restore it from a copy, or save what is left with \"sqlite3 " +
            file.string() + " .recover\"");
  }
}

/// The checksum of a log: two sums that feed each other, over pairs of words.
class LogSum {
 public:
  explicit LogSum(bool big_endian) noexcept : big_endian_(big_endian) {}

  void add(const char* bytes, std::size_t size) noexcept {
    for (std::size_t at = 0; at < size; at += 8) {
      first_ += word(bytes + at, big_endian_) + second_;
      second_ += word(bytes + at + 4, big_endian_) + first_;
    }
  }
  /// @param bytes  the two sums as the file has them, always big-endian
  [[nodiscard]] bool equals(const char* bytes) const noexcept {
    return word(bytes, true) == first_ && word(bytes + 4, true) == second_;
  }
  [[nodiscard]] static std::uint32_t word(const char* bytes, bool big_endian) noexcept {
    std::uint32_t value = 0;
    for (int at = 0; at < 4; ++at) value = value << 8 | static_cast<unsigned char>(bytes[big_endian ? at : 3 - at]);
    return value;
  }

 private:
  bool big_endian_;
  std::uint32_t first_ = 0;
  std::uint32_t second_ = 0;
};

NNI_INLINE IntactLog intact_part(const std::string& log) {
  constexpr std::size_t header = 32;
  constexpr std::size_t frame_header = 24;
  IntactLog found;
  if (log.size() < header) return found;
  const std::uint32_t magic = LogSum::word(log.data(), true);
  if ((magic & ~std::uint32_t{1}) != 0x377f0682) return found;
  LogSum sum((magic & 1) != 0);
  sum.add(log.data(), 24);
  if (!sum.equals(log.data() + 24)) return found;
  const std::size_t page = LogSum::word(log.data() + 8, true);
  // SQLite knows no others, and takes such a log for empty; the sums go over pairs of words.
  if (page < 512 || page > 65'536 || !std::has_single_bit(page)) return found;
  found.page_size = page;
  found.bytes = header;
  while (log.size() - found.bytes >= frame_header + page) {
    const char* const frame = log.data() + found.bytes;
    // The salts of the header: others are left over from before the log began again.
    if (!std::equal(frame + 8, frame + 16, log.data() + 16)) break;
    sum.add(frame, 8);
    sum.add(frame + frame_header, page);
    if (!sum.equals(frame + 16)) break;
    found.bytes += frame_header + page;
    ++found.frames;
    found.pages.insert(LogSum::word(frame, true));
    if (const std::uint32_t size = LogSum::word(frame + 4, true); size != 0) found.database_pages = size;
  }
  return found;
}

}  // namespace nni::datastore::detail

#endif
