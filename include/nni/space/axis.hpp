#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nni/core/macros.hpp>

namespace nni {

/// The kinds of search dimension, with NNI's names.
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

/// NNI's name, as in `"_type": "quniform"`.
[[nodiscard]] constexpr std::string_view to_string(DimensionType type) noexcept {
  constexpr std::string_view names[] = {
      "choice",      "randint", "uniform", "quniform",  "loguniform",
      "qloguniform", "normal",  "qnormal", "lognormal", "qlognormal"};
  return names[static_cast<std::size_t>(type)];
}

/// True for the types with a step q.
[[nodiscard]] constexpr bool is_quantised(DimensionType type) noexcept {
  return type == DimensionType::quniform || type == DimensionType::qloguniform || type == DimensionType::qnormal ||
         type == DimensionType::qlognormal;
}

/// True for the types that are sampled on a logarithmic scale.
[[nodiscard]] constexpr bool is_logarithmic(DimensionType type) noexcept {
  return type == DimensionType::loguniform || type == DimensionType::qloguniform || type == DimensionType::lognormal ||
         type == DimensionType::qlognormal;
}

/// True for the four types that follow a normal distribution and have no limits.
[[nodiscard]] constexpr bool is_normal(DimensionType type) noexcept { return type >= DimensionType::normal; }

/// One dimension as a tuner sees it: a flat list entry with a position in (0, 1).
///
/// The *position* of a value is the cumulative probability of the values below it under the distribution that the
/// user gave. On this scale every dimension is uniform, whatever its type, which is what makes tuners short.
/// The *value* is what the trial sees; for a choice it is the index of the chosen option.
class Axis {
 public:
  static constexpr std::uint32_t no_parent = 0xffffffff;  ///< `parent` of an axis that is always active

  Axis() = default;

  /// The value at a position.
  ///
  /// Exponentiates, rounds half to even and clips in NNI's order: log, q, limits.
  ///
  /// @param position  in [0, 1]
  /// Source: NNI 3.0, search space types.
  [[nodiscard]] double value_at(double position) const noexcept;

  /// The inverse of `value_at` for a value that is accepted: the middle of all positions that give it, in [0, 1].
  [[nodiscard]] double position_of(double value) const noexcept;

  /// True when the dimension can take this value.
  [[nodiscard]] bool accepts(double value) const noexcept;

  /// The value number `index`, below `count`, in ascending order. Only when `count` is not 0.
  [[nodiscard]] double nth_value(std::uint64_t index) const noexcept;

  /// The inverse of `nth_value` for a value that is accepted.
  [[nodiscard]] std::uint64_t index_of(double value) const noexcept;

  std::string name;                             ///< key within its object
  std::string path;                             ///< keys from the outside joined by slashes, `optimizer/momentum`
  std::string key;                              ///< the name as a JSON string with the colon behind it
  DimensionType type = DimensionType::uniform;  ///< kind of distribution
  bool nested = false;                          ///< a choice between branches
  std::uint32_t parent = no_parent;             ///< the choice that decides whether this axis is active
  std::uint32_t branch = 0;                     ///< the option of the parent that makes it active
  std::uint32_t end = 0;                        ///< the first axis behind this one and all that depend on it
  std::uint64_t count = 0;                      ///< number of values; 0 when it is not finite, or above 2^53
  std::uint64_t configurations = 0;             ///< the same for this axis together with all that depend on it
  double low = 0.0;                             ///< lower limit on the sampling scale, or mu
  double high = 1.0;                            ///< upper limit on the sampling scale, or sigma
  double min = 0.0;                             ///< smallest value
  double max = 1.0;                             ///< largest value
  double q = 0.0;                               ///< step, 0 when there is none
  std::vector<std::string> options;             ///< choice only: JSON texts of the options, of their names when nested
  std::vector<double> numbers;                  ///< choice only: the options as numbers, NaN for other types

 private:
  double quantised(double value) const noexcept;
};

/// Values of all axes of a search space, in their order; NaN where an axis is not active.
using Point = std::vector<double>;

/// The value of an axis that is not active.
inline constexpr double inactive = std::numeric_limits<double>::quiet_NaN();

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/space/axis_inl.hpp>
#endif
