#include "support/catch.hpp"

#include <limits>
#include <vector>

#include <nni/assessing/median_stop.hpp>
#include <nni/assessing/none.hpp>
#include <nni/core/error.hpp>
#include <nni/core/random.hpp>

namespace nni::assessing {
namespace {

RunId run(std::uint64_t number) { return RunId{TrialId{number}, 0}; }

MedianStop started(Direction direction, MedianStopOptions options = {}) {
  MedianStop assessor(options);
  assessor.start(Objectives(direction));
  return assessor;
}

// A trial that reports one value after the other; the verdict on the last one.
Verdict report(MedianStop& assessor, RunId who, const std::vector<double>& values) {
  Verdict verdict = Verdict::good;
  for (std::size_t count = 1; count <= values.size(); ++count) verdict = assessor.assess(who, {values.data(), count});
  return verdict;
}

void finish(MedianStop& assessor, RunId who, const std::vector<double>& values, bool succeeded = true) {
  (void)report(assessor, who, values);
  assessor.trial_ended(who, succeeded);
}

TEST_CASE("median stop: as long as no trial has ended every trial goes on", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize);

  CHECK(report(assessor, run(1), {1.0, 1.0}) == Verdict::good);
  CHECK(report(assessor, run(2), {1000.0, 1000.0}) == Verdict::good);
}

TEST_CASE("median stop: runs that have not ended change no verdict", "[assessing][median_stop]") {
  MedianStop alone = started(minimize);
  MedianStop crowded = started(minimize);
  finish(alone, run(1), {4.0, 2.0});
  finish(crowded, run(1), {4.0, 2.0});

  (void)report(crowded, run(50), {-100.0, -100.0});
  (void)report(crowded, run(51), {100.0, 100.0});

  for (const double value : {3.0, 4.0, 5.0}) CHECK(report(crowded, run(2), {value}) == report(alone, run(2), {value}));
}

TEST_CASE("median stop: a trial whose best value is worse than the median mean of the others is stopped",
          "[assessing][median_stop]") {
  MedianStop assessor = started(minimize);
  finish(assessor, run(1), {4.0, 2.0});  // means 4, 3
  finish(assessor, run(2), {6.0, 4.0});  // means 6, 5
  finish(assessor, run(3), {9.0, 5.0});  // means 9, 7

  CHECK(report(assessor, run(4), {6.0}) == Verdict::good);
  CHECK(report(assessor, run(5), {6.1}) == Verdict::bad);
  CHECK(report(assessor, run(6), {6.0, 5.1}) == Verdict::bad);

  SECTION("its best value counts, not its last") { CHECK(report(assessor, run(7), {4.9, 100.0}) == Verdict::good); }
}

TEST_CASE("median stop: stops nothing before as many trials as asked for have ended", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize, {.min_finished = 3});
  finish(assessor, run(1), {1.0});
  finish(assessor, run(2), {1.0, 1.0});
  CHECK(report(assessor, run(3), {9.0}) == Verdict::good);

  finish(assessor, run(4), {1.0, 1.0});
  CHECK(report(assessor, run(5), {9.0}) == Verdict::bad);
  CHECK(report(assessor, run(6), {0.5, 9.0}) == Verdict::good);
  CHECK_THROWS_AS(MedianStop({.min_finished = 0}), ConfigError);
}

TEST_CASE("median stop: larger is better when maximising", "[assessing][median_stop]") {
  MedianStop assessor = started(maximize);
  finish(assessor, run(1), {0.4});
  finish(assessor, run(2), {0.6});
  finish(assessor, run(3), {0.9});

  CHECK(report(assessor, run(4), {0.6}) == Verdict::good);
  CHECK(report(assessor, run(5), {0.59}) == Verdict::bad);
  CHECK(report(assessor, run(6), {0.95}) == Verdict::good);
}

TEST_CASE("median stop: of an even number the worse of the two middle means counts, in both directions",
          "[assessing][median_stop]") {
  MedianStop lower = started(minimize);
  MedianStop upper = started(maximize);
  for (const double value : {1.0, 2.0, 3.0, 4.0}) {
    finish(lower, run(static_cast<std::uint64_t>(value)), {value});
    finish(upper, run(static_cast<std::uint64_t>(value)), {value});
  }

  CHECK(report(lower, run(5), {3.0}) == Verdict::good);
  CHECK(report(lower, run(6), {3.5}) == Verdict::bad);
  CHECK(report(upper, run(5), {2.0}) == Verdict::good);
  CHECK(report(upper, run(6), {1.5}) == Verdict::bad);
}

