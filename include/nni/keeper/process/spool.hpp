#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/system/error_code.hpp>

#include <nni/core/macros.hpp>
#include <nni/files/file.hpp>
#include <nni/files/system.hpp>

namespace nni::keeper {

/// An append-only file of records that nobody has acknowledged yet.
///
/// Records are numbered by positions from 1. An `append` only fills a buffer; `flush` hands everything to the kernel in
/// one write, after which the records survive the end of this process, and after `sync` also a loss of power. What is
/// acknowledged is dropped by `tidy`, which rewrites the rest. Each record carries a checksum, and a tail that was
/// torn by a crash is cut off when the file is opened.
///
/// When the disk refuses a sync, what is needed is read back and written into another file, since nothing that the old
/// one is told from then on can be believed.
///
/// Blocking, for one thread. One process has a spool open; its owner sees to that with a lock.
class Spool {
 public:
  /// Called for records: position and payload, which is valid during the call.
  using Visitor = std::function<void(std::uint64_t position, std::string_view payload)>;

  /// @param system  makes the calls
  explicit Spool(std::shared_ptr<files::System> system = files::System::real()) : system_(std::move(system)) {}
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  /// Opens or creates the file. All records in it count as not acknowledged.
  ///
  /// @param path   its directory exists
  /// @param visit  called for each intact record, in order
  /// @throws Error  `Errc::store_corrupt` when it is no spool or one of another version; a system error when it cannot
  ///                be read or written
  void open(const std::filesystem::path& path, const Visitor& visit);

  /// True after `open`.
  [[nodiscard]] bool is_open() const noexcept { return file_.is_open(); }

  /// Adds a record to the buffer.
  /// @param payload  any bytes; copied
  /// @param keep  the record stays in the file beyond its acknowledgement, until `release`
  /// @returns     its position
  std::uint64_t append(std::string_view payload, bool keep = false);

  /// Writes the buffer. What could not be written stays buffered.
  /// @returns  0, or the `errno` of the failure; call again later
  [[nodiscard]] int flush();

  /// Writes the buffer and waits until everything is on the disk.
  /// @returns  0, or the `errno` of the failure; nothing may be called synced then. Call again later.
  [[nodiscard]] int sync();

  /// Drops from the file what nobody needs any more, when it is large and little of it is needed. Waits for the disk then,
  /// so it comes last, when all written records were delivered. What is in the buffer is written first.
  void tidy();

  /// Takes `count` positions from `first` on as acknowledged; unknown ones are ignored.
  void acknowledge(std::uint64_t first, std::uint64_t count);

  /// Drops every record, also those that are kept, and waits until the disk has forgotten them.
  /// @returns  0, or the `errno` of the failure; call again later
  [[nodiscard]] int drop_all();

  /// Gives up the record at `position`, which was kept.
  void release(std::uint64_t position);

  /// Calls `visit` for written, unacknowledged records from a position on, in order.
  ///
  /// @param from       first position of interest
  /// @param max_bytes  stops after about this much
  /// @param visit      called for each
  /// @returns          the position to continue from; `written_end()` when there is no more
  /// @throws Error  when the file cannot be read, `Errc::store_corrupt` when a record in it is not what was written
  std::uint64_t read(std::uint64_t from, std::size_t max_bytes, const Visitor& visit);

  /// The position that the next record gets.
  [[nodiscard]] std::uint64_t next_position() const noexcept { return base_ + slots_.size(); }

  /// Returns the position after the last record that is in the file.
  [[nodiscard]] std::uint64_t written_end() const noexcept { return next_position() - pending_records_; }

  /// The first position that may be unacknowledged.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return base_; }

  /// Records that nobody acknowledged.
  [[nodiscard]] std::size_t unacknowledged() const noexcept { return unacknowledged_; }

  /// Bytes in the file.
  [[nodiscard]] std::uint64_t size() const noexcept { return end_; }

  /// Empties the file when nothing in it is needed any more; false when something is.
  bool clear_if_unneeded();

 private:
  struct Slot {
    std::uint64_t offset = 0;  ///< of the record's header
    std::uint32_t size = 0;    ///< of header and payload
    bool open = true;          ///< not acknowledged
    bool keep = false;
  };

  boost::system::error_code load(const Visitor& visit);
  boost::system::error_code write_again();
  int write_out();
  boost::system::error_code rewrite();
  void drop_slot_prefix();

  std::shared_ptr<files::System> system_;
  std::filesystem::path path_;
  files::File file_;
  std::uint64_t end_ = 0;  ///< bytes that are written
  std::string pending_;
  std::size_t pending_records_ = 0;  ///< records in the buffer, the last ones of `slots_`
  std::deque<Slot> slots_;           ///< of positions base_, base_ + 1, ...
  std::uint64_t base_ = 1;
  std::map<std::uint64_t, Slot> kept_;  ///< acknowledged, but still needed
  std::size_t unacknowledged_ = 0;
  std::uint64_t needed_bytes_ = 0;
};

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/process/spool_inl.hpp>
#endif
