#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/macros.hpp>

namespace nni {

/// Type of a dimension, with NNI's names.
enum class DimensionType : std::uint8_t {
  choice,       ///< one of several values, or of several branches with dimensions of their own
  randint,      ///< an integer in [min, max)
  uniform,      ///< a real number in [min, max)
  quniform,     ///< the same, rounded to multiples of q, within [min, max]
  loguniform,   ///< a real number in [min, max) whose logarithm is uniform
  qloguniform,  ///< the same, rounded to multiples of q, within [min, max]
  normal,       ///< normal with mean mu and deviation sigma
  qnormal,      ///< the same, rounded to multiples of q
  lognormal,    ///< exp of normal: mu and sigma are those of the logarithm
  qlognormal    ///< the same, rounded to multiples of q
};

/// Returns NNI's name, as in `"_type": "quniform"`.
[[nodiscard]] constexpr std::string_view to_string(DimensionType type) noexcept {
  constexpr std::string_view names[] = {
      "choice",      "randint", "uniform", "quniform",  "loguniform",
      "qloguniform", "normal",  "qnormal", "lognormal", "qlognormal"};
  return names[static_cast<std::size_t>(type)];
}

/// Returns true for the types with a step q.
[[nodiscard]] constexpr bool is_quantized(DimensionType type) noexcept {
  return type == DimensionType::quniform || type == DimensionType::qloguniform || type == DimensionType::qnormal ||
         type == DimensionType::qlognormal;
}

/// Returns true for the types that are sampled on a logarithmic scale.
[[nodiscard]] constexpr bool is_logarithmic(DimensionType type) noexcept {
  return type == DimensionType::loguniform || type == DimensionType::qloguniform || type == DimensionType::lognormal ||
         type == DimensionType::qlognormal;
}

/// Returns true for the four types that follow a normal distribution and have no limits.
[[nodiscard]] constexpr bool is_normal(DimensionType type) noexcept { return type >= DimensionType::normal; }

/// A dimension as tuners see it: an entry of a flat list, with values mapped to positions in (0, 1).
///
/// The *position* of a value is the cumulative probability of the values below it under the specified
/// distribution. On this scale every dimension is uniform, whatever its type, which keeps tuners simple.
/// The *value* is the parameter of the trial; for a choice it is the index of the option.
class Axis {
 public:
  static constexpr std::uint32_t no_parent = 0xffffffff;  ///< `parent` of an axis that is always active

  Axis() = default;

  /// Returns the value at a position.
  ///
  /// Exponentiates, rounds half to even and clips in NNI's order: log, q, limits.
  ///
  /// @param position  in [0, 1]
  /// Source: NNI 3.0, search space types.
  [[nodiscard]] double value_at(double position) const noexcept;

  /// Returns the position of an accepted value: the middle of all positions that map to it, in [0, 1].
  [[nodiscard]] double position_of(double value) const noexcept;

  /// Returns true if the dimension can take this value.
  [[nodiscard]] bool accepts(double value) const noexcept;

  /// Returns the value number `index`, below `count`, in ascending order. Requires `count` != 0.
  [[nodiscard]] double nth_value(std::uint64_t index) const noexcept;

  /// Returns the index of an accepted value: the inverse of `nth_value`.
  [[nodiscard]] std::uint64_t index_of(double value) const noexcept;

  std::string name;                             ///< key within its object
  std::string path;                             ///< keys from the outermost, joined by slashes, `optimizer/momentum`
  std::string key;                              ///< the name as a JSON string, followed by a colon
  DimensionType type = DimensionType::uniform;  ///< kind of distribution
  bool nested = false;                          ///< a choice between branches
  std::uint32_t parent = no_parent;             ///< index of the choice that controls this axis
  std::uint32_t branch = 0;                     ///< option of the parent that activates it
  std::uint32_t end = 0;                        ///< index after this axis and all that depend on it
  std::uint64_t count = 0;                      ///< number of values; 0 if infinite or above 2^53
  std::uint64_t configurations = 0;             ///< the same for this axis and all that depend on it
  double low = 0.0;                             ///< lower limit on the sampling scale, or mu
  double high = 1.0;                            ///< upper limit on the sampling scale, or sigma
  double min = 0.0;                             ///< smallest value
  double max = 1.0;                             ///< largest value
  double q = 0.0;                               ///< step; 0 if there is none
  std::vector<std::string> options;             ///< choice only: JSON texts of the options, or of their names if nested
  std::vector<double> numbers;                  ///< choice only: the options as numbers, NaN for other types

 private:
  double quantized(double value) const noexcept;
};

/// Values of all axes of a search space, in order; NaN for inactive axes.
using Point = std::vector<double>;

/// Value of an inactive axis.
inline constexpr double inactive = std::numeric_limits<double>::quiet_NaN();

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/space/axis_inl.hpp>
#endif
