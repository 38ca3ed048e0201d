// A rule of successive halving without waiting: it compares a run with all others that have come as far, also with those
// that have not ended, which the promises of an assessor allow.

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/json.hpp>
#include <nni/core/random.hpp>
#include <nni/space/search_space.hpp>
#include <nni/testing/assessor_conformance.hpp>
#include <nni/tuning/as_advisor.hpp>
#include <nni/tuning/random.hpp>

using namespace nni;

namespace {

/// Lets the better half of what has reached a rung pass it; rungs are the steps 1, 2, 4, 8, ...
class Halving {
 public:
  using role = nni::role::assessor;

  void start(const Objectives& goals) { goals_ = goals; }

  Verdict assess(const RunId& run, std::span<const double> history) {
    Verdict verdict = Verdict::good;
    for (std::size_t step = 1; step <= history.size(); step *= 2) {
      std::map<TrialId, double>& rung = rungs_[step];
      rung[run.trial] = goals_.loss(history[step - 1]);
      if (step != history.size()) continue;
      const double own = rung[run.trial];
      const auto better =
          std::count_if(rung.begin(), rung.end(), [own](const auto& other) { return other.second < own; });
      if (2 * static_cast<std::size_t>(better) >= rung.size() && rung.size() > 1) verdict = Verdict::bad;
    }
    return verdict;
  }

  // What has reached a rung stays there, however its run ends.
  void trial_ended(const RunId&, bool) {}

 private:
  Objectives goals_;
  std::map<std::size_t, std::map<TrialId, double>> rungs_;
};
static_assert(Assessor<Halving>);

using Advisor = tuning::AsAdvisor<tuning::Random, Halving>;

Advisor made() { return Advisor(tuning::Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}, Halving()); }

double value_of(std::size_t trial, std::size_t step) {
  CounterRandom random(seed(5), ParameterId{trial});
  return random.uniform() + 1.0 / static_cast<double>(step);
}

/// What each trial has reported, and which ones were ordered to stop.
struct Course {
  std::map<std::size_t, std::vector<double>> histories;
  std::vector<TrialId> stopped;
};

/// Trials report side by side, step by step; one that is ordered to stop reports no more.
awaitable<void> report(Advisor& advisor, std::vector<std::size_t> trials, std::size_t steps, Course& course) {
  for (std::size_t step = 1; step <= steps; ++step) {
    for (const std::size_t trial : trials) {
      const TrialId id{trial};
      if (std::find(course.stopped.begin(), course.stopped.end(), id) != course.stopped.end()) continue;
      const double value = value_of(trial, step);
      course.histories[trial].push_back(value);
      const Metric next(RunId{id, 0}, MetricKind::intermediate, static_cast<std::uint32_t>(step - 1),
                        to_json_text(value), TimePoint{});
      auto reporting = advisor.report(next);
      co_await std::move(reporting);
    }
    // A trial that is asked for comes after the orders to stop.
    auto asking = advisor.request(1);
    co_await std::move(asking);
    while (true) {
      auto next = advisor.next_order();
      const Order order = co_await std::move(next);
      const auto* kill = std::get_if<KillTrial>(&order);
      if (!kill) break;
      course.stopped.push_back(kill->trial);
    }
  }
}

TrialOutcome outcome(std::size_t trial) {
  TrialOutcome result;
  result.trial = TrialId{trial};
  result.parameter = ParameterId{trial - 1};
  result.status = TrialJobStatus::succeeded;
  result.value = 1.0;
  return result;
}

/// Four trials run side by side; two of them have ended when the manager does. Then six others run.
awaitable<void> compare(Context& context, Course& uninterrupted, Course& resumed) {
  const Objectives goals(minimize);
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  Advisor first = made();
  Advisor second = made();
  auto starting = first.start(context, space, goals);
  co_await std::move(starting);
  auto starting_again = second.start(context, space, goals);
  co_await std::move(starting_again);

  Course before;
  const std::vector<std::size_t> early{1, 2, 3, 4};
  auto running = report(first, early, 3, before);
  co_await std::move(running);
  for (const std::size_t trial : {1, 3}) {
    const TrialOutcome ended = outcome(trial);
    auto end = first.trial_ended(ended);
    co_await std::move(end);
    second.replay(ended, before.histories[trial]);
  }
  for (const std::size_t trial : {2, 4})
    second.replay_unfinished(ParameterId{trial - 1}, Parameters(), RunId{TrialId{trial}, 0}, before.histories[trial]);

  const std::vector<std::size_t> late{5, 6, 7, 8, 9, 10};
  auto going_on = report(first, late, 8, uninterrupted);
  co_await std::move(going_on);
  auto resuming = report(second, late, 8, resumed);
  co_await std::move(resuming);
}

}  // namespace

TEST_CASE("a rule that compares runs that have not ended keeps the promises of an assessor",
          "[assessing][conformance]") {
  const testing::ConformanceReport report = testing::check_assessor<Halving>([] { return Halving(); });

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("successive halving stops the same trials after a resume as without one", "[assessing][resume]") {
  Runtime runtime;
  Course uninterrupted;
  Course resumed;

  runtime.run(compare(runtime.context(), uninterrupted, resumed));

  CHECK_FALSE(uninterrupted.stopped.empty());
  CHECK(uninterrupted.stopped.size() < 6);
  CHECK(resumed.stopped == uninterrupted.stopped);
}
