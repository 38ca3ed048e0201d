#pragma once

#include <string>
#include <utility>

namespace nni {

/// The better direction of a metric.
enum class Direction {
  minimize,  ///< smaller ones
  maximize   ///< larger ones
};

inline constexpr Direction minimize = Direction::minimize;  ///< smaller is better
inline constexpr Direction maximize = Direction::maximize;  ///< larger is better

/// The objective of an experiment: a metric and its direction.
///
/// The metric is the number that a trial reports, or the member `default` of a reported object.
class Objectives {
 public:
  Objectives() = default;

  explicit Objectives(Direction direction) : direction_(direction) {}

  /// Returns the better direction.
  [[nodiscard]] Direction direction() const noexcept { return direction_; }

  /// Returns true if `a` is strictly better than `b`.
  [[nodiscard]] bool better(double a, double b) const noexcept { return direction_ == minimize ? a < b : a > b; }

  /// Returns the value, negated for `maximize`, so that smaller is always better.
  [[nodiscard]] double loss(double value) const noexcept { return direction_ == minimize ? value : -value; }

 private:
  Direction direction_ = Direction::minimize;
};

/// Returns `minimize` or `maximize`, as configurations write it.
[[nodiscard]] constexpr const char* to_string(Direction direction) noexcept {
  return direction == Direction::minimize ? "minimize" : "maximize";
}

}  // namespace nni