TEST_CASE("median stop: before start_step no trial is stopped", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize, {.start_step = 3});
  finish(assessor, run(1), {1.0, 1.0, 1.0});

  CHECK(report(assessor, run(2), {9.0}) == Verdict::good);
  CHECK(report(assessor, run(2), {9.0, 9.0}) == Verdict::good);
  CHECK(report(assessor, run(2), {9.0, 9.0, 9.0}) == Verdict::bad);
}

TEST_CASE("median stop: only trials that got as far and succeeded count", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize);
  finish(assessor, run(1), {1.0});
  finish(assessor, run(2), {1.0, 1.0, 1.0}, false);

  CHECK(report(assessor, run(3), {9.0}) == Verdict::bad);
  CHECK(report(assessor, run(4), {1.0, 9.0}) == Verdict::good);
  CHECK(assessor.assess(run(5), std::vector<double>{9.0, 9.0}) == Verdict::good);
}

TEST_CASE("median stop: a trial is not compared with itself, and its retry starts afresh", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize);
  finish(assessor, run(1), {1.0});
  const RunId first{TrialId{2}, 0};
  const RunId second{TrialId{2}, 1};

  finish(assessor, first, {0.5}, false);
  CHECK(report(assessor, second, {1.5}) == Verdict::bad);
}

TEST_CASE("median stop: what is not a number is worse than everything", "[assessing][median_stop]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  MedianStop assessor = started(maximize);
  finish(assessor, run(1), {0.5});

  CHECK(report(assessor, run(2), {nan}) == Verdict::bad);
  CHECK(report(assessor, run(3), {0.7}) == Verdict::good);
  finish(assessor, run(4), {nan});
  finish(assessor, run(5), {0.9});
  CHECK(report(assessor, run(6), {0.5}) == Verdict::good);
  CHECK(report(assessor, run(7), {0.4}) == Verdict::bad);
}

TEST_CASE("median stop: replaying the histories in one piece gives the same verdicts", "[assessing][median_stop]") {
  MedianStop lived = started(minimize);
  MedianStop resumed = started(minimize);
  CounterRandom random(seed(1), ParameterId{0});
  for (std::uint64_t number = 1; number <= 40; ++number) {
    std::vector<double> history(1 + static_cast<std::size_t>(random.below(6)));
    for (double& value : history) value = random.uniform();
    finish(lived, run(number), history, number % 5 != 0);
    (void)resumed.assess(run(number), history);
    resumed.trial_ended(run(number), number % 5 != 0);
  }
  int bad = 0;
  for (std::uint64_t number = 41; number <= 80; ++number) {
    const std::vector<double> history{random.uniform(), random.uniform(), random.uniform()};
    const Verdict verdict = lived.assess(run(number), history);
    CHECK(resumed.assess(run(number), history) == verdict);
    bad += verdict == Verdict::bad ? 1 : 0;
  }
  CHECK(bad > 0);
  CHECK(bad < 40);
}

TEST_CASE("median stop: verdicts agree with sorting all means, for many trials", "[assessing][median_stop]") {
  MedianStop assessor = started(minimize);
  CounterRandom random(seed(2), ParameterId{0});
  std::vector<double> ended;
  for (std::uint64_t number = 1; number <= 300; ++number) {
    const double value = std::floor(random.uniform() * 40.0);
    std::sort(ended.begin(), ended.end());
    const bool worse = !ended.empty() && value > ended[ended.size() / 2];
    REQUIRE((report(assessor, run(number), {value}) == Verdict::bad) == worse);
    assessor.trial_ended(run(number), true);
    ended.push_back(value);
  }
}

TEST_CASE("median stop: a negative start_step is refused with its name and value", "[assessing][median_stop]") {
  CHECK_THROWS_WITH(MedianStop({.start_step = -1}), "median_stop.start_step: is -1, but must be at least 0");
}

TEST_CASE("no assessor: nothing is ever stopped", "[assessing]") {
  None assessor;
  assessor.start(Objectives(minimize));
  CHECK(assessor.assess(run(1), std::vector<double>{1e300}) == Verdict::good);
  assessor.trial_ended(run(1), true);
}

}  // namespace
}  // namespace nni::assessing
