#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace digits {

inline constexpr std::size_t pixels = 64;   ///< an image is 8 x 8
inline constexpr std::size_t classes = 10;  ///< the digits 0 to 9

/// Images and what they show.
struct Images {
  std::vector<float> values;        ///< `pixels` numbers in [0, 1] per image, row by row
  std::vector<std::size_t> labels;  ///< the digit of each image

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }
  [[nodiscard]] const float* image(std::size_t index) const noexcept { return values.data() + index * pixels; }
};

/// What one training run may see: images to learn from and other images to measure with.
struct Task {
  Images train;
  Images held_out;
};

/// Reads the images.
///
/// @param file  gzip-compressed lines of 64 numbers from 0 to 16 and the digit, separated by commas
/// @throws std::runtime_error  when the file cannot be read or a line is not of this form; it names the line
[[nodiscard]] Images read_images(const std::filesystem::path& file);

/// Data for tuning: learn from 3/5 of the images, measure on 1/5. The test images are not in it, so nothing that a
/// trial reports can depend on them.
[[nodiscard]] Task tuning_task(const Images& all);

/// Data for the one measurement at the end: learn from the 4/5 that tuning has seen, measure on the other 1/5.
[[nodiscard]] Task test_task(const Images& all);

}  // namespace digits
