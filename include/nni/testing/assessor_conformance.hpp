#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <nni/concepts/assessor.hpp>
#include <nni/core/random.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// Expectations of the suite for assessors.
struct AssessorSetup {
  /// The assessor only compares values with each other, so that negated curves get the same verdicts in the opposite
  /// direction. False for an assessor that compares with a fixed number.
  bool symmetric = true;
  std::size_t trials = 12;  ///< number of simulated trials
  std::size_t steps = 20;   ///< number of intermediate results of each trial
};

namespace detail {

template <Assessor A>
class AssessorSuite {
 public:
  AssessorSuite(const std::function<A()>& make, const AssessorSetup& setup, ConformanceReport& report)
      : make_(make), setup_(setup), report_(report) {}

  void run() {
    report_.run_case(1, "both directions", [this] { follows_direction(); });
    report_.run_case(2, "equal histories", [this] { judges_equally(); });
    report_.run_case(2, "odd histories", [this] { takes_odd_values(); });
    report_.run_case(2, "a trial without results", [this] { takes_silent_trials(); });
    report_.run_case(4, "resume", [this] { resumes(); });
    report_.run_case(4, "resume beside runs that have not ended", [this] { resumes_with_live_runs(); });
  }

 private:
  using Curve = std::vector<double>;

  static RunId run_of(std::size_t trial) { return RunId{TrialId{trial + 1}, 0}; }

  // A decreasing curve; its level differs between trials, so that some are clearly worse than others.
  [[nodiscard]] Curve curve(std::size_t trial, double sign = 1.0) const {
    CounterRandom random(seed(3), ParameterId{trial});
    const double level = 4.0 * random.uniform();
    Curve values;
    for (std::size_t step = 0; step < setup_.steps; ++step)
      values.push_back(sign * (level + std::exp(-0.3 * static_cast<double>(step)) + 0.1 * random.uniform()));
    return values;
  }

  // Assesses all prefixes of a history, each in newly allocated memory; returns one letter per verdict.
  static std::string watch(A& assessor, RunId run, const Curve& values) {
    std::string verdicts;
    for (std::size_t count = 1; count <= values.size(); ++count) {
      const Curve so_far(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count));
      verdicts += assessor.assess(run, so_far) == Verdict::bad ? 'b' : '.';
    }
    return verdicts;
  }

  std::string whole_experiment(A& assessor, const Objectives& goals, double sign = 1.0) const {
    assessor.start(goals);
    std::string verdicts;
    for (std::size_t trial = 0; trial < setup_.trials; ++trial) {
      verdicts += watch(assessor, run_of(trial), curve(trial, sign)) + " ";
      assessor.trial_ended(run_of(trial), trial % 5 != 4);
    }
    return verdicts;
  }

  void follows_direction() {
    if (!setup_.symmetric) return;
    A down = make_();
    A up = make_();
    const std::string small = whole_experiment(down, Objectives(minimize));
    const std::string large = whole_experiment(up, Objectives(maximize), -1.0);
    report_.check(
        1, "the same curves upside down are judged alike in the other direction", small == large, small + "/ " + large);
  }

  void judges_equally() {
    A one = make_();
    A other = make_();
    const std::string first = whole_experiment(one, Objectives(minimize));
    auto elsewhere = std::async(std::launch::async, [&] { return whole_experiment(other, Objectives(minimize)); });
    const std::string second = elsewhere.get();
    report_.check(2, "the verdict depends on the histories, not on the moment or the thread", first == second,
                  first + "/ " + second);
  }

  void takes_odd_values() {
    A one = make_();
    A other = make_();
    const std::string first = odd_experiment(one);
    const std::string second = odd_experiment(other);
    report_.check(2, "with values that are not finite the verdict depends on the histories as well", first == second,
                  first + "and " + second);
  }

