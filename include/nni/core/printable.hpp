#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>

namespace nni {

namespace detail {

/// One letter of UTF-8 text.
struct Letter {
  std::size_t bytes;  ///< that it takes
  char32_t code;      ///< the replacement character where the bytes are not UTF-8
};

/// The first letter of a text that is not empty.
[[nodiscard]] Letter next_letter(std::string_view text);

}  // namespace detail

/// Whether line ends and tabs may stay in a printable text.
enum class LineEnds {
  blanks,  ///< they become blanks: the text is one line
  kept     ///< they stay
};

/// Returns a text in which everything is replaced that a terminal obeys instead of showing it.
///
/// What trials, stores, keepers and servers say may hold escape sequences, which move the cursor, rename the window or
/// answer questions in place of the user, and marks that turn the direction of the text. Bytes that are not UTF-8 are
/// replaced as well. `Error` and `Log` pass their texts through this function.
/// @param text  any bytes
/// @param ends  what becomes of line ends
[[nodiscard]] std::string printable(std::string_view text, LineEnds ends = LineEnds::blanks);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/printable_inl.hpp>
#endif
