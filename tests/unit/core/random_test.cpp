#include "support/catch.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include <nni/core/random.hpp>

namespace nni {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST_CASE("random: the generator gives the published answers", "[core][random]") {
  // Known answers for Philox4x32-10 that its authors publish with the Random123 library.
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: equal seed, id and stream give equal numbers, any difference gives others", "[core][random]") {
  const std::uint64_t reference = CounterRandom(seed(7), ParameterId{3}, 1).next();

  CHECK(CounterRandom(seed(7), ParameterId{3}, 1).next() == reference);
  CHECK(CounterRandom(seed(8), ParameterId{3}, 1).next() != reference);
  CHECK(CounterRandom(seed(7), ParameterId{4}, 1).next() != reference);
  CHECK(CounterRandom(seed(7), ParameterId{3}, 2).next() != reference);
  CHECK(CounterRandom(seed(7), ParameterId{3 + (std::uint64_t{1} << 32)}, 1).next() != reference);
  CHECK(CounterRandom(seed(7 + (std::uint64_t{1} << 32)), ParameterId{3}, 1).next() != reference);
}

TEST_CASE("random: fresh seeds differ and survive a JSON reader that knows only doubles", "[core][random]") {
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t value = random_seed().value;
    CHECK(static_cast<std::uint64_t>(static_cast<double>(value)) == value);
    seen.insert(value);
  }
  CHECK(seen.size() == 100);
}

TEST_CASE("random: uniform numbers lie strictly between 0 and 1 and are spread evenly", "[core][random]") {
  std::array<int, 10> cells{};
  double sum = 0.0;
  CounterRandom random(seed(1), ParameterId{0});
  for (int round = 0; round < 100'000; ++round) {
    const double value = random.uniform();
    REQUIRE(value > 0.0);
    REQUIRE(value < 1.0);
    ++cells[static_cast<std::size_t>(value * 10.0)];
    sum += value;
  }
  // Five deviations of a binomial count with n = 100000 and p = 1/10 are 474.
  for (const int count : cells) CHECK(std::abs(count - 10'000) < 474);
  CHECK(sum / 100'000 == Approx(0.5).margin(0.005));
}

TEST_CASE("random: integers below a bound are equally likely", "[core][random]") {
  std::array<int, 7> counts{};
  CounterRandom random(seed(2), ParameterId{0});
  for (int round = 0; round < 70'000; ++round) ++counts[static_cast<std::size_t>(random.below(7))];

  for (const int count : counts) CHECK(std::abs(count - 10'000) < 463);
  CHECK(random.below(1) == 0);
}

TEST_CASE("random: normal numbers have the moments of a normal distribution", "[core][random]") {
  CounterRandom random(seed(3), ParameterId{0});
  double sum = 0.0;
  double squares = 0.0;
  double fourth = 0.0;
  constexpr int rounds = 100'000;
  for (int round = 0; round < rounds; ++round) {
    const double value = random.normal();
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  CHECK(sum / rounds == Approx(0.0).margin(0.016));
  CHECK(squares / rounds == Approx(1.0).margin(0.023));
  CHECK(fourth / rounds == Approx(3.0).margin(0.16));
}

TEST_CASE("random: the normal quantile inverts the normal distribution, also far out", "[core][random]") {
  CHECK(normal_quantile(0.5) == Approx(0.0).margin(1e-15));
  CHECK(normal_quantile(0.975) == Approx(1.959963984540054).epsilon(1e-14));
  CHECK(normal_quantile(1e-10) == Approx(-6.361340902404056).epsilon(1e-13));
  CHECK(normal_quantile(0.0) == -std::numeric_limits<double>::infinity());
  CHECK(normal_quantile(1.0) == std::numeric_limits<double>::infinity());
  CHECK(std::isfinite(normal_quantile(5e-324)));
  CHECK(normal_quantile(1e-308) < normal_quantile(1e-300));
  for (double x = -8.0; x <= 5.0; x += 0.125) CHECK(normal_quantile(normal_cdf(x)) == Approx(x).margin(1e-9));
}

}  // namespace
}  // namespace nni
