#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/datastore/common/experiment_home.hpp>
#include <nni/datastore/journal/file.hpp>
#include <nni/datastore/journal/writer.hpp>
#include <nni/files/directory.hpp>

namespace nni::datastore::detail {

/// Maximum size of a line: a foreign file may have one without an end.
inline constexpr std::size_t longest_line = 64 * 1024 * 1024;

/// Gives the lines of a file one after the other.
class JournalLineSource {
 public:
  /// @param limit  where it ends if the file does not end before
  JournalLineSource(const JournalFile& journal, std::uint64_t limit) : journal_(journal), limit_(limit) {}

  /// @param line  set to the next line, without its newline; at the end to what follows the last newline. Empty for
  ///              one that is longer than any that this library writes
  /// @returns     false at the end
  bool next(std::string_view& line) {
    offset_ = begin_ + at_;
    line = {};
    bool is_too_long = false;
    for (;;) {
      const void* const found = std::memchr(bytes_.data() + searched_, '\n', bytes_.size() - searched_);
      if (found != nullptr) {
        const auto end = static_cast<std::size_t>(static_cast<const char*>(found) - bytes_.data());
        if (!is_too_long) line = std::string_view(bytes_).substr(at_, end - at_);
        at_ = searched_ = end + 1;
        return true;
      }
      searched_ = bytes_.size();
      if (searched_ - at_ > longest_line) is_too_long = true;
      if (is_too_long) at_ = searched_;  // no more of it is held
      if (!fill()) break;
    }
    if (!is_too_long) line = std::string_view(bytes_).substr(at_);
    return false;
  }

  /// Where the line that was given last begins.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }

  /// Bytes read so far: at the end, those of the file.
  [[nodiscard]] std::uint64_t size() const noexcept { return begin_ + bytes_.size(); }

 private:
  bool fill() {
    constexpr std::size_t chunk = 1024 * 1024;
    bytes_.erase(0, at_);
    begin_ += at_;
    searched_ -= at_;
    at_ = 0;
    const std::size_t before = bytes_.size();
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(chunk, limit_ - (begin_ + before)));
    bytes_.resize(before + wanted);
    std::size_t got = 0;
    const auto failure = journal_.file().read(bytes_.data() + before, wanted, begin_ + before, got);
    bytes_.resize(before + got);
    if (failure) throw storage_error("cannot read " + journal_.path().string(), failure);
    return got > 0;
  }

  const JournalFile& journal_;
  std::uint64_t limit_;
  std::string bytes_;
  std::uint64_t begin_ = 0;   // of the bytes, in the file
  std::size_t at_ = 0;        // where the next line begins
  std::size_t searched_ = 0;  // no newline before this
  std::uint64_t offset_ = 0;
};

/// Whether a line states that a place was synced once. The line itself may have moved: it records its own place.
NNI_INLINE bool vouches_for(std::string_view line, std::uint64_t place) {
  const auto parsed = parse_journal_line(line.substr(std::min(line.size(), journal_sum_size)));
  return parsed && parsed->synced > place && checked_line(line, parsed->here);
}

NNI_INLINE std::string place_of(std::uint64_t line, std::uint64_t offset) {
  return "line " + std::to_string(line) + " (byte " + std::to_string(offset) + ")";
}

NNI_INLINE void JournalFile::check_header(std::string_view line, bool is_whole) const {
  const std::string name = "the file " + path_.string();
  const std::string_view json = line.substr(std::min(line.size(), journal_sum_size));
  const auto version = parse_journal_header(json);
  if (!version)
    throw Error(Errc::store_corrupt, name + " is not a journal of this library; move it away to begin a new one");
  if (*version != journal_version)
    throw Error(Errc::store_corrupt,
                name + " is a journal of version " + std::to_string(*version) + ", and this library supports " +
                    std::to_string(journal_version) + "; use the release that wrote it");
  if (!is_whole || !checked_line(line, 0))
    throw Error(
        Errc::store_corrupt, name + " is damaged in line 1: its checksum does not match; restore the file from a copy");
}

