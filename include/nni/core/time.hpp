#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <nni/core/macros.hpp>
#include <nni/core/result.hpp>

namespace nni {

/// A span of time, nanoseconds.
using Duration = std::chrono::nanoseconds;

/// Wall time in milliseconds since 1970, for records. The clock may be adjusted; never use it for limits.
using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;

/// Reads the wall clock. For the dates of records; limits and waits use steady time.
[[nodiscard]] inline TimePoint wall_now() {
  return std::chrono::floor<TimePoint::duration>(std::chrono::system_clock::now());
}

/// Monotonic time, for limits and waits. Meaningless outside this process.
using SteadyPoint = std::chrono::steady_clock::time_point;

/// Returns milliseconds since 1970, as in NNI's records and REST replies.
[[nodiscard]] constexpr long long to_epoch_ms(TimePoint at) noexcept { return at.time_since_epoch().count(); }

/// Converts from milliseconds since 1970.
[[nodiscard]] constexpr TimePoint from_epoch_ms(long long milliseconds) noexcept {
  return TimePoint{std::chrono::milliseconds{milliseconds}};
}

/// Parses a duration of NNI's configuration.
///
/// Accepts plain seconds (`90`), or numbers each followed by a unit `d`, `h`, `m`, `s` or `ms` in any case
/// (`1h30m`, `1.5h`).
///
///
/// @returns  zero to about 95 years, or an error with the text and an accepted form
/// Source: NNI 3.0 configuration, durations.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);

/// Formats a duration for users: `1d04h`, `1h30m`, `4m12s`, `3.2s`, `12ms`. Rounded to at most two units, not below
/// milliseconds.
[[nodiscard]] std::string to_string(Duration duration);

/// Formats wall time for users and logs: `2026-11-21 09:30:00` in local time.
[[nodiscard]] std::string to_local_string(TimePoint at);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/time_inl.hpp>
#endif
