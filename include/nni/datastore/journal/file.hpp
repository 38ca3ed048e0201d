#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>
#include <nni/datastore/journal/line.hpp>
#include <nni/files/file.hpp>
#include <nni/files/system.hpp>

namespace nni::datastore::detail {

/// The file of a journal: opens it at its last whole record, appends, syncs. Blocking.
///
/// Lines are appended in batches, which count once they are committed. Committed bytes that are not certain to be on the
/// disk are held in memory as well: after a failed sync the system may drop them and mark their pages clean.
class JournalFile {
 public:
  /// Called for each line after the first.
  using Visitor = std::function<void(JournalLine& line, std::uint64_t offset)>;

  JournalFile() = default;

  /// Opens a file for writing, makes it when it is missing, and reads it through.
  ///
  /// A tail that a crash has torn is cut off. A damaged line that was synced once is no such tail: then the file is
  /// refused and stays as it is.
  /// @returns  a sentence about a tail that was cut off, for the log; usually empty
  /// @throws Error  `Errc::store_corrupt` saying which line cannot be understood and why; `Errc::storage_failed`
  std::string open(const std::filesystem::path& path, const ExperimentId& id, std::shared_ptr<files::System> system,
                   const Visitor& visit);

  /// Opens a file that exists, to read it up to its last whole record. Nothing is changed.
  /// @throws Error  like `open`, and `Errc::not_found`
  void open_read_only(const std::filesystem::path& path, const ExperimentId& id, std::shared_ptr<files::System> system,
                      const Visitor& visit);

  /// Where the next line will begin.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

  /// How much of the file is on the disk for certain.
  [[nodiscard]] std::uint64_t synced() const noexcept { return synced_; }

  /// Bytes that were committed and are not on the disk for certain.
  [[nodiscard]] std::uint64_t unsynced() const noexcept { return committed_ - synced_; }

  /// How often bytes were removed from the file: cached blocks are stale then.
  [[nodiscard]] std::uint64_t cuts() const noexcept { return cuts_; }

  /// Hands whole lines to the kernel.
  /// @throws Error  `Errc::storage_failed`; call `take_back` then
  void append(std::string_view lines);

  /// Commits what was appended since the last commit.
  void commit();

  /// Discards what was appended since the last commit. Nothing is written before `repair`.
  void take_back() noexcept;

  /// Syncs what was committed before the call to the disk. May run concurrently with the other members, except `repair`.
  /// @throws Error  `Errc::storage_failed`, from then on each time until `repair`
  void sync();

  /// Recovers from calls that have failed: cuts off what was taken back, rewrites what a failed sync may have lost, and
  /// syncs both.
  /// @throws Error  `Errc::storage_failed`; it may be called again
  void repair();

  /// Reads all committed lines again.
  /// @throws Error  `Errc::store_corrupt` when the bytes are not those that were written; `Errc::storage_failed`
  void read_again(const Visitor& visit) const;

  [[nodiscard]] const files::File& file() const noexcept { return file_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  /// The result of reading the whole file.
  struct Scan {
    std::uint64_t end = 0;         ///< after the last whole line
    std::uint64_t synced = 0;      ///< the farthest mark
    std::uint64_t size = 0;        ///< bytes in the file
    std::uint64_t lines = 0;       ///< whole ones
    bool has_lines_after = false;  ///< more than one torn line follows
  };

  /// @param limit  end of the part that is read
  Scan scan(const Visitor& visit, std::uint64_t limit = ~std::uint64_t{0}) const;
  void check_header(std::string_view line, bool is_whole) const;
  [[nodiscard]] std::string keep_aside(std::uint64_t from, std::uint64_t to) const;
  void write_again(std::uint64_t from, std::uint64_t to);
  [[nodiscard]] Error write_error(boost::system::error_code reason) const;

  std::filesystem::path path_;
  files::File file_;
  void begin_at(std::uint64_t end) noexcept { end_ = committed_ = synced_ = tail_begin_ = end; }

  std::atomic<std::uint64_t> end_ = 0;
  std::atomic<std::uint64_t> committed_ = 0;
  std::atomic<std::uint64_t> synced_ = 0;
  std::atomic<std::uint64_t> cuts_ = 0;
  std::mutex syncing_;  // of two syncs that overlap, one could miss that the other has failed
  std::string tail_;    // the bytes from `tail_begin_`, which is at most `synced_`, to the end
  std::uint64_t tail_begin_ = 0;
  bool is_torn_ = false;  // there may be bytes after the last commit, in the file or on the disk
};

/// Reads single lines of a journal through a cache of 2 MiB. For one thread.
class JournalLines {
 public:
  /// @param journal  outlives this object
  explicit JournalLines(const JournalFile& journal) : journal_(journal), blocks_(block_count) {}

  /// The line that begins at an offset.
  /// @throws Error  `Errc::store_corrupt` when it is not the one that was written, `Errc::storage_failed`
  [[nodiscard]] JournalLine at(std::uint64_t offset);

 private:
  struct Block {
    std::uint64_t number = ~std::uint64_t{0};
    std::uint64_t used = 0;  ///< when it was used last
    std::string bytes;
  };
  static constexpr std::size_t block_size = 64 * 1024;
  static constexpr std::size_t block_count = 32;

  /// The bytes of a block from a place on; empty at the end of the file.
  std::string_view bytes_from(std::uint64_t offset);
  [[noreturn]] void fail(std::uint64_t offset) const;

  const JournalFile& journal_;
  std::vector<Block> blocks_;
  std::uint64_t uses_ = 0;
  std::uint64_t cuts_ = 0;  // of the journal, when the blocks were read
  std::string line_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/file_inl.hpp>
#endif
