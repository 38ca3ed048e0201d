#pragma once

/// @file
/// Numbers that a test takes from the environment: how much, and with which random numbers.

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace nni_test {

/// A number from the environment.
inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::stoull(text) : otherwise;
}

/// The seed of a random test: `NNI_TEST_SEED`, or another one each time. The test has to print it.
inline std::uint64_t test_seed() {
  return number_from(
      "NNI_TEST_SEED", (static_cast<std::uint64_t>(std::random_device()()) << 32) | std::random_device()());
}

}  // namespace nni_test
