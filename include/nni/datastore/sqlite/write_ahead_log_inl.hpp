#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include <nni/datastore/sqlite/write_ahead_log.hpp>

#if NNI_WITH_SQLITE

#include <sqlite3.h>

namespace nni::datastore::detail {

// SQLite reads and writes less than 128 KiB at a time.
inline constexpr std::size_t log_chunk = 64 * 1024;

NNI_INLINE sqlite3_file* as_file(const std::unique_ptr<std::max_align_t[]>& memory) noexcept {
  return reinterpret_cast<sqlite3_file*>(memory.get());
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

/// Finds the intact part of a log that comes in pieces.
class LogScan {
 public:
  /// Looks at bytes of the log.
  /// @param bytes  the log from `result().bytes` on, at least as far as it was seen before
  void add(std::string_view bytes) {
    if (result_.bytes == 0) {
      if (ended_ || bytes.size() < header_size || (ended_ = !take_header(bytes.substr(0, header_size)))) return;
      bytes.remove_prefix(header_size);
    }
    const std::size_t size = frame_header_size + result_.page_size;
    for (; !ended_ && bytes.size() >= size; bytes.remove_prefix(size)) ended_ = !take_frame(bytes.data());
  }
  /// True when nothing that follows can be intact.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] const IntactLog& result() const noexcept { return result_; }

 private:
  static constexpr std::size_t header_size = 32;
  static constexpr std::size_t frame_header_size = 24;

  bool take_header(std::string_view bytes) {
    const std::uint32_t magic = LogSum::word(bytes.data(), true);
    if ((magic & ~std::uint32_t{1}) != 0x377f0682) return false;
    sum_ = LogSum((magic & 1) != 0);
    sum_.add(bytes.data(), 24);
    if (!sum_.equals(bytes.data() + 24)) return false;
    const std::size_t page = LogSum::word(bytes.data() + 8, true);
    // SQLite has no others, and takes such a log for empty; the sums cover pairs of words.
    if (page < 512 || page > 65'536 || !std::has_single_bit(page)) return false;
    salts_ = bytes.substr(16, 8);
    result_.page_size = page;
    result_.bytes = header_size;
    return true;
  }
  bool take_frame(const char* frame) {
    // The salts of the header: others are left over from before the log began again.
    if (!std::equal(frame + 8, frame + 16, salts_.data())) return false;
    sum_.add(frame, 8);
    sum_.add(frame + frame_header_size, result_.page_size);
    if (!sum_.equals(frame + 16)) return false;
    result_.bytes += frame_header_size + result_.page_size;
    ++result_.frames;
    result_.pages.insert(LogSum::word(frame, true));
    if (const std::uint32_t size = LogSum::word(frame + 4, true); size != 0) result_.database_pages = size;
    return true;
  }

  IntactLog result_;
  LogSum sum_{false};
  std::string salts_;
  bool ended_ = false;
};

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

NNI_INLINE IntactLog WriteAheadLog::read(std::string& bytes) {
  sqlite3_int64 size = 0;
  require_done(as_file(file_)->pMethods->xFileSize(as_file(file_), &size), nullptr);
  // No further than it is intact: the rest may be any length, and nothing reads it.
  LogScan scan;
  for (auto left = static_cast<std::size_t>(size); left > 0 && !scan.ended();) {
    const std::size_t at = bytes.size();
    const std::size_t part = std::min(log_chunk, left);
    bytes.resize(at + part);
    const auto offset = static_cast<sqlite3_int64>(at);
    const int wanted = static_cast<int>(part);
    require_done(as_file(file_)->pMethods->xRead(as_file(file_), bytes.data() + at, wanted, offset), nullptr);
    left -= part;
    scan.add(std::string_view(bytes).substr(scan.result().bytes));
  }
  return scan.result();
}

NNI_INLINE IntactLog WriteAheadLog::write_again(int frames) {
  std::string bytes;
  const IntactLog intact = read(bytes);
  if (intact.frames < frames)
    throw Error(
        Errc::store_corrupt,
        path_.string() + " could not be synced, and of its " + std::to_string(frames) + " pages " +
            std::to_string(intact.frames) +
            " are left: the disk has lost what was written; check it, then resume the "
            "experiment, which continues from what was synced");
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

NNI_INLINE IntactLog intact_part(const std::string& log) {
  LogScan scan;
  scan.add(log);
  return scan.result();
}

}  // namespace nni::datastore::detail

#endif
