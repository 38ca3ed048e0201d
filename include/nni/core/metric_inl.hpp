#pragma once

#include <cmath>
#include <limits>

#include <boost/json.hpp>

#include <nni/core/decimal.hpp>
#include <nni/core/metric.hpp>

namespace nni {

namespace detail {

NNI_INLINE std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The fast path of nearly all values: a number alone, without a JSON parser.
NNI_INLINE std::optional<double> plain_number(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  // "inf", "nan" and ".5" are no JSON, although `read_decimal` accepts them.
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  double number = 0.0;
  const auto [end, failure] = read_decimal(text.data(), text.data() + text.size(), number);
  if (end != text.data() + text.size()) return std::nullopt;
  // A number out of range is still a number: infinity or zero.
  if (failure == std::errc::invalid_argument) return std::nullopt;
  return number;
}

// Boost.JSON refuses Python's tokens for numbers that are not finite; outside strings they are replaced by
// strings before parsing.
NNI_INLINE std::string with_quoted_tokens(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char letter = text[at];
    if (in_string && letter == '\\' && at + 1 < text.size()) {
      result.append(text.substr(at, 2));
      at += 2;
      continue;
    }
    if (letter == '"') in_string = !in_string;
    if (!in_string) {
      bool replaced = false;
      for (const std::string_view token :
           {std::string_view("NaN"), std::string_view("-Infinity"), std::string_view("Infinity")}) {
        if (text.substr(at, token.size()) == token) {
          result.append("\"").append(token).append("\"");
          at += token.size();
          replaced = true;
          break;
        }
      }
      if (replaced) continue;
    }
    result += letter;
    ++at;
  }
  return result;
}

}  // namespace detail

NNI_INLINE std::optional<double> metric_scalar(std::string_view value) {
  const std::string_view text = detail::trimmed(value);
  if (const std::optional<double> number = detail::plain_number(text)) return number;
  if (text.empty() || text[0] != '{') return std::nullopt;
  boost::system::error_code failure;
  const boost::json::value parsed = parse_json(detail::with_quoted_tokens(text), failure);
  if (failure || !parsed.is_object()) return std::nullopt;
  const boost::json::value* chosen = parsed.get_object().if_contains("default");
  if (!chosen) return std::nullopt;
  if (chosen->is_number()) return chosen->to_number<double>();
  if (const auto* token = chosen->if_string()) {
    const std::optional<double> number = detail::plain_number({token->data(), token->size()});
    // Only the tokens that were quoted above count; "0.5" in quotes is a string.
    if (number && (std::isnan(*number) || std::isinf(*number))) return number;
  }
  return std::nullopt;
}

}  // namespace nni
