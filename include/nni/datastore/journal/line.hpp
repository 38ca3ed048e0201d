#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/store_event.hpp>

namespace nni::datastore::detail {

/// A parsed line of a journal.
class JournalLine {
 public:
  enum class Kind : std::uint8_t {
    event,    ///< `event` holds it
    session,  ///< a process began to write
    synced,   ///< everything before byte `synced` was synced
    closed    ///< the same, and the process closed the store
  };

  JournalLine() = default;

  Kind kind = Kind::event;
  StoreEvent event;
  std::uint64_t before = 0;  ///< of a metric: where the line of the trial's value before it begins; 0: it is the first
  bool has_params = true;    ///< of a profile; false: its `params` are those of the profile before it
  std::uint64_t synced = 0;
  std::uint64_t here = 0;  ///< of `synced` and `closed`: where the line was written
};

/// Returns the JSON text of a line whose checksum matches.
/// @param line    without its newline
/// @param offset  where it begins in the file
/// @returns       nothing when it does not
[[nodiscard]] std::optional<std::string_view> checked_line(std::string_view line, std::uint64_t offset) noexcept;

/// Parses the JSON text of a line after the first. Only the writer's own spelling is accepted: the checksum guarantees it,
/// and the version determines it.
/// @returns nothing for any other text
[[nodiscard]] std::optional<JournalLine> parse_journal_line(std::string_view json);

/// Returns the version in the JSON text of a first line.
/// @returns nothing when it is not the first line of a journal
[[nodiscard]] std::optional<std::uint64_t> parse_journal_header(std::string_view json);

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/line_inl.hpp>
#endif
