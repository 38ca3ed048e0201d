#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <nni/core/macros.hpp>
#include <nni/core/random.hpp>
#include <nni/space/axis.hpp>

namespace nni::tuning::detail {

/// Bound of the coordinates of normal axes, in standard deviations; the prior has 1e-15 of its probability beyond.
inline constexpr double farthest_deviation = 8.0;

/// Returns the coordinate of an accepted value of a normal axis: its distance from the mean in standard deviations.
[[nodiscard]] double deviations_of(const Axis& axis, double value) noexcept;

/// A mixture of kernels over all axes of a space at once, one kernel per observed point, and the prior as one more.
///
/// Coordinates are positions in (0, 1), on which the prior is uniform with density 1. On a normal axis, where an interval of
/// positions near 0 or 1 holds a whole tail, the coordinate is the distance from the mean in standard deviations; of a
/// choice it is the index. A kernel is a product over axes: a normal distribution on a numeric axis, cut to [0, 1] where
/// that is the range of positions, and on a choice the point's own option with the rest spread evenly. On an axis that is
/// inactive in the kernel's point the kernel is the prior. All densities are relative to the prior, so inactive axes
/// contribute a factor of 1.
///
/// Kernels are stored in blocks of 16, axis by axis, so that compilers vectorize the loops over a
/// block.
///
/// Sources: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization", NeurIPS 2011;
/// Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
/// empirical performance", arXiv:2304.11127, 2023, for the joint kernels.
class Parzen {
 public:
  /// @param axes  of the space; they must outlive this object
  NNI_LAZY explicit Parzen(const std::vector<Axis>& axes);

  /// Returns the number of kernels besides the prior, including those of weight 0.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Adds a kernel. @param point  one coordinate per axis, NaN where it is inactive
  NNI_LAZY void add(std::span<const float> point, float weight);

  /// Changes the weight of a kernel; 0 removes it from the mixture.
  NNI_LAZY void set_weight(std::size_t kernel, float weight);

  /// Removes all kernels.
  NNI_LAZY void clear();

  /// Fits the widths of the kernels to the points of positive weight. Before `log_density` and `draw`.
  ///
  /// On a numeric axis the deviation is 0.6 n^(-1/(d+4)) times that of the points, the prior counted as one of them:
  /// with n points on d axes it narrows as results gather (Scott's rule, with a smaller constant that was chosen on
  /// ten test functions). It is never below 0.01 (0.02 on a normal axis), nor below half of the room that one of few values
  /// has. On a choice of K options the probability of leaving the own one is K / (K + n). Only points in which the axis is
  /// active count in n, and d is the mean number of active axes of these points: a branch is fitted as if it were a space.
  NNI_LAZY void fit();

  /// Returns the logarithm of the density relative to the prior.
  ///
  /// @param point         one coordinate per axis, NaN where it is inactive
  /// @param prior_weight  weight of the prior; every kernel has its own
  NNI_LAZY [[nodiscard]] double log_density(std::span<const float> point, double prior_weight) const;

  /// Draws a point from the mixture.
  ///
  /// @param into  receives one coordinate per axis, NaN where it is inactive; numeric coordinates of axes with few
  ///              values are moved to the middle of their value
  NNI_LAZY void draw(CounterRandom& random, double prior_weight, std::span<float> into) const;

  /// Returns the coordinate of kernel `kernel` on axis `axis`, NaN where it is inactive.
  NNI_LAZY [[nodiscard]] float coordinate(std::size_t kernel, std::size_t axis) const;

 private:
  static constexpr std::size_t lanes = 16;

  /// Properties of one axis that all kernels share.
  struct Scale {
    double count = 0.0;       ///< weight of the points that are active here
    double sum = 0.0;         ///< sum of their coordinates
    double squares = 0.0;     ///< sum of the squares of their coordinates
    double axes = 0.0;        ///< sum of the numbers of active axes of these points
    float width = 0.0F;       ///< deviation, or probability of leaving
    float inverse = 1.0F;     ///< 1 / (width * sqrt(2))
    float own = 0.0F;         ///< choice: logarithm of the relative density on the own option
    float other = 0.0F;       ///< choice: the same on another option
    float top = 0.0F;         ///< upper bound of all kernels' logarithms, without the contribution of a normal prior
    std::vector<float> peak;  ///< logarithm of the relative density at the middle, over the position; normal: one value
  };

  [[nodiscard]] bool conditional(std::size_t axis) const noexcept { return (*axes_)[axis].parent != Axis::no_parent; }
  [[nodiscard]] bool categorical(std::size_t axis) const noexcept {
    return (*axes_)[axis].type == DimensionType::choice;
  }
  [[nodiscard]] bool bell(std::size_t axis) const noexcept { return is_normal((*axes_)[axis].type); }
  [[nodiscard]] float* column(std::size_t block, std::size_t index) noexcept {
    return data_.data() + (block * columns_ + index) * lanes;
  }
  [[nodiscard]] const float* column(std::size_t block, std::size_t index) const noexcept {
    return data_.data() + (block * columns_ + index) * lanes;
  }
  NNI_LAZY [[nodiscard]] float peak(std::size_t axis, float position) const noexcept;
  NNI_LAZY void count_point(std::size_t kernel, double weight);
  NNI_LAZY [[nodiscard]] float fitting_width(std::size_t axis) const;
  NNI_LAZY void set_width(std::size_t axis, float width);
  NNI_LAZY [[nodiscard]] double left_of_kernel(std::size_t axis, double position) const;
  NNI_LAZY void place_peaks(std::size_t kernel);
  NNI_LAZY void add_axis(const float* columns, std::size_t axis, float at, float* sum) const noexcept;

  const std::vector<Axis>* axes_;
  std::vector<std::size_t> first_column_;  ///< per axis: coordinate, then for a conditional axis: active, peak
  std::vector<Scale> scales_;
  std::size_t columns_ = 0;
  std::size_t size_ = 0;
  double weight_ = 0.0;   ///< sum over all kernels
  float highest_ = 0.0F;  ///< upper bound of all kernels' logarithms
  std::vector<float> data_;
};

}  // namespace nni::tuning::detail

#if NNI_HEADER_ONLY
#include <nni/tuning/detail/parzen_inl.hpp>
#endif
