#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include <nni/tuning/detail/parzen.hpp>

namespace nni::tuning::detail {

/// Returns exp(x) for x in [-87, 0], to about 2e-7 relative; about 1e-38 for smaller x.
///
/// The exponent is split off by adding a large number, whose rounding leaves an integer in the low bits; the rest is a
/// polynomial on half an octave. There is no branch, so that loops are vectorized.
inline float exp_of_negative(float x) noexcept {
  constexpr float shift = 0x1.8p23F;
  const float octaves = std::max(x, -87.0F) * std::numbers::log2e_v<float>;
  const float shifted = octaves + shift;
  const float rest = (octaves - (shifted - shift)) * std::numbers::ln2_v<float>;
  const float series =
      1.0F + rest * (1.0F + rest * (0.5F + rest * (1.0F / 6 + rest * (1.0F / 24 + rest * (1.0F / 120)))));
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(shift)) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(series) + exponent);
}

NNI_INLINE double deviations_of(const Axis& axis, double value) noexcept {
  double deviations = 0.0;
  if (!is_logarithmic(axis.type))
    deviations = (value - axis.low) / axis.high;
  else if (value > 0.0)
    deviations = (std::log(value) - axis.low) / axis.high;
  else
    deviations = normal_quantile(axis.position_of(value));  // rounded to 0: the middle of its positions
  return std::clamp(deviations, -farthest_deviation, farthest_deviation);
}

NNI_LAZY_BODY Parzen::Parzen(const std::vector<Axis>& axes) : axes_(&axes), scales_(axes.size()) {
  columns_ = 2;  // sum of the peaks of unconditional axes, weight
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    first_column_.push_back(columns_);
    columns_ += conditional(axis) ? 3 : 1;
  }
}

NNI_LAZY_BODY void Parzen::clear() {
  data_.clear();
  size_ = 0;
  weight_ = 0.0;
  for (Scale& scale : scales_) scale.count = scale.sum = scale.squares = scale.axes = 0.0;
}

NNI_LAZY_BODY void Parzen::add(std::span<const float> point, float weight) {
  if (size_ % lanes == 0) data_.resize(data_.size() + columns_ * lanes, 0.0F);
  const std::size_t block = size_ / lanes;
  const std::size_t lane = size_ % lanes;
  for (std::size_t axis = 0; axis < point.size(); ++axis) {
    const bool active = !std::isnan(point[axis]);
    column(block, first_column_[axis])[lane] = active ? point[axis] : 0.0F;
    if (conditional(axis)) column(block, first_column_[axis] + 1)[lane] = active ? 1.0F : 0.0F;
  }
  const std::size_t kernel = size_++;
  set_weight(kernel, weight);
  place_peaks(kernel);
}

NNI_LAZY_BODY void Parzen::set_weight(std::size_t kernel, float weight) {
  float& own = column(kernel / lanes, 1)[kernel % lanes];
  if (own == weight) return;
  count_point(kernel, static_cast<double>(weight) - static_cast<double>(own));
  own = weight;
}

NNI_LAZY_BODY void Parzen::count_point(std::size_t kernel, double weight) {
  weight_ += weight;
  double active = 0.0;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) active += std::isnan(coordinate(kernel, axis)) ? 0.0 : 1.0;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const auto at = static_cast<double>(coordinate(kernel, axis));
    if (std::isnan(at)) continue;
    scales_[axis].count += weight;
    scales_[axis].axes += weight * active;
    scales_[axis].sum += weight * at;
    scales_[axis].squares += weight * at * at;
  }
}

NNI_LAZY_BODY float Parzen::coordinate(std::size_t kernel, std::size_t axis) const {
  const std::size_t block = kernel / lanes;
  const std::size_t lane = kernel % lanes;
  if (conditional(axis) && column(block, first_column_[axis] + 1)[lane] == 0.0F) return static_cast<float>(inactive);
  return column(block, first_column_[axis])[lane];
}

NNI_LAZY_BODY void Parzen::fit() {
  bool changed = false;
  highest_ = 0.0F;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const float width = fitting_width(axis);
    if (width != scales_[axis].width) {
      set_width(axis, width);
      changed = true;
    }
    highest_ += std::max(scales_[axis].top, 0.0F);
  }
  for (std::size_t kernel = 0; changed && kernel < size_; ++kernel) place_peaks(kernel);
}

