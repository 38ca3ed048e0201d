#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nni/core/ids.hpp>
#include <nni/core/json.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// Which of the two kinds of result a trial reported.
enum class MetricKind : std::uint8_t {
  intermediate,  ///< on the way; an assessor sees it
  final          ///< the value to optimise
};

/// NNI's name: `PERIODICAL` or `FINAL`.
[[nodiscard]] constexpr std::string_view to_string(MetricKind kind) noexcept {
  constexpr std::string_view names[] = {"PERIODICAL", "FINAL"};
  return names[static_cast<std::size_t>(kind)];
}

/// The number in a reported value: the value itself, or member `default` of an object.
///
/// @param value  JSON text, Python's `NaN` and `Infinity` included
/// @returns      the number, possibly not finite; nothing when there is none
[[nodiscard]] std::optional<double> metric_scalar(std::string_view value);

/// One value that a trial reported.
class Metric {
 public:
  Metric() = default;

  /// @param from  the run that reported it
  /// @param what  intermediate or final
  /// @param index position among the intermediate values of the run, from 0; 0 for a final value
  /// @param json  the value as JSON text, kept verbatim
  /// @param when  time of arrival
  Metric(RunId from, MetricKind what, std::uint32_t index, std::string json, TimePoint when)
      : run(from), kind(what), sequence(index), at(when), value(std::move(json)) {}

  /// The number to optimise and assess by, see `metric_scalar`.
  [[nodiscard]] std::optional<double> scalar() const { return metric_scalar(value); }

  RunId run;                                   ///< which run
  MetricKind kind = MetricKind::intermediate;  ///< intermediate or final
  std::uint32_t sequence = 0;  ///< position among the intermediate values of the run, from 0; 0 for a final value
  TimePoint at{};              ///< time of arrival, wall clock
  std::string value;           ///< JSON text, verbatim
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/metric_inl.hpp>
#endif
