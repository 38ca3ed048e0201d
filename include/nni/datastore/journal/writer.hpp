#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/owner_lock.hpp>

namespace nni::datastore::detail {

/// The version of the format that is written and read (docs/formats/journal.md).
inline constexpr std::uint64_t journal_version = 1;

/// How a journal begins, up to its version.
inline constexpr std::string_view journal_name = "{\"journal\":\"nni\",\"version\":";

/// Eight digits and a blank before the JSON text of each line.
inline constexpr std::size_t journal_sum_size = 9;

/// Writes lines of a journal: checksum, blank, JSON text, newline.
///
/// The checksum is the CRC-32C of the JSON text in eight hexadecimal digits, seeded not with zero but with the place of
/// the line in the file (its low 32 bits): a line that was removed, added or moved is detected like one that was changed.
class JournalWriter {
 public:
  /// @param text    is appended to
  /// @param offset  where the text begins in the file
  JournalWriter(std::string& text, std::uint64_t offset) noexcept : text_(text), base_(offset - text.size()) {}

  /// Where the next line will begin.
  [[nodiscard]] std::uint64_t offset() const noexcept { return base_ + text_.size(); }

  /// Clears the text, which is in the file now; the next line follows it there.
  void clear() noexcept {
    base_ += text_.size();
    text_.clear();
  }

  /// The first line of a file.
  void header(const ExperimentId& id);

  /// @param before  for a metric: where the line of the trial's value before it begins; 0: there is none
  void event(const StoreEvent& event, std::uint64_t before = 0);

  /// A profile whose `params` are those of the profile before it: one is written every ten seconds.
  void profile_with_params_as_before(const ProfileChanged& event);

  void session(const Owner& owner, TimePoint at);
  void synced(std::uint64_t bytes);
  void closed(std::uint64_t bytes, TimePoint at);

 private:
  void begin();
  void end();

  std::string& text_;
  std::uint64_t base_;
  std::size_t begin_ = 0;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/writer_inl.hpp>
#endif
