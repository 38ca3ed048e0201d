#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace digits {

inline constexpr std::size_t pixels = 64;   ///< an image is 8 x 8
inline constexpr std::size_t classes = 10;  ///< the digits 0 to 9

/// Images with their labels.
struct Images {
  std::vector<float> values;        ///< `pixels` numbers in [0, 1] per image, row by row
  std::vector<std::size_t> labels;  ///< the digit of each image

  [[nodiscard]] std::size_t size() const noexcept { return labels.size(); }
  [[nodiscard]] const float* image(std::size_t index) const noexcept { return values.data() + index * pixels; }
};

/// The data of one training run: images for training and other images for measuring.
struct Task {
  Images train;
  Images held_out;
};

/// Reads the images.
///
/// @param file  gzip-compressed lines of 64 numbers from 0 to 16 and the digit, separated by commas
/// @throws std::runtime_error  when the file cannot be read or a line is not of this form; it names the line
[[nodiscard]] Images read_images(const std::filesystem::path& file);

/// Returns the data for tuning: 3/5 of the images for training, 1/5 for measuring. The test images are excluded, so no
/// result of a trial can depend on them.
[[nodiscard]] Task tuning_task(const Images& all);

/// Returns the data for the final measurement: the 4/5 of the tuning for training, the other 1/5 for measuring.
[[nodiscard]] Task test_task(const Images& all);

}  // namespace digits
