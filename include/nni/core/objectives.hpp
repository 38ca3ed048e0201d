#pragma once

#include <string>
#include <utility>

namespace nni {

/// Which values of a metric are better.
enum class Direction {
  minimize,  ///< smaller ones
  maximize   ///< larger ones
};

inline constexpr Direction minimize = Direction::minimize;  ///< smaller is better
inline constexpr Direction maximize = Direction::maximize;  ///< larger is better

/// What an experiment optimises: a metric and its direction.
///
/// The metric is the number that a trial reports, or the member `default` of the object that it reports.
class Objectives {
 public:
  Objectives() = default;

  /// @param direction  which values are better
  explicit Objectives(Direction direction) : direction_(direction) {}

  /// Which values are better.
  [[nodiscard]] Direction direction() const noexcept { return direction_; }

  /// True when `a` is strictly better than `b`.
  [[nodiscard]] bool better(double a, double b) const noexcept { return direction_ == minimize ? a < b : a > b; }

  /// The value turned so that smaller is always better.
  [[nodiscard]] double loss(double value) const noexcept { return direction_ == minimize ? value : -value; }

 private:
  Direction direction_ = Direction::minimize;
};

/// `minimize` or `maximize`, as configurations write it.
[[nodiscard]] constexpr const char* to_string(Direction direction) noexcept {
  return direction == Direction::minimize ? "minimize" : "maximize";
}

}  // namespace nni
