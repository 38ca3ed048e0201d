#pragma once

#include <algorithm>
#include <cmath>

#include <nni/core/random.hpp>
#include <nni/space/axis.hpp>

namespace nni {

NNI_INLINE double Axis::quantized(double value) const noexcept {
  // nearbyint rounds half to even in the default mode, as Python's round does.
  return std::clamp(std::nearbyint(value / q) * q, min, max);
}

NNI_INLINE double Axis::value_at(double position) const noexcept {
  switch (type) {
    case DimensionType::choice:
    case DimensionType::randint: {
      // Position 1 would give an index after the last one.
      const double index = std::min(std::floor(position * static_cast<double>(count)), static_cast<double>(count - 1));
      return min + index;
    }
    case DimensionType::uniform: return std::clamp(low + (high - low) * position, min, max);
    case DimensionType::loguniform: return std::clamp(std::exp(low + (high - low) * position), min, max);
    case DimensionType::quniform: return quantized(low + (high - low) * position);
    case DimensionType::qloguniform: return quantized(std::exp(low + (high - low) * position));
    case DimensionType::normal: return std::clamp(low + high * normal_quantile(position), min, max);
    case DimensionType::lognormal: return std::clamp(std::exp(low + high * normal_quantile(position)), min, max);
    case DimensionType::qnormal: return quantized(low + high * normal_quantile(position));
    case DimensionType::qlognormal: return quantized(std::exp(low + high * normal_quantile(position)));
  }
  return min;
}

NNI_INLINE double Axis::position_of(double value) const noexcept {
  if (type == DimensionType::choice || type == DimensionType::randint)
    return std::clamp((value - min + 0.5) / static_cast<double>(count), 0.0, 1.0);
  const auto cumulative = [this](double x) {
    if (is_logarithmic(type)) x = x > 0.0 ? std::log(x) : -std::numeric_limits<double>::infinity();
    return is_normal(type) ? normal_cdf((x - low) / high) : std::clamp((x - low) / (high - low), 0.0, 1.0);
  };
  if (!is_quantized(type)) return cumulative(value);
  // A multiple of q stands for all values that are rounded to it.
  const double step = std::nearbyint(value / q);
  return 0.5 * (cumulative((step - 0.5) * q) + cumulative((step + 0.5) * q));
}

NNI_INLINE bool Axis::accepts(double value) const noexcept {
  if (!(value >= min && value <= max)) return false;
  if (type == DimensionType::choice || type == DimensionType::randint) return std::nearbyint(value) == value;
  // A value that another program rounded may differ in its last digits.
  return !is_quantized(type) || std::abs(quantized(value) - value) <= 1e-9 * std::max(q, std::abs(value));
}

NNI_INLINE double Axis::nth_value(std::uint64_t index) const noexcept {
  if (!is_quantized(type)) return min + static_cast<double>(index);
  return std::clamp((std::nearbyint(min / q) + static_cast<double>(index)) * q, min, max);
}

NNI_INLINE std::uint64_t Axis::index_of(double value) const noexcept {
  const double index = is_quantized(type) ? std::nearbyint(value / q) - std::nearbyint(min / q) : value - min;
  return static_cast<std::uint64_t>(std::clamp(index, 0.0, static_cast<double>(count - 1)));
}

}  // namespace nni
