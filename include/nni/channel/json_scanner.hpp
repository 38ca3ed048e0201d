#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>

namespace nni::channel::detail {

/// Reads JSON in place, without building a tree: for messages of which two or three members matter.
///
/// It takes what Python writes: also `NaN`, `Infinity` and `-Infinity`. Strings must be valid UTF-8. Every member
/// returns false for a text that is not JSON; the position is then of no use.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) noexcept : text_(text) {}

  /// Passes blanks, then a character that must be there.
  bool expect(char letter) noexcept;

  /// Passes blanks, then a character if it is there.
  bool accept(char letter) noexcept;

  /// Reads a string and replaces its escapes; a lone surrogate becomes U+FFFD.
  bool string(std::string& value);

  /// Passes a value of any kind.
  /// @param raw  receives its text, without blanks around it
  bool value(std::string_view& raw) noexcept;

  /// True when only blanks are left.
  bool at_end() noexcept;

 private:
  bool pass_string() noexcept;
  bool pass_value(int depth) noexcept;
  bool pass_members(int depth, char end, bool named) noexcept;
  bool pass_number() noexcept;
  bool pass_digits() noexcept;
  bool pass_word(std::string_view word) noexcept;
  bool hex(unsigned& unit) noexcept;
  void skip_blanks() noexcept;

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Length of the valid UTF-8 sequence at the start of the text, 0 when there is none.
std::size_t utf8_length(std::string_view text) noexcept;

}  // namespace nni::channel::detail

#if NNI_HEADER_ONLY
#include <nni/channel/json_scanner_inl.hpp>
#endif
