#pragma once

#include <cstdint>
#include <cstring>

#include <nni/channel/json_scanner.hpp>

namespace nni::channel::detail {

NNI_INLINE std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned>(static_cast<unsigned char>(text[index])); };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length =
      lead >= 0xc2 && lead < 0xe0   ? 2
      : lead >= 0xe0 && lead < 0xf0 ? 3
      : lead >= 0xf0 && lead < 0xf5
          ? 4
          : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t index = 1; index < length; ++index)
    if ((byte(index) & 0xc0) != 0x80) return 0;
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool too_large = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

/// A character that stands for itself in a string, quotes and backslashes aside. What is not ASCII is looked at as UTF-8,
/// whether `char` has a sign on this machine or not.
NNI_INLINE bool is_plain(char letter) noexcept {
  const auto code = static_cast<unsigned char>(letter);
  return code >= 0x20 && code < 0x80;
}

/// The length of the run of characters at the start of the text that stand for themselves in a string: plain ones, and
/// neither quotes nor backslashes. Eight are looked at together, since a value may have millions.
NNI_INLINE std::size_t plain_run(std::string_view text) noexcept {
  constexpr std::uint64_t ones = 0x0101010101010101U;
  constexpr std::uint64_t tops = 0x8080808080808080U;
  // Has a top bit for each byte that is zero, and perhaps for bytes above one: which byte it is, the loop below finds.
  const auto zeros = [](std::uint64_t word) { return (word - ones) & ~word & tops; };
  std::size_t at = 0;
  for (std::uint64_t word = 0; text.size() - at >= sizeof word; at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t control = (word - ones * 0x20U) & ~word & tops;
    if ((word & tops) != 0 || control != 0 || zeros(word ^ ones * '"') != 0 || zeros(word ^ ones * '\\') != 0) break;
  }
  while (at < text.size() && is_plain(text[at]) && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

NNI_INLINE void append_utf8(std::string& text, unsigned point) {
  const auto put = [&text](unsigned byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
}

NNI_INLINE void JsonScanner::skip_blanks() noexcept {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

NNI_INLINE bool JsonScanner::accept(char letter) noexcept {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != letter) return false;
  ++at_;
  return true;
}

NNI_INLINE bool JsonScanner::expect(char letter) noexcept { return accept(letter); }

NNI_INLINE bool JsonScanner::at_end() noexcept {
  skip_blanks();
  return at_ == text_.size();
}

NNI_INLINE bool JsonScanner::hex(unsigned& unit) noexcept {
  if (text_.size() - at_ < 4) return false;
  unit = 0;
  for (int index = 0; index < 4; ++index) {
    const char letter = text_[at_++];
    unit <<= 4;
    if (letter >= '0' && letter <= '9')
      unit |= static_cast<unsigned>(letter - '0');
    else if (letter >= 'a' && letter <= 'f')
      unit |= static_cast<unsigned>(letter - 'a' + 10);
    else if (letter >= 'A' && letter <= 'F')
      unit |= static_cast<unsigned>(letter - 'A' + 10);
    else
      return false;
  }
  return true;
}

NNI_INLINE bool JsonScanner::string(std::string& value) {
  value.clear();
  if (!accept('"')) return false;
  while (at_ < text_.size()) {
    const std::size_t run = plain_run(text_.substr(at_));
    value.append(text_, at_, run);
    at_ += run;
    if (at_ == text_.size()) return false;
    const char letter = text_[at_];
    if (letter == '"') {
      ++at_;
      return true;
    }
    if (letter != '\\') {
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length < 2) return false;  // a control character, or not UTF-8
      value.append(text_, at_, length);
      at_ += length;
      continue;
    }
    if (++at_ == text_.size()) return false;
    switch (text_[at_++]) {
      case '"': value += '"'; break;
      case '\\': value += '\\'; break;
      case '/': value += '/'; break;
      case 'b': value += '\b'; break;
      case 'f': value += '\f'; break;
      case 'n': value += '\n'; break;
      case 'r': value += '\r'; break;
      case 't': value += '\t'; break;
      case 'u': {
        unsigned unit = 0;
        if (!hex(unit)) return false;
        if (unit >= 0xd800 && unit < 0xdc00 && text_.substr(at_, 2) == "\\u") {
          const std::size_t before = at_;
          unsigned low = 0;
          at_ += 2;
          if (!hex(low)) return false;
          if (low >= 0xdc00 && low < 0xe000) {
            append_utf8(value, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
            break;
          }
          at_ = before;
        }
        append_utf8(value, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
        break;
      }
      default: return false;
    }
  }
  return false;
}

NNI_INLINE bool JsonScanner::pass_string() noexcept {
  ++at_;  // the opening quote
  while (true) {
    at_ += plain_run(text_.substr(at_));
    if (at_ == text_.size()) return false;
    const char letter = text_[at_];
    if (letter == '"') {
      ++at_;
      return true;
    }
    if (letter == '\\') {
      if (++at_ == text_.size()) return false;
      const char kind = text_[at_++];
      unsigned ignored = 0;
      if (kind == 'u' ? !hex(ignored) : std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)
        return false;
      continue;
    }
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length < 2) return false;  // a control character, or not UTF-8
    at_ += length;
  }
}

NNI_INLINE bool JsonScanner::pass_word(std::string_view word) noexcept {
  if (text_.substr(at_, word.size()) != word) return false;
  at_ += word.size();
  return true;
}

NNI_INLINE bool JsonScanner::pass_digits() noexcept {
  const std::size_t from = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  return at_ != from;
}

NNI_INLINE bool JsonScanner::pass_number() noexcept {
  if (at_ < text_.size() && text_[at_] == '-') ++at_;
  if (at_ < text_.size() && text_[at_] == 'I') return pass_word("Infinity");
  const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
  const std::size_t from = at_;
  if (!pass_digits() || (leading_zero && at_ - from > 1)) return false;
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!pass_digits()) return false;
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!pass_digits()) return false;
  }
  return true;
}

NNI_INLINE bool JsonScanner::pass_members(int depth, char end, bool named) noexcept {
  ++at_;  // the opening bracket
  if (accept(end)) return true;
  do {
    if (named) {
      skip_blanks();
      if (at_ == text_.size() || text_[at_] != '"' || !pass_string() || !expect(':')) return false;
    }
    if (!pass_value(depth + 1)) return false;
  } while (accept(','));
  return accept(end);
}

NNI_INLINE bool JsonScanner::pass_value(int depth) noexcept {
  constexpr int deepest = 512;
  if (depth > deepest) return false;
  skip_blanks();
  if (at_ == text_.size()) return false;
  switch (text_[at_]) {
    case '"': return pass_string();
    case '{': return pass_members(depth, '}', true);
    case '[': return pass_members(depth, ']', false);
    case 't': return pass_word("true");
    case 'f': return pass_word("false");
    case 'n': return pass_word("null");
    case 'N': return pass_word("NaN");
    case 'I': return pass_word("Infinity");
    default: return pass_number();
  }
}

NNI_INLINE bool JsonScanner::value(std::string_view& raw) noexcept {
  skip_blanks();
  const std::size_t from = at_;
  if (!pass_value(0)) return false;
  raw = text_.substr(from, at_ - from);
  return true;
}

}  // namespace nni::channel::detail