NNI_LAZY_BODY float Parzen::fitting_width(std::size_t axis) const {
  const Scale& scale = scales_[axis];
  const Axis& shape = (*axes_)[axis];
  const auto values = static_cast<double>(shape.count);
  if (categorical(axis)) return static_cast<float>(values / (values + scale.count));
  const double points = scale.count + 1.0;
  double variance = 0.0;
  if (bell(axis)) {
    // The prior contributes its variance, 1, but not its mean: otherwise results in a tail would never seem close.
    const double mean = scale.count > 0.0 ? scale.sum / scale.count : 0.0;
    variance = (scale.squares - scale.count * mean * mean + 1.0) / points;
  } else {
    // The prior is uniform: mean 1/2, mean square 1/3.
    const double mean = (scale.sum + 0.5) / points;
    variance = (scale.squares + 1.0 / 3.0) / points - mean * mean;
  }
  const double axes = scale.count > 0.0 ? scale.axes / scale.count : 1.0;
  double width = 0.6 * std::sqrt(std::max(0.0, variance)) * std::pow(std::max(scale.count, 1.0), -1.0 / (axes + 4.0));
  width = std::max(width, bell(axis) ? 0.02 : 0.01);
  if (values > 0.0) width = std::max(width, 0.5 / values);
  if (shape.type == DimensionType::qnormal) width = std::max(width, std::min(0.5 * shape.q / shape.high, 1.0));
  // Quantized to a sixteenth of an octave, so that one more result rarely invalidates the tables of all others.
  return static_cast<float>(std::exp2(std::nearbyint(16.0 * std::log2(width)) / 16.0));
}

NNI_LAZY_BODY void Parzen::set_width(std::size_t axis, float width) {
  constexpr std::size_t cells = 64;
  Scale& scale = scales_[axis];
  scale.width = width;
  if (categorical(axis)) {
    const auto options = static_cast<float>((*axes_)[axis].count);
    scale.own = std::log(options * (1.0F - width) + width);
    scale.other = std::log(width);
    scale.top = scale.own;
    return;
  }
  const auto deviation = static_cast<double>(width);
  scale.inverse = static_cast<float>(1.0 / (deviation * std::numbers::sqrt2));
  if (bell(axis)) {
    // Relative to a prior of deviation 1; the rest depends on the point, see `add_axis`.
    scale.peak.assign(1, -std::log(width));
    scale.top = scale.peak.front();
    return;
  }
  // The normalization of a kernel depends on its position only: a table, with one extra cell for the interpolation.
  scale.peak.resize(cells + 2);
  for (std::size_t cell = 0; cell <= cells; ++cell)
    scale.peak[cell] = static_cast<float>(-std::log(left_of_kernel(axis, static_cast<double>(cell) / cells)));
  scale.peak[cells + 1] = scale.peak[cells];
  scale.top = *std::max_element(scale.peak.begin(), scale.peak.end());
}

// The integral of exp(-(x - position)^2 / 2 width^2) over all positions x; for few values, the sum over these,
// each with its probability under the prior, because the density is evaluated only at them.
NNI_LAZY_BODY double Parzen::left_of_kernel(std::size_t axis, double position) const {
  constexpr std::uint64_t few = 32;
  const Axis& shape = (*axes_)[axis];
  const auto deviation = static_cast<double>(scales_[axis].width);
  if (shape.count == 0 || shape.count > few) {
    const double inside = normal_cdf((1.0 - position) / deviation) - normal_cdf(-position / deviation);
    return deviation * std::sqrt(2.0 * std::numbers::pi) * inside;
  }
  double sum = 0.0;
  double begin = 0.0;
  for (std::uint64_t index = 0; index < shape.count; ++index) {
    const double middle = shape.position_of(shape.nth_value(index));
    const double share = 2.0 * (middle - begin);
    const double distance = (middle - position) / deviation;
    sum += share * std::exp(-0.5 * distance * distance);
    begin += share;
  }
  return sum;
}

NNI_LAZY_BODY float Parzen::peak(std::size_t axis, float position) const noexcept {
  const std::vector<float>& table = scales_[axis].peak;
  if (table.empty()) return 0.0F;
  if (table.size() == 1) return table.front();
  const float at = position * static_cast<float>(table.size() - 2);
  const auto cell = static_cast<std::size_t>(at);
  const float beyond = at - static_cast<float>(cell);
  return table[cell] + beyond * (table[cell + 1] - table[cell]);
}

NNI_LAZY_BODY void Parzen::place_peaks(std::size_t kernel) {
  const std::size_t block = kernel / lanes;
  const std::size_t lane = kernel % lanes;
  float sum = 0.0F;
  for (std::size_t axis = 0; axis < scales_.size(); ++axis) {
    const float own = categorical(axis) ? scales_[axis].own : peak(axis, column(block, first_column_[axis])[lane]);
    if (!conditional(axis))
      sum += own;
    else
      column(block, first_column_[axis] + 2)[lane] = own * column(block, first_column_[axis] + 1)[lane];
  }
  column(block, 0)[lane] = sum;
}

