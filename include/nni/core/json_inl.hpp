#pragma once

#include <array>
#include <cmath>

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>

#include <nni/core/decimal.hpp>
#include <nni/core/json.hpp>

namespace nni {

namespace detail {

NNI_INLINE void append_unicode_escape(std::string& text, std::uint32_t unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) text += digits[(unit >> shift) & 15U];
}

// Decodes one UTF-8 sequence; broken bytes become U+FFFD so that the output is always valid JSON.
NNI_INLINE std::uint32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t index) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[index]));
  };
  const std::uint32_t lead = byte(at++);
  const std::size_t more =
      lead >= 0xf0 && lead < 0xf5   ? 3
      : lead >= 0xe0 && lead < 0xf0 ? 2
      : lead >= 0xc2 && lead < 0xe0
          ? 1
          : 0;
  if (more == 0) return 0xfffd;
  std::uint32_t point = lead & (0x3fU >> more);
  for (std::size_t index = 0; index < more; ++index) {
    if (at >= text.size() || (byte(at) & 0xc0) != 0x80) return 0xfffd;
    point = point << 6 | (byte(at++) & 0x3f);
  }
  // Overlong forms and surrogates are not UTF-8 either.
  const bool overlong = (more == 2 && point < 0x800) || (more == 3 && point < 0x10000);
  return overlong || point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
}

NNI_INLINE void append_value(std::string& text, const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null: text += "null"; return;
    case boost::json::kind::bool_: text += value.get_bool() ? "true" : "false"; return;
    case boost::json::kind::int64: append_json_integer(text, value.get_int64()); return;
    case boost::json::kind::uint64: text += std::to_string(value.get_uint64()); return;
    case boost::json::kind::double_: append_json_number(text, value.get_double()); return;
    case boost::json::kind::string:
      append_json_string(text, {value.get_string().data(), value.get_string().size()});
      return;
    case boost::json::kind::array: {
      char before = '[';
      for (const boost::json::value& item : value.get_array()) {
        text += before;
        append_value(text, item);
        before = ',';
      }
      text += value.get_array().empty() ? "[]" : "]";
      return;
    }
    case boost::json::kind::object: {
      char before = '{';
      for (const auto& member : value.get_object()) {
        text += before;
        append_json_string(text, {member.key().data(), member.key().size()});
        text += ':';
        append_value(text, member.value());
        before = ',';
      }
      text += value.get_object().empty() ? "{}" : "}";
      return;
    }
  }
}

/// Builds a value from what the parser reports, and converts real numbers itself.
struct ExactNumbers {
  static constexpr std::size_t max_object_size = boost::json::object::max_size();
  static constexpr std::size_t max_array_size = boost::json::array::max_size();
  static constexpr std::size_t max_key_size = boost::json::string::max_size();
  static constexpr std::size_t max_string_size = boost::json::string::max_size();

  using error_code = boost::system::error_code;
  using string_view = boost::json::string_view;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t count, error_code&) { return stack.push_object(count), true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t count, error_code&) { return stack.push_array(count), true; }
  bool on_key_part(string_view part, std::size_t, error_code&) { return stack.push_chars(part), true; }
  bool on_key(string_view last, std::size_t, error_code&) { return stack.push_key(last), true; }
  bool on_string_part(string_view part, std::size_t, error_code&) { return stack.push_chars(part), true; }
  bool on_string(string_view last, std::size_t, error_code&) { return stack.push_string(last), true; }
  bool on_number_part(string_view part, error_code&) { return number.append(part.data(), part.size()), true; }
  bool on_int64(std::int64_t value, string_view, error_code&) { return number.clear(), stack.push_int64(value), true; }
  bool on_uint64(std::uint64_t value, string_view, error_code&) {
    return number.clear(), stack.push_uint64(value), true;
  }
  bool on_double(double nearly, string_view last, error_code&) {
    number.append(last.data(), last.size());
    double value = nearly;
    const auto [end, failure] = read_decimal(number.data(), number.data() + number.size(), value);
    const bool exact = failure == std::errc{} && end == number.data() + number.size();
    number.clear();
    stack.push_double(exact ? value : nearly);
    return true;
  }
  bool on_bool(bool value, error_code&) { return stack.push_bool(value), true; }
  bool on_null(error_code&) { return stack.push_null(), true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  boost::json::value_stack stack;
  std::string number;  ///< the part of a number that came before
};

}  // namespace detail

NNI_INLINE boost::json::value parse_json(std::string_view text, boost::system::error_code& failure) {
  boost::json::basic_parser<detail::ExactNumbers> parser{boost::json::parse_options{}};
  parser.handler().stack.reset();
  const std::size_t used = parser.write_some(false, text.data(), text.size(), failure);
  if (!failure && used < text.size()) failure = boost::json::make_error_code(boost::json::error::extra_data);
  if (failure) return nullptr;
  return parser.handler().stack.release();
}

NNI_INLINE void append_json_string(std::string& text, std::string_view value) {
  // A large value is not copied while its text grows.
  constexpr std::size_t large = 64 * 1024;
  if (value.size() > large && text.capacity() - text.size() < value.size())
    text.reserve(text.size() + value.size() + value.size() / 32);
  text += '"';
  for (std::size_t at = 0; at < value.size();) {
    const char letter = value[at];
    if (letter >= 0x20 && letter < 0x7f) {
      if (letter == '"' || letter == '\\') text += '\\';
      text += letter;
      ++at;
      continue;
    }
    if (static_cast<unsigned char>(letter) < 0x80) {
      if (letter == '\n')
        text += "\\n";
      else if (letter == '\t')
        text += "\\t";
      else if (letter == '\r')
        text += "\\r";
      else
        detail::append_unicode_escape(text, static_cast<unsigned char>(letter));
      ++at;
      continue;
    }
    const std::uint32_t point = detail::next_code_point(value, at);
    if (point < 0x10000) {
      detail::append_unicode_escape(text, point);
    } else {
      detail::append_unicode_escape(text, 0xd800 + ((point - 0x10000) >> 10));
      detail::append_unicode_escape(text, 0xdc00 + ((point - 0x10000) & 0x3ff));
    }
  }
  text += '"';
}

NNI_INLINE void append_json_number(std::string& text, double value) {
  if (std::isnan(value)) {
    text += "NaN";
    return;
  }
  if (std::isinf(value)) {
    text += value < 0.0 ? "-Infinity" : "Infinity";
    return;
  }
  std::array<char, 32> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  const std::string_view written(digits.data(), static_cast<std::size_t>(result.ptr - digits.data()));
  text += written;
  if (written.find_first_of(".e") == std::string_view::npos) text += ".0";
}

NNI_INLINE void append_json_integer(std::string& text, std::int64_t value) {
  std::array<char, 24> digits;
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), result.ptr);
}

NNI_INLINE std::string to_json_text(double value) {
  std::string text;
  append_json_number(text, value);
  return text;
}

NNI_INLINE std::string to_json_text(const boost::json::value& value) {
  std::string text;
  detail::append_value(text, value);
  return text;
}

}  // namespace nni
