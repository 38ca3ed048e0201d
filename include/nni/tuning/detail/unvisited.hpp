#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include <nni/space/search_space.hpp>

namespace nni::tuning::detail {

/// Returns a hash of a point for sets of tried points: equal values, and inactive axes, hash equally.
[[nodiscard]] inline std::uint64_t hash_of(const Point& point) noexcept {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (const double value : point) {
    // One bit pattern for all NaNs, and one for both zeros.
    const std::uint64_t bits =
        std::isnan(value) ? ~std::uint64_t{0} : std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value);
    hash = (hash ^ bits) * 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

/// The set of suggested configurations of a small space, one bit each.
class Unvisited {
 public:
  /// Largest size of a space that is tracked.
  static constexpr std::uint64_t largest = std::uint64_t{1} << 20;

  Unvisited() = default;

  /// @param space  a space without dimensions has one configuration, which may be repeated
  explicit Unvisited(const SearchSpace& space)
      : visited_(space.empty() || space.size().value_or(largest + 1) > largest
                     ? 0
                     : static_cast<std::size_t>(*space.size())),
        left_(visited_.size()) {}

  /// Returns false if repetitions are allowed.
  [[nodiscard]] bool active() const noexcept { return !visited_.empty(); }

  /// Returns true if all configurations were suggested.
  [[nodiscard]] bool exhausted() const noexcept { return active() && left_ == 0; }

  /// Returns the number of configurations; 0 if repetitions are allowed.
  [[nodiscard]] std::uint64_t size() const noexcept { return visited_.size(); }

  [[nodiscard]] bool visited(std::uint64_t configuration) const {
    return visited_[static_cast<std::size_t>(configuration)];
  }

  /// Adds a configuration. @returns true if it is new
  bool visit(std::uint64_t configuration) {
    if (visited(configuration)) return false;
    visited_[static_cast<std::size_t>(configuration)] = true;
    --left_;
    return true;
  }

  /// Returns the first configuration at or after `start`, cyclically, that was not visited. Requires `!exhausted()`.
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
