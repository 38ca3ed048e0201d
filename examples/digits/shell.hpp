#pragma once

#include <string>
#include <string_view>

namespace digits {

/// One word of a shell line, whatever it holds: in quotes where it needs them.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
  constexpr std::string_view harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(harmless) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char letter : text) {
    if (letter == '\'')
      word += "'\\''";
    else
      word += letter;
  }
  return word + "'";
}

}  // namespace digits
