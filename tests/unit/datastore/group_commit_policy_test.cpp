#include "support/catch.hpp"

#include <nni/datastore/common/group_commit_policy.hpp>

using namespace std::chrono_literals;
using nni::Duration;
using nni::SteadyPoint;
using nni::datastore::detail::GroupCommitPolicy;

namespace {

constexpr SteadyPoint start = SteadyPoint{} + 1h;

// Records at an even rate, committed as the policy says; commits take no time.
void run_at(GroupCommitPolicy& policy, double per_second, Duration span, SteadyPoint& now) {
  const auto step = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1.0 / per_second));
  for (const SteadyPoint end = now + span; now < end; now += step) {
    policy.appended(1, now);
    if (policy.due(now) <= now) {
      policy.taken();
      policy.committed();
    }
  }
}

}  // namespace

TEST_CASE("at a low rate a record is committed at once", "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  run_at(policy, 100.0, 1s, now);

  policy.appended(1, now);

  CHECK(policy.due(now) <= now);
}

TEST_CASE("a burst out of the blue is committed at once", "[datastore][group_commit]") {
  GroupCommitPolicy policy;

  policy.appended(10, start);

  CHECK(policy.due(start) <= start);
}

TEST_CASE("at a high rate records are held for 2 ms, counted from the oldest", "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  run_at(policy, 5000.0, 500ms, now);
  policy.taken();
  policy.committed();

  policy.appended(1, now);
  policy.appended(1, now + 1ms);

  CHECK(policy.due(now + 1ms) == now + 2ms);

  SECTION("but not longer than until 256 are there") {
    policy.appended(254, now + 1ms);
    CHECK(policy.due(now + 1ms) <= now + 1ms);
  }
  SECTION("and not for a reader") {
    policy.hurry();
    CHECK(policy.due(now + 1ms) <= now + 1ms);
    policy.taken();
    policy.committed();
    policy.appended(1, now + 2ms);
    CHECK(policy.due(now + 2ms) == now + 4ms);
  }
}

TEST_CASE("when the rate falls, holding ends", "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  run_at(policy, 5000.0, 500ms, now);
  policy.taken();
  policy.committed();

  now += 1s;
  policy.appended(1, now);

  CHECK(policy.due(now) <= now);
}

TEST_CASE("who waits alone is never held, however fast the records come", "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  // One trial after the other, 2000 records per second: each commit is waited for and nothing comes meanwhile.
  for (int round = 0; round < 1000; ++round) {
    policy.appended(2, now);
    policy.waiting(now);
    REQUIRE(policy.due(now) <= now);
    policy.taken();
    now += 1ms;
    policy.committed();
  }
}

TEST_CASE("who waits in company is held until the others pause", "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  for (int round = 0; round < 1000; ++round) {
    policy.appended(2, now);
    policy.waiting(now);
    policy.taken();
    now += 200us;
    policy.appended(1, now);  // somebody else
    policy.committed();
  }
  policy.taken();
  policy.committed();

  policy.appended(1, now);
  policy.waiting(now);
  CHECK(policy.due(now) == now + 200us);
  policy.appended(1, now + 150us);
  CHECK(policy.due(now + 150us) == now + 350us);

  SECTION("for 2 ms at most") {
    for (Duration later = 300us; later <= 1950us; later += 150us) policy.appended(1, now + later);
    CHECK(policy.due(now + 1950us) == now + 2ms);
  }
  SECTION("and no more once the others have gone") {
    for (int round = 0; round < 3; ++round) {
      policy.taken();
      policy.committed();
      now += 500us;
      policy.appended(1, now);
      policy.waiting(now);
    }
    policy.taken();
    policy.committed();
    now += 500us;
    policy.appended(1, now);
    policy.waiting(now);
    CHECK(policy.due(now) <= now);
  }
}

TEST_CASE("who waits in company is not held where records come faster than a timer is exact",
          "[datastore][group_commit]") {
  GroupCommitPolicy policy;
  SteadyPoint now = start;
  // A hundred records in each commit, which takes half a millisecond.
  for (int round = 0; round < 1000; ++round) {
    policy.appended(50, now);
    policy.waiting(now);
    policy.taken();
    now += 500us;
    policy.appended(50, now);
    policy.committed();
  }
  policy.waiting(now);

  CHECK(policy.due(now) <= now);
}