NNI_INLINE JournalFile::Scan JournalFile::scan(const Visitor& visit, std::uint64_t limit) const {
  Scan result;
  JournalLineSource source(*this, limit);
  std::string_view line;
  bool is_whole = source.next(line);
  check_header(line, is_whole);
  result.lines = 1;
  std::optional<std::uint64_t> damaged;
  while ((is_whole = source.next(line))) {
    const std::uint64_t offset = source.offset();
    if (damaged) {
      if (!vouches_for(line, *damaged)) continue;
      throw Error(
          Errc::store_corrupt,
          "the journal " + path_.string() + " is damaged in " + place_of(result.lines + 1, *damaged) +
              ": its checksum does not match, and it was synced once, so no crash explains it; restore the file "
              "from a copy, or cut it there to continue without what follows: truncate -s " +
              std::to_string(*damaged) + " " + path_.string());
    }
    const auto json = checked_line(line, offset);
    if (!json) {
      damaged = offset;
      continue;
    }
    auto parsed = parse_journal_line(*json);
    const auto cannot = [&](const std::string& why) {
      return Error(Errc::store_corrupt, "the journal " + path_.string() + " cannot be understood in " +
                                            place_of(result.lines + 1, offset) + ": " + why);
    };
    if (!parsed) throw cannot("this version knows no such record: " + std::string(json->substr(0, 200)));
    try {
      visit(*parsed, offset);
    } catch (const Error& error) {
      throw cannot(error.what());
    }
    result.synced = std::max(result.synced, parsed->synced);
    ++result.lines;
    result.end = offset + line.size() + 1;
  }
  if (result.lines == 1) result.end = damaged ? *damaged : source.offset();
  result.size = source.size();
  result.has_lines_after = damaged.has_value();
  return result;
}

NNI_INLINE std::string JournalFile::open(const std::filesystem::path& path, const ExperimentId& id,
                                         std::shared_ptr<files::System> system, const Visitor& visit) {
  path_ = path;
  const std::string name = path.string();
  boost::system::error_code failure = file_.open(path, files::Access::write, system);
  if (failure && failure != boost::system::errc::no_such_file_or_directory)
    throw storage_error("cannot open " + name, failure);
  std::uint64_t size = 0;
  if (file_.is_open() && (failure = file_.size(size))) throw storage_error("cannot read " + name, failure);
  if (size == 0) {
    std::string header;
    JournalWriter(header, 0).header(id);
    if ((failure = files::replace_file(system, path, header, file_)))
      throw storage_error("cannot write " + name, failure);
    begin_at(header.size());
    return {};
  }

  const Scan found = scan(visit);
  std::string remark;
  if (found.size > found.end) {
    const std::string aside = found.has_lines_after ? keep_aside(found.end, found.size) : std::string();
    // Synced before anything is written after the cut: no loss of power may join old bytes to new ones.
    if ((failure = file_.truncate(found.end))) throw storage_error("cannot shorten " + name, failure);
    if ((failure = file_.sync())) throw storage_error("cannot shorten " + name, failure);
    remark = "the journal " + name + " ended in " + std::to_string(found.size - found.end) +
             " bytes that a crash or a loss of power had left unfinished; it was cut after its last whole record, " +
             std::to_string(found.lines) + " lines, " + std::to_string(found.end) + " bytes" + aside;
  }
  // The process before this one may have seen a sync fail, after which the kernel takes these bytes for clean. Written
  // again, they are part of this one.
  if (found.synced < found.end) {
    write_again(found.synced, found.end);
    if ((failure = file_.sync())) throw storage_error("cannot sync " + name + " to the disk", failure);
  }
  // Nor does anything say that the name of the file ever got there.
  sync_directory(path.parent_path(), *system);
  begin_at(found.end);
  return remark;
}

NNI_INLINE void JournalFile::open_read_only(const std::filesystem::path& path, const ExperimentId& id,
                                            std::shared_ptr<files::System> system, const Visitor& visit) {
  path_ = path;
  const boost::system::error_code failure = file_.open(path, files::Access::read, std::move(system));
  if (failure == boost::system::errc::no_such_file_or_directory)
    throw Error(Errc::not_found, "there is no experiment " + id.value + ": " + path.string() +
                                     " does not exist; check the directory and the id");
  if (failure) throw storage_error("cannot open " + path.string(), failure);
  end_ = scan(visit).end;
}

NNI_INLINE std::string JournalFile::keep_aside(std::uint64_t from, std::uint64_t to) const {
  // What an earlier cut has kept stays.
  std::string name = path_.string() + ".cut";
  files::File copy;
  boost::system::error_code failure = copy.open(name, files::Access::fresh);
  for (int number = 2; failure == boost::system::errc::file_exists && number < 10'000; ++number) {
    name = path_.string() + ".cut" + std::to_string(number);
    failure = copy.open(name, files::Access::fresh);
  }
  std::string bytes(std::min<std::uint64_t>(to - from, 1024 * 1024), '\0');
  for (std::uint64_t at = from; !failure && at < to;) {
    std::size_t got = 0;
    failure = file_.read(bytes.data(), std::min<std::uint64_t>(to - at, bytes.size()), at, got);
    if (!failure) failure = copy.write(std::string_view(bytes).substr(0, got), at - from);
    if (got == 0) break;
    at += got;
  }
  return failure ? std::string() : "; what was cut off is kept in " + name;
}

NNI_INLINE void JournalFile::write_again(std::uint64_t from, std::uint64_t to) {
  std::string bytes(std::min<std::uint64_t>(to - from, 1024 * 1024), '\0');
  while (from < to) {
    std::size_t got = 0;
    boost::system::error_code failure =
        file_.read(bytes.data(), std::min<std::uint64_t>(to - from, bytes.size()), from, got);
    if (!failure) failure = file_.write(std::string_view(bytes).substr(0, got), from);
    if (failure) throw write_error(failure);
    if (got == 0) break;
    from += got;
  }
}

