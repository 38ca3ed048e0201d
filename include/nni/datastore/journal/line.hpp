#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/store_event.hpp>

namespace nni::datastore::detail {

/// A line of a journal, understood.
class JournalLine {
 public:
  enum class Kind : std::uint8_t {
    event,    ///< `event` holds it
    session,  ///< a process began to write
    synced,   ///< everything before byte `synced` is on the disk
    closed    ///< likewise, and the process ended its work
  };

  JournalLine() = default;

  Kind kind = Kind::event;
  StoreEvent event;
  std::uint64_t before = 0;  ///< of a metric: where the line of the trial's value before it begins; 0: it is the first
  bool has_params = true;    ///< of a profile; false: its `params` are those of the profile before it
  std::uint64_t synced = 0;
  std::uint64_t here = 0;  ///< of `synced` and `closed`: where the line was written
};

/// The JSON text of a line that is whole.
/// @param line    without its newline
/// @param offset  where it begins in the file
/// @returns       nothing when the checksum does not fit
[[nodiscard]] std::optional<std::string_view> checked_line(std::string_view line, std::uint64_t offset) noexcept;

/// Understands the JSON text of a line behind the first. Only the writer's own spelling is taken: the checksum vouches
/// for it, and the version says which one it is.
/// @returns nothing when it is none
[[nodiscard]] std::optional<JournalLine> parse_journal_line(std::string_view json);

/// The version that the JSON text of a first line speaks of.
/// @returns nothing when it is not the first line of a journal
[[nodiscard]] std::optional<std::uint64_t> parse_journal_header(std::string_view json);

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/line_inl.hpp>
#endif
