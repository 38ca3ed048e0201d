#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include <nni/core/decimal.hpp>
#include <nni/core/time.hpp>

namespace nni {

namespace detail {

NNI_INLINE Error bad_duration(std::string_view text) {
  return Error{Errc::config_invalid,
               "\"" + std::string(text) +
                   "\" is not a duration; write seconds (90) or numbers with units d, h, m, s, ms (1h30m)"};
}

NNI_INLINE double seconds_of_unit(std::string_view unit) {
  if (unit == "d") return 86400.0;
  if (unit == "h") return 3600.0;
  if (unit == "m") return 60.0;
  if (unit == "s") return 1.0;
  if (unit == "ms") return 0.001;
  return 0.0;
}

}  // namespace detail

NNI_INLINE Result<Duration> parse_duration(std::string_view text) {
  double seconds = 0.0;
  std::string_view rest = text;
  bool any = false;
  while (!rest.empty()) {
    double number = 0.0;
    const auto [end, failure] = read_decimal(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (failure != std::errc{} || !(number >= 0.0)) return detail::bad_duration(text);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    std::string unit;
    while (!rest.empty() && (rest.front() < '0' || rest.front() > '9') && rest.front() != '.') {
      const char letter = rest.front();
      unit += (letter >= 'A' && letter <= 'Z') ? static_cast<char>(letter - 'A' + 'a') : letter;
      rest.remove_prefix(1);
    }
    // Only a number alone may lack its unit: in "1h30" the 30 is ambiguous.
    if (unit.empty() && !any && rest.empty()) unit = "s";
    const double scale = detail::seconds_of_unit(unit);
    if (scale == 0.0) return detail::bad_duration(text);
    seconds += number * scale;
    any = true;
  }
  // 3e9 s, about 95 years, fits into 64 bits of nanoseconds; more is a typing error.
  if (!any || seconds > 3.0e9) return detail::bad_duration(text);
  return Duration{static_cast<Duration::rep>(std::llround(seconds * 1e9))};
}

NNI_INLINE std::string to_string(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  std::array<char, 48> text{};
  const auto print = [&text](const char* format, auto... values) {
    std::snprintf(text.data(), text.size(), format, values...);
    return std::string(text.data());
  };
  if (seconds < 0.0) return "-" + to_string(-duration);
  // The thresholds are those above which rounding would print the next unit: 1000ms, 60.0s.
  if (seconds < 0.9995) return print("%.0fms", seconds * 1e3);
  if (seconds < 59.95) return print("%.1fs", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 3600) return print("%lldm%02llds", whole / 60, whole % 60);
  if (whole < 86400) return print("%lldh%02lldm", whole / 3600, whole % 3600 / 60);
  return print("%lldd%02lldh", whole / 86400, whole % 86400 / 3600);
}

NNI_INLINE std::string to_local_string(TimePoint at) {
  const std::time_t seconds = static_cast<std::time_t>(to_epoch_ms(at) / 1000);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

}  // namespace nni
