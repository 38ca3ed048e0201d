#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/macros.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/printable.hpp>
#include <nni/core/time.hpp>

/// @file
/// Text for terminals as pure functions: widths, lines of colored spans, tables.

namespace nni::console {

/// Style of text; `plain` is the terminal's own color.
enum class Look : std::uint8_t {
  plain,   ///< normal text
  strong,  ///< important
  faint,   ///< secondary
  good,    ///< a success
  bad,     ///< a failure
  notice   ///< a warning
};

/// A span of a line with one style.
struct Span {
  std::string text;         ///< content
  Look look = Look::plain;  ///< style
};

/// The spans of one line, without its end.
using Line = std::vector<Span>;

using nni::printable;

/// Returns the columns that a terminal needs for UTF-8 text without control characters. East Asian letters take two.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Shortens text to a maximum of `columns`, with an ellipsis of three dots. Never splits a letter.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t columns);

/// Returns the bytes of a line of at most `columns` columns, without its end.
/// @param color  emit color codes
[[nodiscard]] std::string render_line(const Line& line, std::size_t columns, bool color);

/// Breaks words onto lines of at most `columns` columns; a longer word is shortened.
/// @param limit  maximum number of lines; the last one is shortened if there are more
[[nodiscard]] std::vector<std::string> wrap_words(
    const std::vector<std::string>& words, std::size_t columns, std::size_t limit);

/// A table of text.
struct Table {
  std::vector<std::string> headers;            ///< one for each column
  std::vector<std::vector<std::string>> rows;  ///< as many cells as headers each
};

/// A table as lines without line ends.
struct TableText {
  std::vector<std::string> header;  ///< at least one line
  std::vector<std::string> rows;    ///< one line for each row
  bool cut = false;                 ///< cells or headers had to be shortened
};

/// Lays out a table: two blanks between columns, numbers right-aligned. Wide headers are broken at `_` and
/// `/`; if that is not enough, the cells of the widest columns are shortened.
///
/// @param columns  width of the terminal; 0: unlimited
[[nodiscard]] TableText render_table(const Table& table, std::size_t columns);

/// Returns the parameters as names and short values (`learning_rate`, `0.00312`). Keys of a nested choice are joined by
/// slashes. Text that is not a JSON object becomes one unnamed value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> parameter_cells(const Parameters& parameters);

/// Formats a number with six significant digits.
[[nodiscard]] std::string short_number(double value);

/// Formats a count: `12,345`.
[[nodiscard]] std::string grouped(std::uint64_t count);

/// Formats the rate of `count` events per `time`, in a suitable unit: `12.3/s`, `4.1/min`, `2.0/h`; empty for
/// no events.
[[nodiscard]] std::string render_rate(std::uint64_t count, Duration time);

}  // namespace nni::console

#if NNI_HEADER_ONLY
#include <nni/console/text_inl.hpp>
#endif
