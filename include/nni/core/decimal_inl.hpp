#pragma once

#include <locale.h>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <version>

#include <nni/core/decimal.hpp>

namespace nni {

namespace detail {

// How many characters of a word stand here, in letters of any case.
NNI_INLINE std::size_t length_if_word(const char* first, const char* last, std::string_view word) {
  if (static_cast<std::size_t>(last - first) < word.size()) return 0;
  for (std::size_t at = 0; at < word.size(); ++at)
    if ((first[at] | 0x20) != word[at]) return 0;
  return word.size();
}

// Where the number ends that begins here; `first` when none does.
NNI_INLINE const char* end_of_decimal(const char* first, const char* last, std::chars_format form) {
  const auto skip_digits = [last](const char* at) {
    while (at != last && *at >= '0' && *at <= '9') ++at;
    return at;
  };
  const char* const whole = first + (first != last && *first == '-');
  for (const std::string_view word : {"infinity", "inf", "nan"})
    if (const std::size_t length = length_if_word(whole, last, word)) return whole + length;
  const char* end = skip_digits(whole);
  bool any = end != whole;
  if (end != last && *end == '.') {
    const char* const behind = skip_digits(end + 1);
    any = any || behind != end + 1;
    end = behind;
  }
  if (!any) return first;
  if (form == std::chars_format::fixed || end == last || (*end != 'e' && *end != 'E')) return end;
  const char* exponent = end + 1;
  if (exponent != last && (*exponent == '-' || *exponent == '+')) ++exponent;
  const char* const behind = skip_digits(exponent);
  return behind == exponent ? end : behind;
}

// The C library's parser, independent of the locale of the program.
NNI_INLINE std::from_chars_result read_decimal_slowly(
    const char* first, const char* last, double& value, std::chars_format form) {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const char* const end = end_of_decimal(first, last, form);
  if (end == first) return {first, std::errc::invalid_argument};
  const int before = errno;
  errno = 0;
  value = ::strtod_l(std::string(first, end).c_str(), nullptr, plain);
  const bool fits = errno != ERANGE || (std::isfinite(value) && value != 0.0);
  errno = before;
  return {end, fits ? std::errc{} : std::errc::result_out_of_range};
}

}  // namespace detail

NNI_INLINE std::from_chars_result read_decimal(
    const char* first, const char* last, double& value, std::chars_format form) {
#ifdef __cpp_lib_to_chars
  const std::from_chars_result result = std::from_chars(first, last, value, form);
  if (result.ec != std::errc::result_out_of_range) return result;
#endif
  return detail::read_decimal_slowly(first, last, value, form);
}

}  // namespace nni
