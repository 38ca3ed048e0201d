#include "support/catch.hpp"

#include <nni/datastore/common/commit_pace.hpp>

using namespace std::chrono_literals;
using nni::Duration;
using nni::SteadyPoint;
using nni::datastore::detail::CommitPace;

namespace {

constexpr SteadyPoint start = SteadyPoint{} + 1h;

// Records at an even rate, committed as the pace says; commits take no time.
void run_at(CommitPace& pace, double per_second, Duration span, SteadyPoint& now) {
  const auto step = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(1.0 / per_second));
  for (const SteadyPoint end = now + span; now < end; now += step) {
    pace.appended(1, now);
    if (pace.due(now) <= now) {
      pace.taken();
      pace.committed();
    }
  }
}

}  // namespace

TEST_CASE("at a low rate a record is committed at once", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  run_at(pace, 100.0, 1s, now);

  pace.appended(1, now);

  CHECK(pace.due(now) <= now);
}

TEST_CASE("a burst out of the blue is committed at once", "[datastore][pace]") {
  CommitPace pace;

  pace.appended(10, start);

  CHECK(pace.due(start) <= start);
}

TEST_CASE("at a high rate records are held for 2 ms, counted from the oldest", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  run_at(pace, 5000.0, 500ms, now);
  pace.taken();
  pace.committed();

  pace.appended(1, now);
  pace.appended(1, now + 1ms);

  CHECK(pace.due(now + 1ms) == now + 2ms);

  SECTION("but not longer than until 256 are there") {
    pace.appended(254, now + 1ms);
    CHECK(pace.due(now + 1ms) <= now + 1ms);
  }
  SECTION("and not for a reader") {
    pace.hurry();
    CHECK(pace.due(now + 1ms) <= now + 1ms);
    pace.taken();
    pace.committed();
    pace.appended(1, now + 2ms);
    CHECK(pace.due(now + 2ms) == now + 4ms);
  }
}

TEST_CASE("when the rate falls, holding ends", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  run_at(pace, 5000.0, 500ms, now);
  pace.taken();
  pace.committed();

  now += 1s;
  pace.appended(1, now);

  CHECK(pace.due(now) <= now);
}

TEST_CASE("who waits alone is never held, however fast the records come", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  // One trial after the other, 2000 records per second: each commit is waited for and nothing comes meanwhile.
  for (int round = 0; round < 1000; ++round) {
    pace.appended(2, now);
    pace.waiting(now);
    REQUIRE(pace.due(now) <= now);
    pace.taken();
    now += 1ms;
    pace.committed();
  }
}

TEST_CASE("who waits in company is held until the others pause", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  for (int round = 0; round < 1000; ++round) {
    pace.appended(2, now);
    pace.waiting(now);
    pace.taken();
    now += 200us;
    pace.appended(1, now);  // somebody else
    pace.committed();
  }
  pace.taken();
  pace.committed();

  pace.appended(1, now);
  pace.waiting(now);
  CHECK(pace.due(now) == now + 200us);
  pace.appended(1, now + 150us);
  CHECK(pace.due(now + 150us) == now + 350us);

  SECTION("for 2 ms at most") {
    for (Duration later = 300us; later <= 1950us; later += 150us) pace.appended(1, now + later);
    CHECK(pace.due(now + 1950us) == now + 2ms);
  }
  SECTION("and no more once the others have gone") {
    for (int round = 0; round < 3; ++round) {
      pace.taken();
      pace.committed();
      now += 500us;
      pace.appended(1, now);
      pace.waiting(now);
    }
    pace.taken();
    pace.committed();
    now += 500us;
    pace.appended(1, now);
    pace.waiting(now);
    CHECK(pace.due(now) <= now);
  }
}

TEST_CASE("who waits in company is not held where records come faster than a timer is exact", "[datastore][pace]") {
  CommitPace pace;
  SteadyPoint now = start;
  // A hundred records in each commit, which takes half a millisecond.
  for (int round = 0; round < 1000; ++round) {
    pace.appended(50, now);
    pace.waiting(now);
    pace.taken();
    now += 500us;
    pace.appended(50, now);
    pace.committed();
  }
  pace.waiting(now);

  CHECK(pace.due(now) <= now);
}
