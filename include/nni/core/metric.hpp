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

/// Kind of a reported result.
enum class MetricKind : std::uint8_t {
  intermediate,  ///< reported during the run; input of assessors
  final          ///< the value to optimize
};

/// Returns NNI's name: `PERIODICAL` or `FINAL`.
[[nodiscard]] constexpr std::string_view to_string(MetricKind kind) noexcept {
  constexpr std::string_view names[] = {"PERIODICAL", "FINAL"};
  return names[static_cast<std::size_t>(kind)];
}

/// Returns the number in a reported value: the value itself, or the member `default` of an object.
///
/// @param value  JSON text, Python's `NaN` and `Infinity` included
/// @returns      the number, possibly not finite; nothing when there is none
[[nodiscard]] std::optional<double> metric_scalar(std::string_view value);

/// One value that a trial reported.
class Metric {
 public:
  Metric() = default;

  /// @param run_id       the run that reported the value
  /// @param metric_kind  intermediate or final
  /// @param index        position among the intermediate values of the run, from 0; 0 for a final value
  /// @param json         the value as JSON text, kept verbatim
  /// @param time         time of arrival
  Metric(RunId run_id, MetricKind metric_kind, std::uint32_t index, std::string json, TimePoint time)
      : run(run_id), kind(metric_kind), sequence(index), at(time), value(std::move(json)) {}

  /// Returns the number to optimize and to assess, see `metric_scalar`.
  [[nodiscard]] std::optional<double> scalar() const { return metric_scalar(value); }

  RunId run;                                   ///< the run that reported the value
  MetricKind kind = MetricKind::intermediate;  ///< intermediate or final
  std::uint32_t sequence = 0;  ///< position among the intermediate values of the run, from 0; 0 for a final value
  TimePoint at{};              ///< time of arrival, wall clock
  std::string value;           ///< JSON text, verbatim
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/metric_inl.hpp>
#endif
