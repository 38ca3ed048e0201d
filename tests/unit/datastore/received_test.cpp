#include "support/catch.hpp"

#include <random>
#include <set>

#include <nni/datastore/detail/received.hpp>

using nni::Metric;
using nni::MetricKind;
using nni::datastore::detail::Received;
using nni::datastore::detail::SequenceSet;

TEST_CASE("a sequence number is new once", "[datastore]") {
  SequenceSet seen;

  CHECK(seen.insert(0));
  CHECK_FALSE(seen.insert(0));
  CHECK(seen.insert(1));
  CHECK(seen.insert(5));
  CHECK(seen.insert(3));
  CHECK_FALSE(seen.insert(5));
  CHECK(seen.insert(4));
  CHECK(seen.insert(2));
  for (std::uint32_t number = 0; number <= 5; ++number) CHECK_FALSE(seen.insert(number));
  CHECK(seen.insert(0xffffffffU));
  CHECK_FALSE(seen.insert(0xffffffffU));
}

TEST_CASE("a sequence set answers like a plain set, whatever the order", "[datastore]") {
  std::mt19937 random(20260921);
  for (int round = 0; round < 50; ++round) {
    SequenceSet seen;
    std::set<std::uint32_t> expected;
    for (int step = 0; step < 300; ++step) {
      const auto number = static_cast<std::uint32_t>(random() % 120);
      const bool is_new = expected.insert(number).second;
      REQUIRE(seen.insert(number) == is_new);
    }
  }
}

TEST_CASE("final values of one number are told apart by their text", "[datastore]") {
  const nni::RunId run{nni::TrialId{1}, 0};
  Received seen;

  CHECK(seen.insert(Metric(run, MetricKind::final, 0, "0.5", {})));
  CHECK_FALSE(seen.insert(Metric(run, MetricKind::final, 0, "0.5", {})));
  CHECK(seen.insert(Metric(run, MetricKind::final, 0, "0.6", {})));
  CHECK(seen.insert(Metric(run, MetricKind::intermediate, 0, "0.5", {})));
  CHECK_FALSE(seen.insert(Metric(run, MetricKind::intermediate, 0, "another text", {})));
}
