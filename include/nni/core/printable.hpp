#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>

namespace nni {

namespace detail {

/// One letter of UTF-8 text.
struct Letter {
  std::size_t bytes;  ///< its length
  char32_t code;      ///< U+FFFD for invalid UTF-8
};

/// Returns the first letter of a non-empty text.
[[nodiscard]] Letter next_letter(std::string_view text);

}  // namespace detail

/// Treatment of line ends and tabs in a printable text.
enum class LineEnds {
  blanks,  ///< replaced by blanks: the text becomes one line
  kept     ///< unchanged
};

/// Returns a text without terminal control sequences.
///
/// Text from trials, stores, keepers and servers may contain escape sequences, which move the cursor, rename the window or
/// answer prompts in place of the user, and marks that change the text direction. Invalid UTF-8 is
/// replaced as well. `Error` and `Log` pass their texts through this function.
/// @param ends  treatment of line ends
[[nodiscard]] std::string printable(std::string_view text, LineEnds ends = LineEnds::blanks);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/printable_inl.hpp>
#endif
