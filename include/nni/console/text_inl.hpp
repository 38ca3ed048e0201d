#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include <boost/json.hpp>

#include <nni/console/text.hpp>

namespace nni::console {

namespace detail {

using nni::detail::Letter;
using nni::detail::next_letter;

NNI_INLINE std::size_t letter_width(char32_t code) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  // Combining marks and wide letters of Unicode, in coarse ranges: sufficient to keep lines within the terminal.
  static constexpr std::array<Range, 3> none{{{0x300, 0x36f}, {0x200b, 0x200f}, {0xfe00, 0xfe0f}}};
  static constexpr std::array<Range, 8> wide{
      {{0x1100, 0x115f},
       {0x2e80, 0xa4cf},
       {0xac00, 0xd7a3},
       {0xf900, 0xfaff},
       {0xfe30, 0xfe6f},
       {0xff00, 0xff60},
       {0x1f300, 0x1faff},
       {0x20000, 0x3fffd}}};
  const auto holds = [code](const Range& range) { return code >= range.first && code <= range.last; };
  if (std::any_of(none.begin(), none.end(), holds)) return 0;
  return std::any_of(wide.begin(), wide.end(), holds) ? 2 : 1;
}

/// Returns the longest prefix of the text that fits.
NNI_INLINE std::string_view beginning(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Letter letter = next_letter(text.substr(at));
    const std::size_t width = letter_width(letter.code);
    if (width > columns) break;
    columns -= width;
    at += letter.bytes;
  }
  return text.substr(0, at);
}

NNI_INLINE std::string_view code_of(Look look) {
  switch (look) {
    case Look::plain: return "";
    case Look::strong: return "\x1b[1m";
    case Look::faint: return "\x1b[2m";
    case Look::good: return "\x1b[32m";
    case Look::bad: return "\x1b[31m";
    case Look::notice: return "\x1b[33m";
  }
  return "";
}

NNI_INLINE std::string padded(const std::string& text, std::size_t columns, bool right) {
  const std::size_t width = display_width(text);
  const std::string blanks(columns > width ? columns - width : 0, ' ');
  return right ? blanks + text : text + blanks;
}

NNI_INLINE bool is_number(const std::string& text) {
  if (text.empty()) return true;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  // Durations count as numbers too: a digit followed by a unit.
  return end != text.c_str() && (*end == '\0' || (text.back() == 's' || text.back() == 'm' || text.back() == 'h'));
}

NNI_INLINE std::vector<std::string> split_header(const std::string& header) {
  std::vector<std::string> parts(1);
  for (const char letter : header) {
    if (letter == '_' || letter == '/')
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

NNI_INLINE std::size_t widest(const std::vector<std::string>& texts) {
  std::size_t width = 0;
  for (const std::string& text : texts) width = std::max(width, display_width(text));
  return width;
}

NNI_INLINE void add_cells(const boost::json::value& value, const std::string& name,
                          std::vector<std::pair<std::string, std::string>>& out) {
  if (const auto* object = value.if_object()) {
    for (const auto& member : *object)
      add_cells(member.value(), name.empty() ? std::string(member.key()) : name + "/" + std::string(member.key()), out);
  } else if (const auto* text = value.if_string()) {
    out.emplace_back(printable(name), printable(std::string_view(text->data(), text->size())));
  } else if (value.is_double()) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.4g", value.get_double());
    out.emplace_back(printable(name), digits.data());
  } else {
    out.emplace_back(printable(name), printable(boost::json::serialize(value)));
  }
}

}  // namespace detail

NNI_INLINE std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const detail::Letter letter = detail::next_letter(text);
    width += detail::letter_width(letter.code);
    text.remove_prefix(letter.bytes);
  }
  return width;
}

NNI_INLINE std::string shorten(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns <= 3) return std::string(detail::beginning(text, columns));
  return std::string(detail::beginning(text, columns - 3)) + "...";
}

