#pragma once

#include <array>
#include <cstdint>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>

namespace nni {

/// The seed of all random choices. Made by `nni::seed(7)`, so that a plain number does not convert to one.
struct Seed {
  std::uint64_t value = 0;  ///< any 64 bits

  friend constexpr bool operator==(const Seed&, const Seed&) = default;
};

/// Returns a seed chosen by the user: the same seed and the same results give the same suggestions.
[[nodiscard]] constexpr Seed seed(std::uint64_t value) noexcept { return Seed{value}; }

/// Returns a fresh seed from the system's random source, below 2^53, so that every JSON reader keeps it exact.
[[nodiscard]] Seed random_seed();

/// Philox4x32-10: turns a 128-bit counter and a 64-bit key into 128 random bits.
///
/// It has no state: the k-th number of a sequence does not depend on the previous ones.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 4.3.
///
/// @param counter  four words; neighboring counters give independent results
/// @param key      two words
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// A random number generator of one suggestion: a function of seed, parameter id and stream only.
///
/// A resumed experiment therefore draws the same numbers as an uninterrupted one.
class CounterRandom {
 public:
  /// @param stream  separates independent uses within one suggestion
  CounterRandom(Seed seed, ParameterId id, std::uint32_t stream = 0) noexcept
      : key_{low(seed.value), high(seed.value)}, counter_{low(id.value), high(id.value), 0, stream} {}

  /// Returns 64 random bits.
  [[nodiscard]] std::uint64_t next() noexcept {
    if (left_ == 0) {
      const std::array<std::uint32_t, 4> words = philox4x32(counter_, key_);
      bits_ = {std::uint64_t{words[1]} << 32 | words[0], std::uint64_t{words[3]} << 32 | words[2]};
      ++counter_[2];
      left_ = 2;
    }
    return bits_[2 - left_--];
  }

  /// Returns a uniform number in the open interval (0, 1): an odd multiple of 2^-53.
  [[nodiscard]] double uniform() noexcept { return (static_cast<double>(next() >> 12) + 0.5) * 0x1p-52; }

  /// Returns a uniform integer in [0, bound).
  /// @param bound  at least 1
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  /// Returns a normal number with mean 0 and deviation 1, by the polar method: two numbers at a time.
  /// Source: Marsaglia, Bray, "A convenient method for generating normal variables", SIAM Review 6, 1964.
  [[nodiscard]] double normal() noexcept;

 private:
  static constexpr std::uint32_t low(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value); }
  static constexpr std::uint32_t high(std::uint64_t value) noexcept { return static_cast<std::uint32_t>(value >> 32); }

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint64_t, 2> bits_{};
  unsigned left_ = 0;
  bool has_normal_ = false;
  double normal_ = 0.0;  ///< the second number of a pair
};

/// Returns the probability that a standard normal number is at most `x`.
[[nodiscard]] double normal_cdf(double x) noexcept;

/// Returns the inverse of `normal_cdf`, to about 1e-15 relative.
///
/// A rational initial value, refined by Halley's iteration on the complementary error function.
///
/// @param probability  in [0, 1]; 0 and 1 give minus and plus infinity
/// Source: Abramowitz and Stegun, "Handbook of mathematical functions", 26.2.23, for the initial value.
[[nodiscard]] double normal_quantile(double probability) noexcept;

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/random_inl.hpp>
#endif
