#pragma once

#include <unistd.h>

#include <cmath>
#include <limits>
#include <numbers>

#include <nni/core/error.hpp>
#include <nni/core/random.hpp>

namespace nni {

NNI_INLINE Seed random_seed() {
  std::uint64_t bits = 0;
  if (::getentropy(&bits, sizeof bits) != 0)
    throw Error(Errc::internal, "the system provides no random numbers (getentropy failed)");
  return Seed{bits >> 11};  // 53 bits
}

NNI_INLINE std::uint64_t CounterRandom::below(std::uint64_t bound) noexcept {
  // Numbers of the last, incomplete multiple of the bound are rejected: they would make small results more frequent.
  const std::uint64_t complete = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t bits = next();
  while (bits >= complete) bits = next();
  return bits % bound;
}

NNI_INLINE double CounterRandom::normal() noexcept {
  if (has_normal_) {
    has_normal_ = false;
    return normal_;
  }
  double x = 0.0;
  double y = 0.0;
  double square = 0.0;
  do {
    x = 2.0 * uniform() - 1.0;
    y = 2.0 * uniform() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const double scale = std::sqrt(-2.0 * std::log(square) / square);
  normal_ = y * scale;
  has_normal_ = true;
  return x * scale;
}

NNI_INLINE double normal_cdf(double x) noexcept { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

NNI_INLINE double normal_quantile(double probability) noexcept {
  if (!(probability > 0.0)) return -std::numeric_limits<double>::infinity();
  if (!(probability < 1.0)) return std::numeric_limits<double>::infinity();
  // The lower half is computed and mirrored, because 1 - p would lose the digits of a small p.
  const bool upper = probability > 0.5;
  const double tail = upper ? 1.0 - probability : probability;
  const double t = std::sqrt(-2.0 * std::log(tail));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  // Halley's iteration triples the number of correct digits: two steps reach the precision of doubles.
  for (int step = 0; step < 2; ++step) {
    const double error = (normal_cdf(x) - tail) * std::sqrt(2.0 * std::numbers::pi) * std::exp(0.5 * x * x);
    // Below 1e-300 the terms leave the range of doubles; the initial value has three correct digits there.
    if (!std::isfinite(error)) break;
    x -= error / (1.0 + 0.5 * x * error);
  }
  return upper ? -x : x;
}

}  // namespace nni
