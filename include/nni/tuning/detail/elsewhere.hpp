#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <nni/core/parameters.hpp>
#include <nni/space/search_space.hpp>

namespace nni::tuning::detail {

/// Parameters that the current search space cannot reproduce; they count again in a space that they fit.
class Elsewhere {
 public:
  /// Returns the point of `parameters` in `space`; nothing if they do not fit.
  ///
  /// They are stored unless `space` reproduces exactly this text. Parameters beyond the dimensions of the space
  /// are ignored for the fit but kept in the stored text.
  std::optional<Point> note(const SearchSpace& space, const Parameters& parameters) {
    std::optional<Point> point = space.to_point(parameters);
    if (!point || space.to_parameters(*point) != parameters) keep(parameters);
    return point;
  }

  /// Stores parameters.
  void keep(Parameters parameters) { kept_.push_back(std::move(parameters)); }

  /// Removes and returns all stored parameters, in order.
  [[nodiscard]] std::vector<Parameters> take() { return std::exchange(kept_, {}); }

 private:
  std::vector<Parameters> kept_;
};

}  // namespace nni::tuning::detail
