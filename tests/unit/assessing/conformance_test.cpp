#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include <nni/assessing/median_stop.hpp>
#include <nni/assessing/none.hpp>
#include <nni/testing/assessor_conformance.hpp>

using namespace nni;

namespace {

enum class Fault {
  none,
  ignores_direction,
  counts_objects,
  guesses_at_infinity,
  counts_silence,
  counts_the_living,
  learns_step_by_step,
  depends_on_arrival
};

// Stops what is worse than every trial that has ended; each fault breaks one promise, except `counts_the_living`.
class Worst {
 public:
  using role = role::assessor;

  explicit Worst(Fault fault = Fault::none) : fault_(fault) {
    static int made = 0;
    number_ = ++made;
  }

  void start(const Objectives& goals) {
    if (fault_ != Fault::ignores_direction) goals_ = goals;
  }
  Verdict assess(const RunId& run, std::span<const double> history) {
    if (history.empty()) return Verdict::good;
    const double loss = goals_.loss(history.back());
    auto& own = running_[run];
    if (fault_ == Fault::learns_step_by_step)
      own.push_back(loss);
    else
      for (const double value : history) own.push_back(goals_.loss(value));
    if (fault_ == Fault::counts_objects && number_ % 2 == 0) return Verdict::bad;
    if (std::exchange(latest_, run) != run) ++turns_;
    if (fault_ == Fault::depends_on_arrival) return turns_ > 60 ? Verdict::bad : Verdict::good;
    const bool odd = std::any_of(ended_.begin(), ended_.end(), [](double value) { return !std::isfinite(value); });
    if (fault_ == Fault::guesses_at_infinity && odd) return number_ % 2 == 0 ? Verdict::bad : Verdict::good;
    std::vector<double> others = ended_;
    if (fault_ == Fault::counts_the_living)
      for (const auto& [other, values] : running_)
        if (other != run) others.insert(others.end(), values.begin(), values.end());
    const bool worst = std::all_of(others.begin(), others.end(), [loss](double other) { return other < loss; });
    return worst && !others.empty() ? Verdict::bad : Verdict::good;
  }
  void trial_ended(const RunId& run, bool succeeded) {
    if (fault_ == Fault::counts_silence && !running_.contains(run)) ended_.push_back(0.0);
    if (succeeded) ended_.insert(ended_.end(), running_[run].begin(), running_[run].end());
    running_.erase(run);
  }

 private:
  Fault fault_;
  int number_ = 0;
  Objectives goals_;
  std::map<RunId, std::vector<double>> running_;
  std::vector<double> ended_;
  RunId latest_;
  int turns_ = 0;  // times that another run reported than before
};

std::string seen_of(Fault fault) {
  return testing::check_assessor<Worst>([fault] { return Worst(fault); }).to_string();
}

}  // namespace

TEST_CASE("the median rule keeps the promises of an assessor", "[assessing][conformance]") {
  const testing::ConformanceReport report =
      testing::check_assessor<assessing::MedianStop>([] { return assessing::MedianStop(); });

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("no assessor keeps the promises of an assessor", "[assessing][conformance]") {
  const testing::ConformanceReport report = testing::check_assessor<assessing::None>([] { return assessing::None(); });

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("the suite names the promise that an assessor breaks", "[assessing][conformance]") {
  CHECK_THAT(seen_of(Fault::none), Catch::Contains("checks passed"));
  CHECK_THAT(seen_of(Fault::ignores_direction), Catch::Contains("promise 1 broken"));
  CHECK_THAT(seen_of(Fault::counts_objects), Catch::Contains("promise 2 broken"));
  CHECK_THAT(seen_of(Fault::guesses_at_infinity),
             Catch::Contains("promise 2 broken: with values that are not finite the verdict depends on the histories"));
  CHECK_THAT(seen_of(Fault::counts_silence), Catch::Contains("promise 2 broken: trials that end without a result"));
  CHECK_THAT(seen_of(Fault::learns_step_by_step), Catch::Contains("promise 4 broken"));
  CHECK_THAT(seen_of(Fault::depends_on_arrival),
             Catch::Contains("promise 4 broken: after whole histories, also of runs that have not ended"));
}

TEST_CASE("an assessor may compare a run with others that have not ended", "[assessing][conformance]") {
  CHECK_THAT(seen_of(Fault::counts_the_living), Catch::Contains("checks passed"));
}
