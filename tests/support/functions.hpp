#pragma once

/// @file
/// Functions with known minima, to see whether a tuner finds them.

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>

namespace nni_test {

/// Branin's function on [-5, 10] x [0, 15]; three minima with the value 0.397887.
/// Source: Dixon, Szego, "Towards global optimisation 2", 1978.
inline double branin(double x, double y) {
  constexpr double pi = std::numbers::pi;
  const double valley = y - 5.1 / (4.0 * pi * pi) * x * x + 5.0 / pi * x - 6.0;
  return valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
}

/// Hartmann's function on the unit cube of six dimensions; the minimum is -3.32237.
/// Source: Dixon, Szego, "Towards global optimisation 2", 1978.
inline double hartmann6(std::span<const double> x) {
  constexpr std::array<double, 4> heights{1.0, 1.2, 3.0, 3.2};
  constexpr std::array<std::array<double, 6>, 4> widths{
      {{10.0, 3.0, 17.0, 3.5, 1.7, 8.0},
       {0.05, 10.0, 17.0, 0.1, 8.0, 14.0},
       {3.0, 3.5, 1.7, 10.0, 17.0, 8.0},
       {17.0, 8.0, 0.05, 10.0, 0.1, 14.0}}};
  constexpr std::array<std::array<double, 6>, 4> places{
      {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
       {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
       {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
       {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}}};
  double sum = 0.0;
  for (std::size_t peak = 0; peak < heights.size(); ++peak) {
    double exponent = 0.0;
    for (std::size_t axis = 0; axis < x.size(); ++axis)
      exponent += widths[peak][axis] * (x[axis] - places[peak][axis]) * (x[axis] - places[peak][axis]);
    sum += heights[peak] * std::exp(-exponent);
  }
  return -sum;
}

}  // namespace nni_test
