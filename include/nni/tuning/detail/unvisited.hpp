#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <nni/space/search_space.hpp>

namespace nni::tuning::detail {

/// A hash of a point for sets of what was tried: equal values, and axes that are not active, count as equal.
[[nodiscard]] inline std::uint64_t hash_of(const Point& point) noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (const double value : point) {
    // One pattern for all NaN, and one for both zeros.
    const std::uint64_t bits =
        std::isnan(value) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value);
    hash = (hash ^ bits) * 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

/// Remembers which configurations of a small space were suggested, one bit each.
class Unvisited {
 public:
  /// For spaces above this size nothing is remembered here.
  static constexpr std::uint64_t largest = std::uint64_t{1} << 20;

  Unvisited() = default;

  /// @param space  a space without dimensions has one configuration that may be repeated for ever
  explicit Unvisited(const SearchSpace& space)
      : visited_(space.empty() || space.size().value_or(largest + 1) > largest
                     ? 0
                     : static_cast<std::size_t>(*space.size())),
        left_(visited_.size()) {}

  /// False when repetitions are allowed.
  [[nodiscard]] bool active() const noexcept { return !visited_.empty(); }

  /// True when there is nothing left to suggest.
  [[nodiscard]] bool exhausted() const noexcept { return active() && left_ == 0; }

  /// Configurations of the space; 0 when repetitions are allowed.
  [[nodiscard]] std::uint64_t size() const noexcept { return visited_.size(); }

  [[nodiscard]] bool visited(std::uint64_t configuration) const {
    return visited_[static_cast<std::size_t>(configuration)];
  }

  /// Notes a configuration. @returns true when it is new
  bool visit(std::uint64_t configuration) {
    if (visited(configuration)) return false;
    visited_[static_cast<std::size_t>(configuration)] = true;
    --left_;
    return true;
  }

  /// The first configuration at or behind `start`, cyclically, that was not visited. Only when not exhausted.
  [[nodiscard]] std::uint64_t next(std::uint64_t start) const {
    std::uint64_t at = start;
    while (visited(at)) at = at + 1 == visited_.size() ? 0 : at + 1;
    return at;
  }

 private:
  std::vector<bool> visited_;
  std::uint64_t left_ = 0;
};

}  // namespace nni::tuning::detail