// Adds the logarithms of one axis to the sums of one block.
NNI_LAZY_BODY void Parzen::add_axis(const float* columns, std::size_t axis, float at, float* sum) const noexcept {
  const Scale& scale = scales_[axis];
  const float* const middle = columns + first_column_[axis] * lanes;
  std::array<float, lanes> loss;
  if (categorical(axis)) {
    const float price = scale.own - scale.other;
    for (std::size_t lane = 0; lane < lanes; ++lane) loss[lane] = middle[lane] == at ? 0.0F : price;
  } else {
    const float prior = bell(axis) ? 0.5F * at * at : 0.0F;  // the negative logarithm of the prior
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float distance = (middle[lane] - at) * scale.inverse;
      loss[lane] = distance * distance - prior;
    }
  }
  if (!conditional(axis)) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] -= loss[lane];
    return;
  }
  const float* const active = middle + lanes;
  const float* const peaks = middle + 2 * lanes;
  for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] += peaks[lane] - active[lane] * loss[lane];
}

/// Exponents below this are negligible beside the prior.
inline constexpr float far_above = 40.0F;

NNI_LAZY_BODY double Parzen::log_density(std::span<const float> point, double prior_weight) const {
  std::array<float, lanes> total{};
  std::array<float, lanes> sum;
  const std::size_t blocks = (size_ + lanes - 1) / lanes;
  const auto add_up = [&](const float* columns) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sum[lane] = columns[lane];
    for (std::size_t axis = 0; axis < point.size(); ++axis)
      if (!std::isnan(point[axis])) add_axis(columns, axis, point[axis], sum.data());
  };
  float top = highest_;
  for (std::size_t axis = 0; axis < point.size(); ++axis)
    if (bell(axis) && !std::isnan(point[axis])) top += 0.5F * point[axis] * point[axis];
  if (top > far_above) {
    // With many axes all kernels lie so far below the bound that they would underflow.
    top = std::numeric_limits<float>::lowest();
    for (std::size_t block = 0; block < blocks; ++block) {
      const float* const columns = column(block, 0);
      add_up(columns);
      for (std::size_t lane = 0; lane < lanes; ++lane)
        if (columns[lanes + lane] > 0.0F) top = std::max(top, sum[lane]);
    }
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    const float* const columns = column(block, 0);
    add_up(columns);
    // Kernels of weight 0 may lie above.
    for (std::size_t lane = 0; lane < lanes; ++lane)
      total[lane] += columns[lanes + lane] * exp_of_negative(std::min(sum[lane] - top, 0.0F));
  }
  double kernels = 0.0;
  for (const float share : total) kernels += static_cast<double>(share);
  // Far from all kernels only the prior contributes, which keeps the logarithm finite.
  const double prior = std::log(prior_weight);
  const double seen = static_cast<double>(top) + std::log(kernels);
  const double larger = std::max(prior, seen);
  return larger + std::log1p(std::exp(std::min(prior, seen) - larger)) - std::log(prior_weight + weight_);
}

NNI_LAZY_BODY void Parzen::draw(CounterRandom& random, double prior_weight, std::span<float> into) const {
  double pick = random.uniform() * (prior_weight + weight_);
  std::size_t kernel = size_;
  for (std::size_t index = 0; index < size_ && kernel == size_; ++index) {
    pick -= static_cast<double>(column(index / lanes, 1)[index % lanes]);
    if (pick < 0.0) kernel = index;
  }
  for (std::size_t at = 0; at < into.size(); ++at) {
    const Axis& axis = (*axes_)[at];
    if (axis.parent != Axis::no_parent && into[axis.parent] != static_cast<float>(axis.branch)) {
      into[at] = static_cast<float>(inactive);
      continue;
    }
    const float middle = kernel < size_ ? coordinate(kernel, at) : static_cast<float>(inactive);
    const bool prior = std::isnan(middle);
    if (categorical(at)) {
      const bool leave = prior || random.uniform() < static_cast<double>(scales_[at].width);
      into[at] = leave ? static_cast<float>(random.below(axis.count)) : middle;
      continue;
    }
    if (bell(at)) {
      double deviations =
          prior ? normal_quantile(random.uniform())
                : static_cast<double>(middle) + static_cast<double>(scales_[at].width) * random.normal();
      deviations = std::clamp(deviations, -farthest_deviation, farthest_deviation);
      if (is_quantized(axis.type)) deviations = deviations_of(axis, axis.value_at(normal_cdf(deviations)));
      into[at] = static_cast<float>(deviations);
      continue;
    }
    double position = random.uniform();
    if (!prior) {
      do position = static_cast<double>(middle) + static_cast<double>(scales_[at].width) * random.normal();
      while (!(position > 0.0 && position < 1.0));
    }
    if (axis.count != 0 || is_quantized(axis.type)) position = axis.position_of(axis.value_at(position));
    into[at] = std::clamp(static_cast<float>(position), 0x1p-24F, 1.0F - 0x1p-24F);
  }
}

}  // namespace nni::tuning::detail