  std::string odd_experiment(A& assessor) const {
    const double infinity = std::numeric_limits<double>::infinity();
    const Curve odd = {1.0, -infinity, infinity, std::nan(""), 1e308, -1e308};
    assessor.start(Objectives(minimize));
    std::string verdicts;
    for (std::size_t trial = 0; trial < 3; ++trial) {
      verdicts += watch(assessor, run_of(2 * trial), odd) + " ";
      assessor.trial_ended(run_of(2 * trial), true);
      verdicts += watch(assessor, run_of(2 * trial + 1), curve(trial)) + " ";
      assessor.trial_ended(run_of(2 * trial + 1), true);
    }
    return verdicts;
  }

  void takes_silent_trials() {
    A alone = make_();
    A beside = make_();
    alone.start(Objectives(minimize));
    beside.start(Objectives(minimize));
    std::string expected;
    std::string seen;
    for (std::size_t trial = 0; trial < 6; ++trial) {
      beside.trial_ended(run_of(100 + trial), trial % 2 == 0);
      expected += watch(alone, run_of(trial), curve(trial)) + " ";
      seen += watch(beside, run_of(trial), curve(trial)) + " ";
      alone.trial_ended(run_of(trial), true);
      beside.trial_ended(run_of(trial), true);
    }
    report_.check(2, "trials that end without a result, and so without a history, change no verdict", expected == seen,
                  expected + "and " + seen);
  }

  void resumes() {
    A first = make_();
    A resumed = make_();
    static_cast<void>(whole_experiment(first, Objectives(minimize)));
    resumed.start(Objectives(minimize));
    for (std::size_t trial = 0; trial < setup_.trials; ++trial) {
      const Curve stored = curve(trial);
      static_cast<void>(resumed.assess(run_of(trial), stored));
      resumed.trial_ended(run_of(trial), trial % 5 != 4);
    }
    std::string expected;
    std::string seen;
    for (std::size_t trial = 100; trial < 106; ++trial) {
      expected += watch(first, run_of(trial), curve(trial)) + " ";
      seen += watch(resumed, run_of(trial), curve(trial)) + " ";
    }
    report_.check(4, "after whole histories it judges as after the same ones step by step", expected == seen,
                  expected + "and " + seen);
  }

  // Of trials that run three at a time, the last ones are alive when the manager ends.
  void resumes_with_live_runs() {
    constexpr std::size_t beside = 3;
    const std::size_t alive = (setup_.trials - 1) / beside * beside;
    A first = make_();
    A resumed = make_();
    first.start(Objectives(minimize));
    resumed.start(Objectives(minimize));
    for (std::size_t begin = 0; begin < setup_.trials; begin += beside) {
      const std::size_t end = std::min(begin + beside, setup_.trials);
      for (std::size_t step = 1; step <= setup_.steps; ++step)
        for (std::size_t trial = begin; trial < end; ++trial) {
          const Curve whole = curve(trial);
          const Curve so_far(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(step));
          static_cast<void>(first.assess(run_of(trial), so_far));
        }
      for (std::size_t trial = begin; trial < std::min(end, alive); ++trial)
        first.trial_ended(run_of(trial), trial % 5 != 4);
    }
    for (std::size_t trial = 0; trial < setup_.trials; ++trial) {
      const Curve stored = curve(trial);
      static_cast<void>(resumed.assess(run_of(trial), stored));
      if (trial < alive) resumed.trial_ended(run_of(trial), trial % 5 != 4);
    }
    std::string expected;
    std::string seen;
    for (std::size_t trial = 100; trial < 106; ++trial) {
      expected += watch(first, run_of(trial), curve(trial)) + " ";
      seen += watch(resumed, run_of(trial), curve(trial)) + " ";
    }
    report_.check(
        4, "after whole histories, also of runs that have not ended, it judges as after the same ones step by step",
        expected == seen, expected + "and " + seen);
  }

  const std::function<A()>& make_;
  const AssessorSetup& setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Assessor` for any assessor.
///
/// The checks carry the numbers of the promises.
///
/// @param make   returns a new assessor that was not started, always with the same settings
/// @returns      the results of all checks
template <Assessor A>
[[nodiscard]] ConformanceReport check_assessor(const std::function<A()>& make, const AssessorSetup& setup = {}) {
  ConformanceReport report;
  detail::AssessorSuite<A>(make, setup, report).run();
  return report;
}

}  // namespace nni::testing