NNI_INLINE void JournalFile::append(std::string_view lines) {
  if (const auto failure = file_.write(lines, end_)) throw write_error(failure);
  tail_ += lines;
  end_ += lines.size();
}

NNI_INLINE void JournalFile::commit() {
  committed_ = end_.load();
  const std::uint64_t synced = synced_;
  const auto done = static_cast<std::size_t>(synced - tail_begin_);
  if (done <= tail_.size() / 2) return;  // moved seldom, for the sake of those who sync seldom
  tail_.erase(0, done);
  tail_begin_ = synced;
}

NNI_INLINE void JournalFile::take_back() noexcept {
  end_ = committed_.load();
  tail_.resize(static_cast<std::size_t>(end_ - tail_begin_));
  is_torn_ = true;
  // At once if that is possible, so that a process which dies now leaves whole batches. `repair` makes certain of it.
  if (!file_.truncate(end_)) ++cuts_;
}

NNI_INLINE void JournalFile::sync() {
  const std::lock_guard one(syncing_);
  const std::uint64_t covered = committed_;
  if (const auto failure = file_.sync()) throw storage_error("cannot sync " + path_.string() + " to the disk", failure);
  synced_ = covered;
}

NNI_INLINE void JournalFile::repair() {
  if (!is_torn_ && !file_.poison()) return;
  if (is_torn_) {
    if (const auto failure = file_.truncate(committed_))
      throw storage_error("cannot shorten " + path_.string(), failure);
    ++cuts_;
  }
  if (file_.poison()) {
    // In place: a process that is killed now leaves what was written before.
    const auto known = static_cast<std::size_t>(synced_ - tail_begin_);
    if (const auto failure = file_.write(std::string_view(tail_).substr(known), synced_)) throw write_error(failure);
    file_.lift_poison();
  }
  // Sync the cut before anything is written after it: no loss of power may join old bytes to new ones.
  sync();
  is_torn_ = false;
}

NNI_INLINE void JournalFile::read_again(const Visitor& visit) const {
  const std::uint64_t expected = committed_;
  const std::uint64_t found = scan(visit, expected).end;
  if (found == expected) return;
  throw Error(Errc::store_corrupt, "the journal " + path_.string() + " gives back other bytes than were written at " +
                                       std::to_string(found) + "; look into the system's log for errors of the disk");
}

NNI_INLINE Error JournalFile::write_error(boost::system::error_code reason) const {
  if (reason == boost::system::errc::no_space_on_device)
    return Error(Errc::storage_failed, "the disk is full: cannot write " + path_.string() + "; free space there");
  return storage_error("cannot write " + path_.string(), reason);
}

NNI_INLINE void JournalLines::fail(std::uint64_t offset) const {
  throw Error(Errc::store_corrupt,
              "the journal " + journal_.path().string() + " gives back other bytes than were written at " +
                  std::to_string(offset) + "; look into the system's log for errors of the disk");
}

NNI_INLINE std::string_view JournalLines::bytes_from(std::uint64_t offset) {
  if (const std::uint64_t now = journal_.cuts(); now != cuts_) {
    for (Block& block : blocks_) block.number = ~std::uint64_t{0};
    cuts_ = now;
  }
  const std::uint64_t number = offset / block_size;
  const auto within = static_cast<std::size_t>(offset % block_size);
  Block* chosen = &blocks_.front();
  for (Block& block : blocks_) {
    if (block.number == number) {
      chosen = &block;
      break;
    }
    if (block.used < chosen->used) chosen = &block;
  }
  Block& block = *chosen;
  block.used = ++uses_;
  // The last block of the file grows.
  if (block.number != number || (block.bytes.size() <= within && block.bytes.size() < block_size)) {
    block.number = number;
    block.bytes.resize(block_size);
    std::size_t got = 0;
    const auto failure = journal_.file().read(block.bytes.data(), block_size, number * block_size, got);
    block.bytes.resize(got);
    if (failure) throw storage_error("cannot read " + journal_.path().string(), failure);
  }
  return std::string_view(block.bytes).substr(std::min(within, block.bytes.size()));
}

NNI_INLINE JournalLine JournalLines::at(std::uint64_t offset) {
  line_.clear();
  for (;;) {
    const std::string_view bytes = bytes_from(offset + line_.size());
    const std::size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (end != std::string_view::npos) break;
    if (bytes.empty()) fail(offset);
  }
  const auto json = checked_line(line_, offset);
  auto parsed = json ? parse_journal_line(*json) : std::nullopt;
  if (!parsed) fail(offset);
  return std::move(*parsed);
}

}  // namespace nni::datastore::detail
