#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nni/core/search_space.hpp>

namespace nni::tuning::detail {

/// Remembers which configurations of a small space were suggested, one bit each.
class Unvisited {
 public:
  /// Spaces above this size repeat so rarely that nothing is remembered for them.
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
