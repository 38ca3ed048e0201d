#pragma once

#include <algorithm>

#include <nni/core/printable.hpp>

namespace nni {

namespace detail {

NNI_INLINE Letter next_letter(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xf0 && first < 0xf8 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first >= 0xf8 || length > text.size()) return {1, 0xfffd};
  char32_t code = first & (0xffU >> (length + 1));
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xc0U) != 0x80U) return {1, 0xfffd};
    code = code << 6U | (byte(at) & 0x3fU);
  }
  return {length, code};
}

/// True for a letter that a terminal does not simply show.
NNI_INLINE bool commands_terminal(char32_t code) noexcept {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffd || code > 0x10ffff) return true;
  if (code < 0x61c) return false;
  // Direction marks, line separators, invisible letters, unpaired surrogates.
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0xfeff || (code >= 0xd800 && code < 0xe000) ||
         (code >= 0xe0000 && code < 0xe0080);
}

}  // namespace detail

NNI_INLINE std::string printable(std::string_view text, LineEnds ends) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char byte) { return byte >= ' ' && byte < '\x7f'; });
  if (is_plain) return std::string(text);
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const detail::Letter letter = detail::next_letter(text);
    const bool is_end = letter.code == '\n' || letter.code == '\t';
    if (is_end && ends == LineEnds::kept)
      clean += static_cast<char>(letter.code);
    else if (is_end || letter.code == '\r')
      clean += ' ';
    else if (detail::commands_terminal(letter.code))
      clean += '?';
    else
      clean += text.substr(0, letter.bytes);
    text.remove_prefix(letter.bytes);
  }
  return clean;
}

}  // namespace nni
