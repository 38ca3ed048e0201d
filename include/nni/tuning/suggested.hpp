#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include <nni/core/parameters.hpp>
#include <nni/space/search_space.hpp>

namespace nni::tuning {

/// A suggestion as values: read like `Parameters`, but without a conversion to JSON text.
///
/// It refers to its search space, which must outlive it.
class Suggested {
 public:
  /// @param space  of the tuner that sets the point
  explicit Suggested(const SearchSpace& space) : space_(&space) {}

  /// Returns the value of one parameter, with the same types, names and errors as `Parameters::get`.
  template <class T>
  [[nodiscard]] T get(std::string_view name) const {
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      const std::optional<double> value = number(name);
      if (value && std::nearbyint(*value) == *value && std::abs(*value) <= 0x1p53) {
        const auto whole = static_cast<std::int64_t>(*value);
        if (std::in_range<T>(whole)) return static_cast<T>(whole);
      }
    } else if constexpr (std::floating_point<T>) {
      if (const std::optional<double> value = number(name)) return static_cast<T>(*value);
    }
    return to_parameters().get<T>(name);
  }

  /// Returns the value of one parameter like `get`, or nothing if there is no such parameter.
  template <class T>
  [[nodiscard]] std::optional<T> find(std::string_view name) const {
    if (!contains(name)) return std::nullopt;
    return get<T>(name);
  }

  /// Returns true if there is a parameter of this name.
  [[nodiscard]] bool contains(std::string_view name) const { return number(name) || to_parameters().contains(name); }

  /// Returns the parameters as a trial receives them.
  [[nodiscard]] Parameters to_parameters() const { return space_->to_parameters(point_); }

  /// Returns the JSON text.
  [[nodiscard]] std::string text() const { return to_parameters().text(); }

  /// Returns the modifiable values, in the order of the axes of the search space.
  [[nodiscard]] const Point& point() const noexcept { return point_; }
  /// Returns the values; NaN for inactive axes.
  [[nodiscard]] Point& point() noexcept { return point_; }

  /// Prints the JSON text.
  friend std::ostream& operator<<(std::ostream& out, const Suggested& suggested) {
    return out << suggested.to_parameters();
  }

 private:
  std::optional<double> number(std::string_view name) const {
    const std::vector<Axis>& axes = space_->axes();
    for (std::size_t at = 0; at < axes.size(); ++at) {
      // The same path may exist in several branches; only one of them is active.
      if (axes[at].path != name || std::isnan(point_[at])) continue;
      if (axes[at].type != DimensionType::choice) return point_[at];
      const double option = axes[at].numbers[static_cast<std::size_t>(point_[at])];
      return std::isnan(option) ? std::nullopt : std::optional(option);
    }
    return std::nullopt;
  }

  const SearchSpace* space_;
  Point point_;
};

}  // namespace nni::tuning
