#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <nni/core/parameters.hpp>
#include <nni/space/search_space.hpp>

namespace nni::tuning::detail {

/// Remembers parameters that a search space cannot give back: they count again in a space that they fit.
class Elsewhere {
 public:
  /// Where `parameters` lie in `space`; nothing when they do not fit.
  ///
  /// They are remembered unless `space` spells the point just so. What has more parameters than the space has dimensions
  /// fits too, but only its own text tells what else it had.
  std::optional<Point> note(const SearchSpace& space, const Parameters& parameters) {
    std::optional<Point> point = space.to_point(parameters);
    if (!point || space.to_parameters(*point) != parameters) keep(parameters);
    return point;
  }

  /// Remembers.
  void keep(Parameters parameters) { kept_.push_back(std::move(parameters)); }

  /// What was remembered, in that order; nothing is left.
  [[nodiscard]] std::vector<Parameters> take() { return std::exchange(kept_, {}); }

 private:
  std::vector<Parameters> kept_;
};

}  // namespace nni::tuning::detail
