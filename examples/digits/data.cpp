#include "data.hpp"

#include <array>
#include <charconv>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <zlib.h>

namespace digits {
namespace {

std::string decompress(const std::filesystem::path& file) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(file.c_str(), "rb"), &gzclose);
  if (!in) throw std::runtime_error("cannot open " + file.string() + "; set the path of digits.csv.gz with --data");
  std::string text;
  std::array<char, 65536> block{};
  int count = 0;
  while ((count = gzread(in.get(), block.data(), static_cast<unsigned>(block.size()))) > 0)
    text.append(block.data(), static_cast<std::size_t>(count));
  if (count < 0) throw std::runtime_error(file.string() + " is damaged: it cannot be decompressed");
  return text;
}

void read_line(std::string_view line, Images& into) {
  for (std::size_t field = 0; field <= pixels; ++field) {
    unsigned value = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), value);
    const unsigned limit = field < pixels ? 16 : classes - 1;
    if (problem != std::errc{} || value > limit)
      throw std::runtime_error("field " + std::to_string(field + 1) + " is wrong");
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (!line.empty()) line.remove_prefix(1);
    if (field < pixels)
      into.values.push_back(static_cast<float>(value) / 16.0F);
    else
      into.labels.push_back(value);
  }
  if (!line.empty()) throw std::runtime_error("there are more than 65 fields");
}

enum class Part { train, validation, test };

/// One part for every image: of each digit, in a fixed random order, the first fifth is for the test, the second
/// for validation, the rest for training. The order depends on nothing but the data.
std::vector<Part> assign_parts(const Images& all) {
  std::vector<Part> parts(all.size(), Part::train);
  std::mt19937 random(1998);
  for (std::size_t digit = 0; digit < classes; ++digit) {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all.labels[i] == digit) members.push_back(i);
    // Written out, because the order that std::shuffle makes differs between standard libraries.
    for (std::size_t i = members.size(); i > 1; --i) std::swap(members[i - 1], members[random() % i]);
    const std::size_t fifth = members.size() / 5;
    for (std::size_t i = 0; i < fifth; ++i) parts[members[i]] = Part::test;
    for (std::size_t i = fifth; i < 2 * fifth; ++i) parts[members[i]] = Part::validation;
  }
  return parts;
}

void append(Images& to, const Images& from, std::size_t index) {
  to.values.insert(to.values.end(), from.image(index), from.image(index) + pixels);
  to.labels.push_back(from.labels[index]);
}

}  // namespace

Images read_images(const std::filesystem::path& file) {
  const std::string text = decompress(file);
  Images images;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    try {
      read_line(line, images);
    } catch (const std::runtime_error& problem) {
      throw std::runtime_error(file.string() + ", line " + std::to_string(number) + ": " + problem.what());
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  if (images.size() == 0) throw std::runtime_error(file.string() + " holds no images");
  return images;
}

Task tuning_task(const Images& all) {
  const std::vector<Part> parts = assign_parts(all);
  Task task;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (parts[i] == Part::train) append(task.train, all, i);
    if (parts[i] == Part::validation) append(task.held_out, all, i);
  }
  return task;
}

Task test_task(const Images& all) {
  const std::vector<Part> parts = assign_parts(all);
  Task task;
  for (std::size_t i = 0; i < all.size(); ++i) append(parts[i] == Part::test ? task.held_out : task.train, all, i);
  return task;
}

}  // namespace digits
