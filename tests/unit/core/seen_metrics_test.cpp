#include "support/catch.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>

#include <nni/core/seen_metrics.hpp>

using nni::Metric;
using nni::MetricKind;
using nni::SeenMetrics;

namespace {

Metric value(MetricKind kind, std::uint32_t sequence, std::string text) {
  return Metric(nni::RunId{nni::TrialId{1}, 0}, kind, sequence, std::move(text), {});
}

Metric intermediate(std::uint32_t sequence, std::string text) {
  return value(MetricKind::intermediate, sequence, std::move(text));
}

}  // namespace

TEST_CASE("a value is known once it was inserted, in whatever order values arrive", "[core]") {
  SeenMetrics seen;
  for (const std::uint32_t sequence : {1U, 0U, 5U, 3U, 4U, 2U, 0xffffffffU})
    CHECK(seen.insert(intermediate(sequence, "0.5")));

  for (const std::uint32_t sequence : {0U, 1U, 2U, 3U, 4U, 5U, 0xffffffffU}) {
    CHECK(seen.contains(intermediate(sequence, "0.5")));
    CHECK_FALSE(seen.insert(intermediate(sequence, "0.5")));
  }
  CHECK_FALSE(seen.contains(intermediate(6, "0.5")));
}

TEST_CASE("another text under a known sequence is another value", "[core]") {
  SeenMetrics seen;
  CHECK(seen.insert(intermediate(0, "0.5")));
  CHECK(seen.insert(intermediate(0, "0.6")));
  CHECK(seen.insert(intermediate(2, "0.7")));
  CHECK(seen.insert(intermediate(2, "0.8")));
  CHECK(seen.insert(intermediate(1, "0.9")));

  CHECK_FALSE(seen.insert(intermediate(0, "0.5")));
  CHECK_FALSE(seen.insert(intermediate(0, "0.6")));
  CHECK_FALSE(seen.insert(intermediate(2, "0.7")));
  CHECK_FALSE(seen.insert(intermediate(2, "0.8")));
}

TEST_CASE("a final value and an intermediate one are never the same", "[core]") {
  SeenMetrics seen;
  CHECK(seen.insert(value(MetricKind::final, 0, "0.5")));
  CHECK(seen.insert(intermediate(0, "0.5")));
  CHECK(seen.insert(value(MetricKind::final, 0, "0.6")));

  CHECK_FALSE(seen.insert(value(MetricKind::final, 0, "0.5")));
  CHECK_FALSE(seen.insert(value(MetricKind::final, 0, "0.6")));
  CHECK(seen.insert(value(MetricKind::final, 1, "0.5")));
}

TEST_CASE("known values answer like a plain set of sequences and texts, whatever the order", "[core]") {
  std::mt19937 random(20260921);
  for (int round = 0; round < 50; ++round) {
    SeenMetrics seen;
    std::set<std::pair<std::uint32_t, std::string>> expected;
    for (int step = 0; step < 400; ++step) {
      const auto sequence = static_cast<std::uint32_t>(random() % 120);
      const std::string text = std::to_string(random() % 2);
      const bool is_new = expected.emplace(sequence, text).second;
      REQUIRE(seen.contains(intermediate(sequence, text)) != is_new);
      REQUIRE(seen.insert(intermediate(sequence, text)) == is_new);
    }
  }
}
