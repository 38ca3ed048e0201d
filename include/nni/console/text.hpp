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
/// Text for terminals as pure functions: widths, lines of coloured pieces, tables.

namespace nni::console {

/// How text looks; `plain` is the terminal's own colour.
enum class Look : std::uint8_t {
  plain,   ///< as everything else
  strong,  ///< what matters
  faint,   ///< what may be overlooked
  good,    ///< a success
  bad,     ///< a failure
  notice   ///< neither, but worth a look
};

/// A piece of a line.
struct Span {
  std::string text;         ///< what is shown
  Look look = Look::plain;  ///< how it is shown
};

/// The pieces of one line, without its end.
using Line = std::vector<Span>;

using nni::printable;

/// Columns that a terminal needs for UTF-8 text without control characters. East Asian letters take two.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// Shortens text to so many columns; what is left out is shown by three dots. Never cuts a letter in two.
[[nodiscard]] std::string shorten(std::string_view text, std::size_t columns);

/// The bytes of a line of at most `columns` columns, without its end.
/// @param color  emit colour codes
[[nodiscard]] std::string render_line(const Line& line, std::size_t columns, bool color);

/// Breaks words onto lines of at most `columns` columns; a longer word is shortened.
/// @param limit  lines at most; the last one is shortened when there is more
[[nodiscard]] std::vector<std::string> wrap_words(
    const std::vector<std::string>& words, std::size_t columns, std::size_t limit);

/// A table of text.
struct Table {
  std::vector<std::string> headers;            ///< one for each column
  std::vector<std::vector<std::string>> rows;  ///< as many cells each as there are headers
};

/// A table as lines without their ends.
struct TableText {
  std::vector<std::string> header;  ///< one line or more
  std::vector<std::string> rows;    ///< one line for each row
  bool cut = false;                 ///< cells or headers had to be shortened
};

/// Lays out a table: two blanks between columns, numbers to the right. Headers that are too wide are broken at `_` and
/// `/`; when that is not enough, the cells of the widest columns are shortened.
///
/// @param columns  columns of the terminal, 0 for as many as needed
[[nodiscard]] TableText render_table(const Table& table, std::size_t columns);

/// The parameters as names and short values (`learning_rate`, `0.00312`). Those of a nested choice are joined with a
/// slash. Text that is not a JSON object becomes one nameless value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> parameter_cells(const Parameters& parameters);

/// A number for people: six significant digits.
[[nodiscard]] std::string short_number(double value);

/// A number of things: `12,345`.
[[nodiscard]] std::string grouped(std::uint64_t count);

/// `count` things per `time`, in the unit that gives a readable number: `12.3/s`, `4.1/min`, `2.0/h`; empty when nothing
/// happened.
[[nodiscard]] std::string render_rate(std::uint64_t count, Duration time);

}  // namespace nni::console

#if NNI_HEADER_ONLY
#include <nni/console/text_inl.hpp>
#endif
