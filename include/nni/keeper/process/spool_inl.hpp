#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include <nni/core/crash_point.hpp>
#include <nni/core/error.hpp>
#include <nni/files/directory.hpp>
#include <nni/keeper/process/spool.hpp>
#include <nni/keeper/wire/encoding.hpp>
#include <nni/keeper/wire/protocol.hpp>

namespace nni::keeper {

namespace detail {

// File: 16 bytes of header (magic, version, checksum of both), then records.
// Record: size of the payload (4), checksum of what follows (4), position (8), payload.
inline constexpr std::string_view spool_magic = "NNISPOOL";
inline constexpr std::uint32_t spool_version = 1;
inline constexpr std::size_t spool_header_size = 16;
inline constexpr std::size_t record_header_size = 16;
inline constexpr std::uint64_t worth_compacting = 4 * 1024 * 1024;
inline constexpr std::size_t load_chunk = 1024 * 1024;  // of a file is in memory at a time, or one larger record

NNI_INLINE std::string spool_header() {
  std::string header(spool_magic);
  header.resize(spool_header_size);
  store_u32(header.data() + 8, spool_version);
  store_u32(header.data() + 12, crc32c(std::string_view(header.data(), 12)));
  return header;
}

struct StoredRecord {
  std::uint64_t position = 0;
  std::string_view payload;
  std::size_t size = 0;  ///< header and payload
};

/// The record at the start of some bytes; nothing when it is torn or damaged.
NNI_INLINE std::optional<StoredRecord> parse_record(std::string_view bytes) {
  if (bytes.size() < record_header_size) return std::nullopt;
  const std::size_t size = load_u32(bytes.data());
  if (size > max_frame_payload || bytes.size() < record_header_size + size) return std::nullopt;
  const std::string_view summed = bytes.substr(8, 8 + size);
  if (crc32c(summed) != load_u32(bytes.data() + 4)) return std::nullopt;
  StoredRecord record;
  record.position = load_u64(bytes.data() + 8);
  record.payload = bytes.substr(record_header_size, size);
  record.size = record_header_size + size;
  return record;
}

/// Header and payload of the record that begins with some bytes, as it says itself; 0 when that is impossible.
NNI_INLINE std::size_t claimed_size(std::string_view bytes) {
  if (bytes.size() < record_header_size) return record_header_size;
  const std::size_t size = load_u32(bytes.data());
  return size > max_frame_payload ? 0 : record_header_size + size;
}

NNI_INLINE Error spool_error(boost::system::error_code error, const std::filesystem::path& path, const char* problem) {
  return Error(error, "the spool " + path.string() + " " + problem);
}

}  // namespace detail

NNI_INLINE void Spool::open(const std::filesystem::path& path, const Visitor& visit) {
  path_ = path;
  boost::system::error_code failure = file_.open(path, files::Access::write, system_);
  std::uint64_t bytes = 0;
  if (!failure) failure = file_.size(bytes);
  std::string found(detail::spool_header_size, '\0');
  std::size_t got = 0;
  if (!failure) failure = file_.read(found.data(), found.size(), 0, got);
  found.resize(got);
  if (failure && failure != boost::system::errc::no_such_file_or_directory)
    throw detail::spool_error(failure, path, "cannot be read");

  const std::string header = detail::spool_header();
  // A file that ends within the header was created by a process that died at once: nothing is lost with it.
  if (found.size() < detail::spool_header_size) {
    if ((failure = files::replace_file(system_, path, header, file_, 0600)))
      throw detail::spool_error(failure, path, "cannot be written");
    end_ = header.size();
    return;
  }
  if (!found.starts_with(detail::spool_magic))
    throw Error(
        Errc::store_corrupt, "the file " + path.string() + " is not a spool; move it away to continue without it");
  if (found != header)
    throw Error(
        Errc::store_corrupt,
        "the spool " + path.string() +
            " was written by another version of this library; finish the experiment with "
            "that version, or move the file away and lose what is in it");
  if ((failure = load(visit))) throw detail::spool_error(failure, path, "cannot be read");
  if (bytes > end_) {
    // On the disk before anything is written after the cut: no loss of power may join old bytes to new ones.
    if ((failure = file_.truncate(end_))) throw detail::spool_error(failure, path, "cannot be shortened");
    if ((failure = file_.sync())) throw detail::spool_error(failure, path, "cannot be shortened");
  }
  // The process before this one may have seen a sync fail, after which the kernel takes these bytes for clean. Written
  // again, they are part of the next sync.
  if (const auto refused = write_again()) file_.set_poison(refused);
  // Nor does anything say that the name of the file ever got to the disk.
  if (const auto unsynced = files::sync_directory(*system_, path.parent_path())) file_.set_poison(unsynced);
}

NNI_INLINE boost::system::error_code Spool::load(const Visitor& visit) {
  end_ = detail::spool_header_size;
  bool first = true;
  std::string chunk;
  for (std::size_t wanted = detail::load_chunk;;) {
    chunk.resize(wanted);
    std::size_t got = 0;
    if (const auto failure = file_.read(chunk.data(), wanted, end_, got)) return failure;
    std::string_view rest(chunk.data(), got);
    while (const auto record = detail::parse_record(rest)) {
      if (first)
        base_ = record->position;
      else if (record->position < next_position())
        return {};  // positions rise; anything else is left over from an earlier use of these bytes
      first = false;
      while (next_position() < record->position)
        slots_.push_back(Slot{end_, 0, false, false});  // rewritten without these
      slots_.push_back(Slot{end_, static_cast<std::uint32_t>(record->size), true, false});
      ++unacknowledged_;
      needed_bytes_ += record->size;
      end_ += record->size;
      rest.remove_prefix(record->size);
      visit(record->position, record->payload);
    }
    if (got < wanted) return {};
    const std::size_t claimed = detail::claimed_size(rest);
    if (claimed <= rest.size()) return {};  // it is here, and damaged
    wanted = std::max(detail::load_chunk, claimed);
  }
}

NNI_INLINE boost::system::error_code Spool::write_again() {
  std::string chunk;
  for (std::uint64_t at = 0; at < end_; at += chunk.size()) {
    chunk.resize(static_cast<std::size_t>(std::min<std::uint64_t>(detail::load_chunk, end_ - at)));
    std::size_t got = 0;
    if (const auto failure = file_.read(chunk.data(), chunk.size(), at, got)) return failure;
    if (got != chunk.size()) return {EIO, boost::system::system_category()};
    if (const auto failure = file_.write(chunk, at)) return failure;
  }
  return {};
}

NNI_INLINE std::uint64_t Spool::append(std::string_view payload, bool keep) {
  const std::uint64_t position = next_position();
  const std::size_t at = pending_.size();
  const auto size = static_cast<std::uint32_t>(detail::record_header_size + payload.size());
  try {
    pending_.resize(at + detail::record_header_size);
    pending_.append(payload);
    slots_.push_back(Slot{end_ + at, size, true, keep});
  } catch (...) {
    pending_.resize(at);  // without memory for all of it nothing of it is written
    throw;
  }
  char* const header = pending_.data() + at;
  store_u32(header, static_cast<std::uint32_t>(payload.size()));
  store_u64(header + 8, position);
  store_u32(header + 4, crc32c(std::string_view(header + 8, 8 + payload.size())));
  ++pending_records_;
  ++unacknowledged_;
  needed_bytes_ += size;
  return position;
}

NNI_INLINE int Spool::write_out() {
  if (pending_.empty()) return 0;
  if (const auto failure = file_.write(pending_, end_)) return failure.value();  // the next try writes them all again
  end_ += pending_.size();
  pending_.clear();
  if (pending_.capacity() > detail::kept_capacity) pending_.shrink_to_fit();
  pending_records_ = 0;
  return 0;
}

NNI_INLINE int Spool::flush() { return write_out(); }

NNI_INLINE int Spool::sync() {
  if (const int error = write_out()) return error;
  if (!file_.sync()) return 0;
  return rewrite().value();
}

NNI_INLINE void Spool::drop_slot_prefix() {
  while (slots_.size() > pending_records_ && !slots_.front().open) {
    slots_.pop_front();
    ++base_;
  }
}

NNI_INLINE void Spool::acknowledge(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t from = std::max(first, base_);
  const std::uint64_t until = count > written_end() ? written_end() : std::min(first + count, written_end());
  for (std::uint64_t position = from; position < until; ++position) {
    Slot& slot = slots_[static_cast<std::size_t>(position - base_)];
    if (!slot.open) continue;
    slot.open = false;
    --unacknowledged_;
    if (slot.keep)
      kept_.emplace(position, slot);
    else
      needed_bytes_ -= slot.size;
  }
  drop_slot_prefix();
}

NNI_INLINE int Spool::drop_all() {
  if (const int error = write_out()) return error;
  acknowledge(base_, next_position() - base_);
  kept_.clear();
  needed_bytes_ = 0;
  if (const auto failure = file_.truncate(detail::spool_header_size)) return failure.value();
  end_ = detail::spool_header_size;
  return sync();
}

NNI_INLINE void Spool::release(std::uint64_t position) {
  if (const auto found = kept_.find(position); found != kept_.end()) {
    needed_bytes_ -= found->second.size;
    kept_.erase(found);
  } else if (position >= base_ && position < next_position()) {
    slots_[static_cast<std::size_t>(position - base_)].keep = false;
  }
}

NNI_INLINE std::uint64_t Spool::read(std::uint64_t from, std::size_t max_bytes, const Visitor& visit) {
  std::uint64_t position = std::max(from, base_);
  while (position < written_end() && !slots_[static_cast<std::size_t>(position - base_)].open) ++position;
  if (position >= written_end()) return written_end();
  const std::uint64_t offset = slots_[static_cast<std::size_t>(position - base_)].offset;
  const std::uint64_t first_size = slots_[static_cast<std::size_t>(position - base_)].size;
  const std::uint64_t wanted = std::min(std::max<std::uint64_t>(max_bytes, first_size), end_ - offset);
  std::string chunk(static_cast<std::size_t>(wanted), '\0');
  std::size_t got = 0;
  if (const auto failure = file_.read(chunk.data(), chunk.size(), offset, got))
    throw detail::spool_error(failure, path_, "cannot be read");
  std::string_view rest(chunk.data(), got);
  if (!detail::parse_record(rest))
    throw Error(Errc::store_corrupt,
                "the spool " + path_.string() + " gives back other bytes than were written at " +
                    std::to_string(offset) + "; look into the system's log for errors of the disk");
  while (const auto record = detail::parse_record(rest)) {
    rest.remove_prefix(record->size);
    position = record->position + 1;
    // Records that are only kept lie between the others; their slots may be gone.
    if (record->position >= base_ && slots_[static_cast<std::size_t>(record->position - base_)].open)
      visit(record->position, record->payload);
  }
  return position;
}

NNI_INLINE bool Spool::clear_if_unneeded() {
  if (unacknowledged_ != 0 || !kept_.empty() || pending_records_ != 0) return false;
  if (file_.truncate(detail::spool_header_size)) return false;
  NNI_CRASH_POINT("keeper: checkpoint");
  end_ = detail::spool_header_size;
  return true;
}

NNI_INLINE void Spool::tidy() {
  if (end_ < detail::worth_compacting || needed_bytes_ > end_ / 4 || write_out() != 0) return;
  if (clear_if_unneeded()) return;
  (void)rewrite();  // a failure leaves the old file in use; the next call tries again
}

NNI_INLINE boost::system::error_code Spool::rewrite() {
  std::vector<std::pair<std::uint64_t, Slot*>> needed;
  needed.reserve(kept_.size() + slots_.size());
  for (auto& [position, slot] : kept_) needed.emplace_back(position, &slot);
  for (std::size_t at = 0; at < slots_.size(); ++at)
    if (slots_[at].open) needed.emplace_back(base_ + at, &slots_[at]);
  std::sort(needed.begin(), needed.end());

  std::string content = detail::spool_header();
  std::vector<std::uint64_t> offsets;
  offsets.reserve(needed.size());
  for (const auto& [position, slot] : needed) {
    offsets.push_back(content.size());
    const std::size_t at = content.size();
    content.resize(at + slot->size);
    std::size_t got = 0;
    if (const auto failure = file_.read(content.data() + at, slot->size, slot->offset, got)) return failure;
    const auto record = detail::parse_record(std::string_view(content).substr(at, got));
    if (!record || record->position != position) return {EIO, boost::system::system_category()};
  }

  files::File fresh;
  NNI_CRASH_POINT("keeper: checkpoint");
  const boost::system::error_code failure = files::replace_file(system_, path_, content, fresh, 0600);
  NNI_CRASH_POINT("keeper: checkpoint");
  if (!fresh.is_open()) return failure;
  file_ = std::move(fresh);
  end_ = content.size();
  needed_bytes_ = 0;
  for (std::size_t at = 0; at < needed.size(); ++at) {
    needed[at].second->offset = offsets[at];
    needed_bytes_ += needed[at].second->size;
  }
  return failure;
}

}  // namespace nni::keeper