NNI_INLINE std::string render_line(const Line& line, std::size_t columns, bool color) {
  std::size_t total = 0;
  for (const Span& span : line) total += display_width(span.text);
  std::size_t left = total > columns && columns > 3 ? columns - 3 : columns;
  std::string bytes;
  for (const Span& span : line) {
    const std::string_view text = detail::beginning(span.text, left);
    left -= display_width(text);
    const std::string_view code = color && !text.empty() ? detail::code_of(span.look) : std::string_view();
    bytes += code;
    bytes += text;
    if (!code.empty()) bytes += "\x1b[0m";
    if (text.size() < span.text.size()) {
      if (columns > 3) bytes += "...";
      break;
    }
  }
  return bytes;
}

NNI_INLINE std::vector<std::string> wrap_words(
    const std::vector<std::string>& words, std::size_t columns, std::size_t limit) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    const bool fits = !lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= columns;
    if (fits || (lines.size() == limit && !lines.empty()))
      lines.back() += " " + word;  // appended to the last permitted line; shortened below
    else
      lines.push_back(word);
  }
  for (std::string& line : lines) line = shorten(line, columns);
  return lines;
}

NNI_INLINE TableText render_table(const Table& table, std::size_t columns) {
  const std::size_t count = table.headers.size();
  std::vector<std::vector<std::string>> headers;
  headers.reserve(count);
  for (const std::string& header : table.headers) headers.push_back({header});

  std::vector<std::size_t> cells(count, 1);
  std::vector<bool> right(count, true);
  for (const auto& row : table.rows)
    for (std::size_t k = 0; k < count; ++k) {
      cells[k] = std::max(cells[k], display_width(row[k]));
      right[k] = right[k] && detail::is_number(row[k]);
    }

  std::vector<std::size_t> widths(count);
  const auto measure = [&] {
    for (std::size_t k = 0; k < count; ++k) widths[k] = std::max(cells[k], detail::widest(headers[k]));
    return std::accumulate(widths.begin(), widths.end(), count == 0 ? 0 : 2 * (count - 1));
  };
  bool cut = false;
  if (measure() > columns && columns != 0) {
    for (std::size_t k = 0; k < count; ++k) headers[k] = detail::split_header(table.headers[k]);
    std::size_t total = measure();
    cut = total > columns;
    while (total > columns) {
      const auto most = std::max_element(widths.begin(), widths.end());
      if (*most <= 4) break;
      --*most;
      --total;
    }
  }

  std::size_t height = 0;
  for (const auto& header : headers) height = std::max(height, header.size());
  const auto lay_out = [&](const auto& cell) {
    std::string line;
    for (std::size_t k = 0; k < count; ++k)
      line += (k == 0 ? "" : "  ") + detail::padded(shorten(cell(k), widths[k]), widths[k], right[k]);
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  TableText text;
  text.cut = cut;
  // Headers are bottom-aligned, so that one-line headers are next to the cells.
  for (std::size_t at = 0; at < height; ++at)
    text.header.push_back(lay_out([&](std::size_t k) {
      const std::size_t above = height - headers[k].size();
      return at < above ? std::string() : headers[k][at - above];
    }));
  for (const auto& row : table.rows) text.rows.push_back(lay_out([&](std::size_t k) { return row[k]; }));
  return text;
}

NNI_INLINE std::vector<std::pair<std::string, std::string>> parameter_cells(const Parameters& parameters) {
  std::vector<std::pair<std::string, std::string>> cells;
  boost::system::error_code failure;
  const boost::json::value value = parse_json(parameters.text(), failure);
  if (failure || !value.is_object())
    cells.emplace_back("", printable(parameters.text()));
  else
    detail::add_cells(value, "", cells);
  return cells;
}

NNI_INLINE std::string short_number(double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.6g", value);
  return digits.data();
}

NNI_INLINE std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

NNI_INLINE std::string render_rate(std::uint64_t count, Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (count == 0 || seconds <= 0) return "";
  const double per_second = static_cast<double>(count) / seconds;
  if (per_second >= 1000) return grouped(static_cast<std::uint64_t>(std::llround(per_second))) + "/s";
  const double scale = per_second >= 1 ? 1 : per_second * 60 >= 1 ? 60 : 3600;
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), per_second * scale >= 100 ? "%.0f" : "%.1f", per_second * scale);
  return digits.data() + std::string(scale == 1 ? "/s" : scale == 60 ? "/min" : "/h");
}

}  // namespace nni::console
