// nni for C++, 0.1.0: the conformance suites and test tools (include/nni/testing) in one file. Made by
// scripts/amalgamate.py; do not edit it. The file that defines NNI_IMPLEMENTATION includes it too.
//
// MIT License
//
// Copyright (c) 2026 The nni for C++ authors
//
// Permission is hereby granted, free of charge, to any person obtaining a copy
// of this software and associated documentation files (the "Software"), to deal
// in the Software without restriction, including without limitation the rights
// to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
// copies of the Software, and to permit persons to whom the Software is
// furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all
// copies or substantial portions of the Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
// IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
// FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
// LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
// OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
// SOFTWARE.

#pragma once

#include "nni.hpp"

// ---- nni/testing/checks.hpp

namespace nni::testing {

/// A check of a conformance suite.
class Check {
 public:
  Check() = default;
  /// @param number       of the promise
  /// @param expectation  a sentence
  /// @param kept_it      the expectation held
  /// @param seen         what was seen
  Check(int number, std::string expectation, bool kept_it, std::string seen)
      : promise(number), name(std::move(expectation)), kept(kept_it), detail(std::move(seen)) {}

  int promise = 0;     ///< number in the comment of the concept
  std::string name;    ///< the expectation, as a sentence
  bool kept = false;   ///< the expectation held
  std::string detail;  ///< the observed value
};

/// The results of a conformance suite, independent of any test framework.
///
/// With Catch2: `INFO(report.to_string()); CHECK(report.passed());`
class ConformanceReport {
 public:
  ConformanceReport() = default;

  /// Records one check.
  /// @param promise  its number in the comment of the concept; 0: none of them
  /// @param name     the expectation
  /// @param kept     the expectation held
  /// @param detail   the observed value
  void check(int promise, std::string name, bool kept, std::string detail = {}) {
    checks_.emplace_back(promise, std::move(name), kept, std::move(detail));
  }

  /// Runs one case; records an exception of the case as a broken promise.
  /// @param promise  number of the promise under test
  /// @param name     of the case, in a few words
  /// @param body     called once without arguments; records its own checks
  template <class Body>
  void run_case(int promise, const std::string& name, Body body) {
    try {
      body();
    } catch (const std::exception& error) {
      check(promise, "the case \"" + name + "\" runs to its end", false, error.what());
    }
  }

  /// Returns all checks, in order.
  [[nodiscard]] const std::vector<Check>& checks() const noexcept { return checks_; }

  /// Returns true if there were checks and every promise was kept.
  [[nodiscard]] bool passed() const noexcept {
    for (const Check& check : checks_)
      if (!check.kept) return false;
    return !checks_.empty();
  }

  /// Returns the broken promises, one per line, or a line with the number of checks.
  [[nodiscard]] std::string to_string() const {
    std::string text;
    for (const Check& check : checks_)
      if (!check.kept)
        text += "promise " + std::to_string(check.promise) + " broken: " + check.name +
                (check.detail.empty() ? "" : "; seen: " + check.detail) + "\n";
    return text.empty() ? std::to_string(checks_.size()) + " checks passed\n" : text;
  }

 private:
  std::vector<Check> checks_;
};

}  // namespace nni::testing

// ---- nni/testing/advisor_conformance.hpp

namespace nni::testing {

/// Inputs of the suite for advisors.
struct AdvisorSetup {
  SearchSpace space{};                        ///< search space with at least `trials` configurations; empty: one number
  std::size_t trials = 20;                    ///< number of trials in the longest case
  Duration limit = std::chrono::seconds(30);  ///< timeout of one case, which detects missing orders
};

namespace detail {

template <Advisor A>
class AdvisorSuite {
 public:
  AdvisorSuite(const std::function<A()>& make, AdvisorSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {
    if (setup_.space.empty()) setup_.space = SearchSpace{uniform("x", 0.0, 1.0)};
  }

  void run() {
    one(2, "orders", &AdvisorSuite::orders);
    one(3, "trials", &AdvisorSuite::trials);
    one(4, "canceled reader", &AdvisorSuite::reader_is_cancelled);
    one(4, "kills", &AdvisorSuite::kills);
    one(5, "stop", &AdvisorSuite::stops);
  }

 private:
  void one(int promise, const char* name, awaitable<void> (AdvisorSuite::*body)(A&, Context&)) {
    report_.run_case(promise, name, [this, body] {
      ended_ = stopped_ = false;
      A advisor = make_();
      Runtime runtime;
      runtime.run(async::with_timeout(guarded(advisor, runtime.context(), body), setup_.limit));
    });
  }

  awaitable<void> guarded(A& advisor, Context& context, awaitable<void> (AdvisorSuite::*body)(A&, Context&)) {
    const Objectives goals(minimize);
    auto starting = advisor.start(context, setup_.space, goals);
    co_await std::move(starting);
    std::exception_ptr failure;
    try {
      auto work = (this->*body)(advisor, context);
      co_await std::move(work);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!stopped_) {
      auto stopping = advisor.stop();
      co_await std::move(stopping);
    }
    if (failure) std::rethrow_exception(failure);
  }

  awaitable<void> request(A& advisor, std::size_t count) {
    auto asking = advisor.request(count);
    co_await std::move(asking);
  }

  // The next trials, up to a number of them or the end.
  awaitable<std::vector<NewTrial>> take(A& advisor, std::size_t count) {
    std::vector<NewTrial> taken;
    while (taken.size() < count) {
      auto next = advisor.next_order();
      const Order order = co_await std::move(next);
      if (const auto* trial = std::get_if<NewTrial>(&order)) taken.push_back(*trial);
      if (std::holds_alternative<NoMoreTrials>(order)) {
        ended_ = true;
        break;
      }
    }
    co_return taken;
  }

  awaitable<bool> is_quiet(A& advisor) {
    bool quiet = false;
    try {
      auto limited = async::with_timeout(advisor.next_order(), std::chrono::milliseconds(20));
      const Order order = co_await std::move(limited);
      static_cast<void>(order);
    } catch (const Error& error) {
      quiet = error.code() == make_error_code(Errc::timed_out);
    }
    co_return quiet;
  }

  awaitable<void> report(A& advisor, std::uint64_t trial, MetricKind kind, std::uint32_t sequence, std::string value) {
    const Metric metric(RunId{TrialId{trial}, 0}, kind, sequence, std::move(value), TimePoint{});
    auto telling = advisor.report(metric);
    co_await std::move(telling);
  }

  awaitable<void> end(A& advisor, std::uint64_t trial, NewTrial order, TrialJobStatus status,
                      std::optional<double> value) {
    TrialOutcome outcome;
    outcome.trial = TrialId{trial};
    outcome.parameter = order.parameter;
    outcome.parameters = std::move(order.parameters);
    outcome.status = status;
    outcome.value = value;
    auto telling = advisor.trial_ended(outcome);
    co_await std::move(telling);
  }

  awaitable<void> orders(A& advisor, Context&) {
    auto nothing = request(advisor, 0);
    co_await std::move(nothing);
    auto listening = is_quiet(advisor);
    const bool quiet = co_await std::move(listening);
    report_.check(2, "a request for zero trials orders none", quiet);
    auto asking = request(advisor, 3);
    co_await std::move(asking);
    auto more = request(advisor, 2);
    co_await std::move(more);
    auto taking = take(advisor, 5);
    const std::vector<NewTrial> all = co_await std::move(taking);
    report_.check(2, "all requested trials are ordered, or there are no more", all.size() == 5 || ended_,
                  std::to_string(all.size()));
    std::set<ParameterId> ids;
    bool fits = true;
    for (const NewTrial& trial : all) {
      ids.insert(trial.parameter);
      fits = fits && setup_.space.to_point(trial.parameters).has_value();
    }
    report_.check(2, "every order has a number of its own", ids.size() == all.size());
    report_.check(2, "and parameters of the search space", fits);
    if (ended_) co_return;
    auto listening_on = is_quiet(advisor);
    const bool no_more = co_await std::move(listening_on);
    report_.check(2, "no more is ordered than was requested", no_more);
  }

  awaitable<void> trials(A& advisor, Context&) {
    std::size_t ordered = 0;
    for (std::uint64_t trial = 1; trial <= setup_.trials && !ended_; ++trial) {
      auto asking = request(advisor, 1);
      co_await std::move(asking);
      auto taking = take(advisor, 1);
      const std::vector<NewTrial> order = co_await std::move(taking);
      if (order.empty()) break;
      ++ordered;
      const bool reports = trial % 3 != 0;
      for (std::uint32_t step = 0; reports && step < 5; ++step) {
        auto telling = report(advisor, trial, MetricKind::intermediate, step, std::to_string(trial + step));
        co_await std::move(telling);
      }
      auto odd = report(advisor, trial, MetricKind::intermediate, 5, "\"no number\"");
      if (reports) co_await std::move(odd);
      auto last = report(advisor, trial, MetricKind::final, 0, std::to_string(trial));
      if (reports) co_await std::move(last);
      const TrialJobStatus status = reports ? TrialJobStatus::succeeded : TrialJobStatus::failed;
      std::optional<double> value;
      if (reports) value = static_cast<double>(trial);
      auto ending = end(advisor, trial, order.front(), status, value);
      co_await std::move(ending);
    }
    report_.check(3, "it continues after trials with and without results", ordered == setup_.trials,
                  std::to_string(ordered) + " orders of " + std::to_string(setup_.trials));
  }

  awaitable<void> reader_is_cancelled(A& advisor, Context&) {
    std::size_t seen = 0;
    for (int round = 0; round < 3; ++round) {
      auto listening = is_quiet(advisor);
      if (!co_await std::move(listening)) ++seen;
      auto asking = request(advisor, 1);
      co_await std::move(asking);
    }
    auto taking = take(advisor, 3 - seen);
    const std::vector<NewTrial> rest = co_await std::move(taking);
    report_.check(
        4, "a canceled next_order loses no order", seen + rest.size() == 3 || ended_, std::to_string(rest.size()));
  }

  awaitable<void> kills(A& advisor, Context&) {
    auto asking = request(advisor, 1);
    co_await std::move(asking);
    auto taking = take(advisor, 1);
    const std::vector<NewTrial> order = co_await std::move(taking);
    if (order.empty()) co_return;
    auto ending = end(advisor, 1, order.front(), TrialJobStatus::user_canceled, std::nullopt);
    co_await std::move(ending);
    // Any order is valid now, except one for an unknown trial.
    auto more = request(advisor, 1);
    co_await std::move(more);
    auto next = advisor.next_order();
    const Order answer = co_await std::move(next);
    const auto* kill = std::get_if<KillTrial>(&answer);
    report_.check(4, "an order to kill names a known trial", kill == nullptr || kill->trial == TrialId{1});
  }

  awaitable<void> stops(A& advisor, Context& context) {
    auto asking = request(advisor, 2);
    co_await std::move(asking);
    const SteadyPoint before = context.clock().steady_now();
    auto stopping = advisor.stop();
    co_await std::move(stopping);
    report_.check(5, "stop returns within the context's limit, also with orders that were not taken",
                  context.clock().steady_now() - before < context.shutdown_limit());
    stopped_ = true;
  }

  const std::function<A()>& make_;
  AdvisorSetup setup_;
  ConformanceReport& report_;
  bool ended_ = false;    // the advisor reported that it has no more trials
  bool stopped_ = false;  // the case has stopped the advisor
};

}  // namespace detail

/// Checks the observable promises of `nni::Advisor` for any advisor.
///
/// Each case starts a fresh advisor and stops it. The checks carry the numbers of the promises.
///
/// @param make   returns an advisor that was not started
/// @param setup  search space and number of trials
/// @returns      the results of all checks
template <Advisor A>
[[nodiscard]] ConformanceReport check_advisor(const std::function<A()>& make, AdvisorSetup setup = {}) {
  ConformanceReport report;
  detail::AdvisorSuite<A>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/assessor_conformance.hpp

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

// ---- nni/testing/configurable_conformance.hpp

namespace nni::testing {

/// A key of a configurable service, with a valid and an invalid value.
struct MetadataExample {
  std::string key;          ///< a key that the service lists
  boost::json::value good;  ///< a valid value
  boost::json::value bad;   ///< an invalid value
};

namespace detail {

/// Returns the text of the ConfigError that a call throws; empty if it throws none.
template <class F>
std::string refusal_of(const F& function) {
  try {
    function();
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const std::exception&) {
  }
  return {};
}

}  // namespace detail

/// Checks promises 10 to 13 of `nni::ConfigurableService`.
///
/// @param make      returns a service that was not started
/// @param examples  one for each of its keys
template <ConfigurableService S>
[[nodiscard]] ConformanceReport check_configurable_service(
    const std::function<S()>& make, const std::vector<MetadataExample>& examples) {
  ConformanceReport report;
  S service = make();
  const auto keys = service.cluster_metadata_keys();
  for (const MetadataExample& example : examples) {
    const std::string& key = example.key;
    report.check(10, "the key " + key + " is listed", std::find(keys.begin(), keys.end(), key) != keys.end());
    boost::json::value before;
    report.check(13, "the value of " + key + " is reported before any change",
                 detail::refusal_of([&] { before = service.get_cluster_metadata(key); }).empty());
    report.check(11, "a value of " + key + " is accepted",
                 detail::refusal_of([&] { service.set_cluster_metadata(key, example.good); }).empty());
    const boost::json::value after = service.get_cluster_metadata(key);
    report.check(11, "a value of " + key + " changes the reported value", after != before);
    S other = make();
    const std::string again = detail::refusal_of([&] { other.set_cluster_metadata(key, after); });
    report.check(11, "the reported value of " + key + " is accepted, and means the same",
                 again.empty() && other.get_cluster_metadata(key) == after, again);
    const std::string refused = detail::refusal_of([&] { service.set_cluster_metadata(key, example.bad); });
    report.check(12, "a wrong value of " + key + " is a ConfigError that names the key",
                 refused.find(key) != std::string::npos, refused);
    report.check(12, "a wrong value of " + key + " changes nothing", service.get_cluster_metadata(key) == after);
  }
  for (const std::string_view key : keys)
    report.check(10, "there is an example for " + std::string(key),
                 std::any_of(examples.begin(), examples.end(), [key](const auto& one) { return one.key == key; }));
  const std::string unknown = detail::refusal_of([&] { service.set_cluster_metadata("no_such_key", 1); });
  report.check(
      12, "an unknown key is a ConfigError that names it", unknown.find("no_such_key") != std::string::npos, unknown);
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/detail/supervised_case.hpp

namespace nni::testing::detail {

/// A case of a suite, with its own runtime and thread.
///
/// A policy that never returns is canceled at the limit. One that does not react, or blocks the executor, is
/// leaked together with its thread, because it cannot be ended safely. In both cases the report names the awaited call.
class SupervisedCase {
 public:
  /// @param name   readable name of the case
  /// @param limit  timeout of each of its two parts, and of a clean-up in it
  SupervisedCase(std::string name, Duration limit)
      : name_(std::move(name)),
        limit_(limit),
        patience_(std::min<Duration>(limit, std::chrono::seconds(1))),
        deadline_(steady_now() + limit),
        runtime_(options(limit)) {}
  SupervisedCase(const SupervisedCase&) = delete;
  SupervisedCase& operator=(const SupervisedCase&) = delete;
  virtual ~SupervisedCase() = default;

  /// Runs a case, and adds its results to a report.
  /// @param one     the case; may be shared beyond the return of this call
  /// @param report  receives the results
  /// @returns       false if it had to be abandoned
  static bool run(const std::shared_ptr<SupervisedCase>& one, ConformanceReport& report) {
    std::thread thread([one] { one->work(); });
    const bool ended = one->wait();
    if (ended)
      thread.join();
    else
      thread.detach();
    if (!ended || !one->idle_) leave_behind(one);
    const std::lock_guard lock(one->mutex_);
    for (const Check& check : one->found_.checks()) report.check(check.promise, check.name, check.kept, check.detail);
    return ended;
  }

 protected:
  /// The body of the case.
  virtual awaitable<void> body() = 0;
  /// The clean-up after the body, whatever its outcome.
  virtual awaitable<void> finish() = 0;
  /// Called at the end of a case in which everything returned.
  /// @param idle  no work is left on the executor
  virtual void afterwards(bool idle) = 0;

  /// Returns the context of the policy; its shutdown limit is the limit of the case.
  [[nodiscard]] Context& context() noexcept { return runtime_.context(); }

  /// Sets the promise that any failure until the next call of this function breaks.
  /// @param promise      its number
  /// @param expectation  as a sentence
  void expect(int promise, std::string expectation) {
    const std::lock_guard lock(mutex_);
    if (given_up_) throw Error(Errc::closed, "the suite has given up this case");
    promise_ = promise;
    awaited_ = std::move(expectation);
  }

  /// Records one check.
  void check(int promise, std::string name, bool kept, std::string seen = {}) {
    const std::lock_guard lock(mutex_);
    found_.check(promise, std::move(name), kept, std::move(seen));
  }

 private:
  static SteadyPoint steady_now() { return std::chrono::steady_clock::now(); }

  static RuntimeOptions options(Duration limit) {
    RuntimeOptions options;
    options.shutdown_limit = limit;
    return options;
  }

  // Never destroyed: its thread, its pool, or coroutines on its executor may still use it.
  static void leave_behind(std::shared_ptr<SupervisedCase> one) {
    static std::mutex mutex;
    static auto* const left = new std::vector<std::shared_ptr<SupervisedCase>>();
    const std::lock_guard lock(mutex);
    left->push_back(std::move(one));
  }

  // @returns false if the case was abandoned
  bool begin_part() {
    const std::lock_guard lock(mutex_);
    deadline_ = steady_now() + limit_;
    return !given_up_;
  }

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    found_.check(promise_, awaited_, false, "in the case \"" + name_ + "\": " + reason);
  }

  awaitable<void> whole() {
    auto first = part(body());
    co_await std::move(first);
    auto last = part(finish());
    co_await std::move(last);
  }

  awaitable<void> part(awaitable<void> work) {
    begin_part();
    try {
      auto limited = async::with_timeout(std::move(work), limit_);
      co_await std::move(limited);
    } catch (...) {
      fail(describe(std::current_exception()));
    }
  }

  void work() {
    try {
      async::detail::spawn(runtime_.io().get_executor(), whole(),
                           async::detail::Completion([this](const std::exception_ptr&) { runtime_.io().stop(); }));
      runtime_.io().run();
      if (begin_part()) {
        runtime_.io().restart();
        runtime_.io().run_for(patience_);
        idle_ = runtime_.io().stopped();
        if (!failed_) afterwards(idle_);
      }
    } catch (...) {
      // Thrown by a handler that the policy has posted.
      fail(describe(std::current_exception()));
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // @returns false if the case was abandoned
  bool wait() {
    std::unique_lock lock(mutex_);
    while (steady_now() < deadline_ + patience_)
      if (changed_.wait_until(lock, deadline_ + patience_, [this] { return ended_; })) return true;
    lock.unlock();
    boost::asio::post(runtime_.io(), [this] { answer(); });
    lock.lock();
    changed_.wait_for(lock, patience_, [this] { return ended_ || answered_; });
    if (ended_) return true;
    given_up_ = true;
    const std::string here = "in the case \"" + name_ + "\": no result within " + to_string(limit_);
    const std::string end = "; the following cases were skipped";
    if (answered_)
      found_.check(promise_, awaited_, false, here + ", and it does not end when it is canceled" + end);
    else
      found_.check(1, "no member blocks the executor", false, here + " where this was awaited: " + awaited_ + end);
    runtime_.io().stop();
    return false;
  }

  void answer() {
    const std::lock_guard lock(mutex_);
    answered_ = true;
    changed_.notify_all();
  }

  const std::string name_;
  const Duration limit_;
  const Duration patience_;  // timeout for canceled work to end, and for an executor to respond
  bool failed_ = false;      // of the thread of the case, like the next
  bool idle_ = false;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  SteadyPoint deadline_;
  ConformanceReport found_;
  int promise_ = 0;
  std::string awaited_;
  bool ended_ = false;
  bool answered_ = false;
  bool given_up_ = false;

  Runtime runtime_;  // destroyed first: work that is left on its executor may access the other members
};

}  // namespace nni::testing::detail

// ---- nni/testing/service_trials.hpp

namespace nni::testing {

/// The trials of the suite for services: each function returns a form that the platform can run.
///
/// They are called on the executor of the service, which has a separate thread for each case.
struct ServiceTrials {
  std::function<TrialJobForm(RunId)> succeeds{};            ///< ends on its own, exit code 0
  std::function<TrialJobForm(RunId)> fails{};               ///< ends on its own with a failure
  std::function<TrialJobForm(RunId)> runs_until_stopped{};  ///< ends only when it is canceled
  /// Reports one value when it is ready to be stopped, if the service carries messages; runs until it is canceled, and then
  /// exits on its own with exit code 0. Absent if trials cannot detect a cancellation.
  std::function<TrialJobForm(RunId)> exits_when_stopped{};
  std::function<TrialJobForm(RunId)> cannot_start{};  ///< absent if every run can start
  /// Succeeds only if its variable NNI_CONFORMANCE is `it's here`, which the suite adds to the form. Absent if trials
  /// are callables.
  std::function<TrialJobForm(RunId)> needs_variable{};
  std::function<TrialJobForm(RunId)> reports{};       ///< reports 0.25, 0.5 and finally 0.75; absent without messages
  std::function<TrialJobForm(RunId)> kills_itself{};  ///< sends SIGKILL to itself; absent if trials are not processes
  /// Makes the platform unavailable so that no run can start (true), or available again (false); live runs continue. Absent
  /// if that is impossible; nni/testing/flapping.hpp can simulate it then.
  std::function<void(bool)> outage{};
  int failure_code = 0;                  ///< exit code of `fails`; 0: none
  std::function<std::size_t()> alive{};  ///< returns the number of live trials; absent if unknown
  /// Timeout of one case and of a clean-up, which detects missing events. Also the shutdown limit of the context.
  Duration limit = std::chrono::seconds(30);
};

}  // namespace nni::testing

// ---- nni/testing/detail/service_case.hpp

namespace nni::testing::detail {

/// The events of one run.
struct Heard {
  int started = 0;
  int ended = 0;
  int deferred = 0;  // not an end: the same run may be submitted again
  bool in_order = true;
  bool expected = false;  // it was submitted or adopted
  JobEnd end;
};

inline RunId run_of(std::uint64_t trial, std::uint32_t attempt = 0) { return RunId{TrialId{trial}, attempt}; }

/// A case of the suite for services: a service, and the events of its runs.
template <TrainingService S>
class ServiceCase final : public SupervisedCase {
 public:
  using Body = awaitable<void> (*)(ServiceCase&);

  /// The definition of a case.
  struct Plan {
    const char* name = "";
    Body body = nullptr;
    bool starts = true;  // starts the service before the body
  };

  ServiceCase(Plan plan, S made, std::function<S()> again, const ServiceTrials& given)
      : SupervisedCase(plan.name, given.limit), trials(given), plan_(plan), again_(std::move(again)) {
    service_.emplace(std::move(made));
  }

  using SupervisedCase::check;
  using SupervisedCase::context;
  using SupervisedCase::expect;

  const ServiceTrials trials;

  S& service() { return *service_; }
  Heard& heard(RunId run) { return heard_[run]; }

  /// Returns all runs with events, or with expected events.
  const std::map<RunId, Heard>& all_heard() const { return heard_; }

  awaitable<void> start() {
    expect(0, "the service can be started");
    auto starting = service_->start(context());
    co_await std::move(starting);
  }

  /// Submits a run; the caller has set the expectation.
  awaitable<JobId> order(TrialJobForm form, RunId run) {
    form.run = run;
    heard_[run].expected = true;
    auto work = service_->submit_trial_job(std::move(form));
    co_return co_await std::move(work);
  }

  awaitable<JobId> submit(TrialJobForm form, RunId run) {
    expect(3, "submit_trial_job accepts a run");
    auto work = order(std::move(form), run);
    co_return co_await std::move(work);
  }

  /// Submits a run that is stopped later, and waits for its start.
  awaitable<void> begin(RunId run) { return begin(trials.runs_until_stopped(run), run); }

  /// Submits a run, and waits for its start.
  awaitable<void> begin(TrialJobForm form, RunId run) {
    auto submitting = submit(std::move(form), run);
    co_await std::move(submitting);
    expect(4, "the start of a run is reported");
    while (heard_[run].started == 0) {
      auto hearing = hear();
      co_await std::move(hearing);
    }
  }

  awaitable<void> hear() {
    auto next = service_->next_event();
    const JobEvent event = co_await std::move(next);
    note(event);
  }

  /// Waits for a number of ends.
  awaitable<void> listen(std::size_t ends, int promise, std::string expectation) {
    expect(promise, std::move(expectation));
    const std::size_t wanted = count_ends() + ends;
    while (count_ends() < wanted) {
      auto hearing = hear();
      co_await std::move(hearing);
    }
  }

  /// Handles the events of a short time. @returns false if there were none
  awaitable<bool> hear_for(Duration moment) {
    try {
      auto limited = async::with_timeout(service_->next_event(), moment);
      const JobEvent event = co_await std::move(limited);
      note(event);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::timed_out)) throw;
      co_return false;
    }
    co_return true;
  }

  /// Listens long enough to detect surplus events.
  awaitable<void> quiet() {
    expect(6, "a canceled next_event ends");
    const SteadyPoint until = context().clock().steady_now() + std::chrono::milliseconds(50);
    while (context().clock().steady_now() < until) {
      auto hearing = hear_for(until - context().clock().steady_now());
      co_await std::move(hearing);
    }
  }

  std::size_t count_ends() const {
    std::size_t ends = 0;
    for (const auto& [run, one] : heard_) ends += static_cast<std::size_t>(one.ended);
    return ends;
  }

  /// Cleans up, once in a case.
  awaitable<void> clean() {
    cleaned_ = true;
    expect(7, "clean_up ends live runs within the context's limit");
    auto cleaning = service_->clean_up();  // this part of the case has the same timeout
    co_await std::move(cleaning);
    if (!trials.alive) co_return;
    const std::size_t left = trials.alive();
    check(7, "no trial runs after clean_up", left == 0, std::to_string(left) + " run");
  }

  /// Abandons the service without a clean-up, like a killed manager, and creates the next one.
  void replace() {
    service_.reset();
    service_.emplace(again_());
    heard_.clear();
  }

 private:
  void note(const JobEvent& event) {
    if (const auto* begin = std::get_if<JobStarted>(&event)) {
      Heard& one = heard_[begin->run];
      ++one.started;
      one.in_order = one.in_order && one.ended == 0;
    } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
      Heard& one = heard_[ended->run];
      ++(ended->end.kind == EndKind::deferred ? one.deferred : one.ended);
      one.end = ended->end;
    }
  }

  awaitable<void> body() override {
    if (plan_.starts) {
      auto starting = start();
      co_await std::move(starting);
    }
    auto work = plan_.body(*this);
    co_await std::move(work);
  }

  awaitable<void> finish() override {
    std::string strangers;
    std::string wrong;
    for (const auto& [run, one] : heard_) {
      if (!one.expected) strangers += to_string(run) + " ";
      if (one.started > 1 || one.ended > 1 || !one.in_order)
        wrong += to_string(run) + ": " + std::to_string(one.started) + " starts, " + std::to_string(one.ended) +
                 " ends" + (one.in_order ? " " : ", a start after an end ");
    }
    check(4, "a run is started once at most and ended once, in that order", wrong.empty(), wrong);
    check(4, "there are no events of runs that were not submitted", strangers.empty(), strangers);
    if (cleaned_) co_return;
    auto cleaning = clean();
    co_await std::move(cleaning);
  }

  void afterwards(bool idle) override { check(7, "nothing is left on the executor after clean_up", idle); }

  const Plan plan_;
  const std::function<S()> again_;
  std::optional<S> service_;
  std::map<RunId, Heard> heard_;
  bool cleaned_ = false;
};

}  // namespace nni::testing::detail

// ---- nni/testing/detail/service_adoption_checks.hpp

namespace nni::testing::detail {

inline std::vector<Intent> intents_of(RunId first, RunId second) {
  std::vector<Intent> intents(2);
  intents[0].run = first;
  intents[1].run = second;
  return intents;
}

/// Returns the only answer for a run; none, or several, give an unknown run.
inline JobReport answer_for(RunId run, const std::vector<JobReport>& reports) {
  JobReport answer;
  int count = 0;
  for (const JobReport& report : reports)
    if (report.run == run && ++count == 1) answer = report;
  return count == 1 ? answer : JobReport();
}

template <class S>
awaitable<void> check_adopts_unknown(ServiceCase<S>& here) {
  const std::string each = "adopt answers for every intent, also for one without a job";
  here.expect(8, each);
  auto adopting = here.service().adopt(intents_of(run_of(5), run_of(6)));
  const std::vector<JobReport> reports = co_await std::move(adopting);
  const JobReport five = answer_for(run_of(5), reports);
  const JobReport six = answer_for(run_of(6), reports);
  here.check(8, each, reports.size() == 2 && five.run == run_of(5) && six.run == run_of(6),
             std::to_string(reports.size()) + " answers to 2");
  here.check(8, "a run that never started is not reported as running",
             five.state != JobReport::State::running && six.state != JobReport::State::running);
}

/// A run that outlives its manager; the next one knows only its name.
template <class S>
awaitable<void> check_adopts_running(ServiceCase<S>& here) {
  if (!here.service().capabilities().survives_manager) co_return;
  const RunId run = run_of(1);
  auto beginning = here.begin(run);
  co_await std::move(beginning);
  here.replace();
  auto starting = here.start();
  co_await std::move(starting);

  const std::string found = "adopt finds a run by its name alone, and the run continues";
  here.expect(8, found);
  here.heard(run).expected = true;
  auto adopting = here.service().adopt(intents_of(run, run_of(5)));
  const std::vector<JobReport> reports = co_await std::move(adopting);
  const JobReport answer = answer_for(run, reports);
  here.check(8, found, answer.run == run && answer.state == JobReport::State::running);
  here.expect(8, "an adopted run can be canceled");
  auto stopping = here.service().cancel_trial_job(run, StopReason::user);
  co_await std::move(stopping);
  auto hearing = here.listen(1, 8, "the end of an adopted run is reported");
  co_await std::move(hearing);
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/service_channel_checks.hpp

namespace nni::testing::detail {

/// The values that a service delivered for one run, without duplicates.
class Delivered {
 public:
  void add(const TrialMessage& message, RunId run) {
    const Metric& metric = message.metric;
    from_its_run = from_its_run && metric.run == run;
    if (message.kind != TrialMessage::Kind::metric) text += "garbage ";
    if (seen_.emplace(metric.kind, metric.sequence).second)
      text += std::string(to_string(metric.kind)) + "=" + metric.value + " ";
  }
  std::size_t size() const { return seen_.size(); }

  bool from_its_run = true;
  std::string text;

 private:
  std::set<std::pair<MetricKind, std::uint32_t>> seen_;
};

inline constexpr std::size_t values_of_a_trial = 3;

template <class S>
awaitable<void> take_message(ServiceCase<S>& here, Delivered& delivered, RunId run) {
  auto next = here.service().next_message();
  const TrialMessage message = co_await std::move(next);
  delivered.add(message, run);
  auto answering = here.service().acknowledge(message.receipt);
  co_await std::move(answering);
}

template <class S>
awaitable<void> check_messages(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  Delivered delivered;
  auto submitting = here.submit(here.trials.reports(run), run);
  co_await std::move(submitting);
  here.expect(1, "(TrialChannel) every value is delivered");
  while (delivered.size() < values_of_a_trial) {
    auto taking = take_message(here, delivered, run);
    co_await std::move(taking);
  }
  here.check(4, "(TrialChannel) values of a run come in its order",
             delivered.text == "PERIODICAL=0.25 PERIODICAL=0.5 FINAL=0.75 ", delivered.text);
  here.check(1, "(TrialChannel) the run of a value comes from the channel", delivered.from_its_run);

  here.expect(2, "(TrialChannel) an unknown receipt is ignored");
  constexpr Receipt nobodys{0xffff'ffff'ffff};
  auto unknown = here.service().acknowledge(nobodys);
  co_await std::move(unknown);
  auto hearing = here.listen(1, 4, "the end of each run is reported");
  co_await std::move(hearing);
  here.expect(3, "(TrialChannel) settling a run whose values were taken returns");
  auto settling = here.service().settle(run);
  co_await std::move(settling);
}

/// The first round is canceled without a message, the others when one may just have arrived.
template <class S>
awaitable<void> check_cancelled_message_reader(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  Delivered delivered;
  const SteadyPoint until = here.context().clock().steady_now() + here.trials.limit / 2;
  for (int round = 0; delivered.size() < values_of_a_trial && here.context().clock().steady_now() < until; ++round) {
    if (round == 1) {
      auto submitting = here.submit(here.trials.reports(run), run);
      co_await std::move(submitting);
    }
    here.expect(4, "(TrialChannel) a canceled next_message ends");
    TrialMessage message;
    try {
      auto limited = async::with_timeout(here.service().next_message(), std::chrono::milliseconds(5));
      message = co_await std::move(limited);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::timed_out)) throw;
      continue;
    }
    delivered.add(message, run);
    auto answering = here.service().acknowledge(message.receipt);
    co_await std::move(answering);
  }
  here.expect(4, "(TrialChannel) a canceled next_message loses nothing");
  while (delivered.size() < values_of_a_trial) {
    auto taking = take_message(here, delivered, run);
    co_await std::move(taking);
  }
}

template <class S>
awaitable<void> settle_and_say(ServiceCase<S>& here, RunId run, bool& done) {
  auto settling = here.service().settle(run);
  co_await std::move(settling);
  done = true;
}

template <class S>
awaitable<void> take_late(ServiceCase<S>& here, Delivered& delivered, RunId run, const bool& settled) {
  // Long enough to detect an early answer.
  auto waiting = here.context().clock().sleep_for(std::chrono::milliseconds(50));
  co_await std::move(waiting);
  here.check(3, "(TrialChannel) settling waits until the values of an ended run were taken", !settled);
  while (delivered.size() < values_of_a_trial) {
    auto taking = take_message(here, delivered, run);
    co_await std::move(taking);
  }
}

/// A run that ends before its values were taken, if it does not wait for that.
template <class S>
awaitable<void> check_settles(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  Delivered delivered;
  auto submitting = here.submit(here.trials.reports(run), run);
  co_await std::move(submitting);
  here.expect(6, "a canceled next_event ends");
  bool more = true;
  while (more && here.heard(run).ended == 0) {
    auto hearing = here.hear_for(std::chrono::milliseconds(50));
    more = co_await std::move(hearing);
  }
  if (here.heard(run).ended == 0) co_return;  // a trial that waits for its acknowledgements
  here.expect(3, "(TrialChannel) settling returns when the values of an ended run were taken");
  bool settled = false;
  auto both = async::with_task_group([&](async::task_group& group) {
    group.spawn(settle_and_say(here, run, settled));
    return take_late(here, delivered, run, settled);
  });
  co_await std::move(both);
}

/// Further parameters are queued, independent of the trial.
template <class S>
awaitable<void> check_send(ServiceCase<S>& here) {
  if (!here.service().capabilities().multi_phase) co_return;
  const RunId run = run_of(1);
  auto beginning = here.begin(run);
  co_await std::move(beginning);
  here.expect(6, "(TrialChannel) where capabilities() says multi_phase, send returns when the parameters are queued");
  auto sending = here.service().send(run, ParametersWriter{}.add("phase", 1).finish());
  co_await std::move(sending);
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/service_run_checks.hpp

namespace nni::testing::detail {

inline std::string text_of(const JobEnd& end) {
  return std::string(to_string(end.kind)) + " " + std::to_string(end.code) + " " + end.message +
         (end.why ? " on request: " + std::string(to_string(*end.why)) : std::string());
}

/// Checks the kinds of end.
template <class S>
awaitable<void> check_ends(ServiceCase<S>& here) {
  const RunId good = run_of(1);
  const RunId bad = run_of(2);
  const RunId never = run_of(3);
  const RunId shot = run_of(4);
  auto first = here.submit(here.trials.succeeds(good), good);
  co_await std::move(first);
  auto second = here.submit(here.trials.fails(bad), bad);
  co_await std::move(second);
  std::size_t expected = 2;
  const std::string reason = "a command that cannot start is an end with a reason, not an exception";
  if (here.trials.cannot_start) {
    here.expect(3, reason);
    auto third = here.order(here.trials.cannot_start(never), never);
    co_await std::move(third);
    ++expected;
  }
  if (here.trials.kills_itself) {
    auto fourth = here.submit(here.trials.kills_itself(shot), shot);
    co_await std::move(fourth);
    ++expected;
  }
  auto hearing = here.listen(expected, 4, "the end of each run is reported");
  co_await std::move(hearing);
  auto waiting = here.quiet();
  co_await std::move(waiting);

  const Heard& one = here.heard(good);
  here.check(4, "a run that succeeds is started once and ended once", one.started == 1 && one.ended == 1,
             std::to_string(one.started) + " starts, " + std::to_string(one.ended) + " ends");
  here.check(4, "exit code 0 is reported as such", one.end.succeeded(), text_of(one.end));
  const JobEnd& failed = here.heard(bad).end;
  here.check(4, "a failed run is not reported as a success", !failed.succeeded(), text_of(failed));
  here.check(4, "a run that fails by itself is neither killed, nor lost, nor not started",
             failed.kind != EndKind::killed && failed.kind != EndKind::lost && failed.kind != EndKind::not_started,
             text_of(failed));
  if (here.trials.failure_code != 0)
    here.check(4, "the exit code of a run is reported",
               failed.kind == EndKind::exited && failed.code == here.trials.failure_code, text_of(failed));
  if (here.trials.cannot_start) {
    const JobEnd& end = here.heard(never).end;
    here.check(3, reason, end.kind == EndKind::not_started && !end.message.empty(), text_of(end));
  }
  if (here.trials.kills_itself) {
    constexpr int sigkill = 9;
    const JobEnd& end = here.heard(shot).end;
    here.check(4, "a signal that the service did not send is reported with its number",
               end.kind == EndKind::signalled && end.code == sigkill, text_of(end));
  }
}

template <class S>
awaitable<void> check_variables(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  TrialJobForm form = here.trials.needs_variable(run);
  form.environment["NNI_CONFORMANCE"] = "it's here";
  auto submitting = here.submit(std::move(form), run);
  co_await std::move(submitting);
  auto hearing = here.listen(1, 4, "the end of each run is reported");
  co_await std::move(hearing);
  const JobEnd& end = here.heard(run).end;
  here.check(3, "a run has the variables of its form", end.succeeded(), text_of(end));
}

template <class S>
awaitable<void> check_same_run_twice(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  const RunId next = run_of(1, 1);
  auto first = here.submit(here.trials.runs_until_stopped(run), run);
  const JobId job = co_await std::move(first);
  auto second = here.submit(here.trials.runs_until_stopped(run), run);
  const JobId again = co_await std::move(second);
  auto other = here.submit(here.trials.succeeds(next), next);
  co_await std::move(other);
  here.expect(5, "cancel_trial_job works in every state");
  auto stopping = here.service().cancel_trial_job(run, StopReason::user);
  co_await std::move(stopping);
  auto hearing = here.listen(2, 3, "of two attempts each is a job of its own, and ends");
  co_await std::move(hearing);
  auto waiting = here.quiet();
  co_await std::move(waiting);
  here.check(3, "a second submit of the same run is answered with the same job", again == job,
             job.value + " and " + again.value);
  here.check(3, "a second submit of the same run makes no second job",
             here.heard(run).started <= 1 && here.heard(run).ended == 1,
             std::to_string(here.heard(run).started) + " starts, " + std::to_string(here.heard(run).ended) + " ends");
  here.check(3, "the next attempt is a job of its own", here.heard(next).ended == 1 && here.heard(next).end.succeeded(),
             text_of(here.heard(next).end));
}

/// Cancels a run that may end concurrently.
template <class S>
awaitable<void> cancel_late(ServiceCase<S>& here, RunId run, StopReason reason) {
  try {
    auto stopping = here.service().cancel_trial_job(run, reason);
    co_await std::move(stopping);
  } catch (const Error& error) {
    if (error.code() != make_error_code(Errc::no_such_job)) throw;
  }
}

template <class S>
awaitable<void> check_cancels(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  auto beginning = here.begin(run);
  co_await std::move(beginning);
  here.expect(5, "cancel_trial_job returns when the request is accepted");
  auto stopping = here.service().cancel_trial_job(run, StopReason::early_stop);
  co_await std::move(stopping);
  here.expect(5, "a run that is being stopped, or has ended, can be canceled, or is Errc::no_such_job");
  auto once_more = cancel_late(here, run, StopReason::early_stop);
  co_await std::move(once_more);
  auto hearing = here.listen(1, 5, "the end of a canceled run arrives as an event");
  co_await std::move(hearing);
  here.expect(5, "a run that is being stopped, or has ended, can be canceled, or is Errc::no_such_job");
  auto behind = cancel_late(here, run, StopReason::early_stop);
  co_await std::move(behind);
  auto waiting = here.quiet();
  co_await std::move(waiting);
  const JobEnd& end = here.heard(run).end;
  here.check(
      4, "a requested end is reported with its reason",
      end.why == StopReason::early_stop && end.kind != EndKind::lost && end.kind != EndKind::not_started, text_of(end));

  const std::string unknown = "canceling an unknown run is Errc::no_such_job";
  here.expect(5, unknown);
  std::string seen = "it was accepted";
  bool refused = false;
  try {
    auto nobody = here.service().cancel_trial_job(run_of(77), StopReason::user);
    co_await std::move(nobody);
  } catch (const Error& error) {
    refused = error.code() == make_error_code(Errc::no_such_job);
    seen = error.what();
  }
  here.check(5, unknown, refused, seen);
}

/// A run that is stopped and exits on its own: the manager decides about the trial by its exit code.
template <class S>
awaitable<void> check_exit_on_request(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  auto beginning = here.begin(here.trials.exits_when_stopped(run), run);
  co_await std::move(beginning);
  if constexpr (CarriesMessages<S>) {
    here.expect(1, "(TrialChannel) every value is delivered");
    auto ready = here.service().next_message();
    const TrialMessage message = co_await std::move(ready);
    auto answering = here.service().acknowledge(message.receipt);
    co_await std::move(answering);
  }
  here.expect(5, "cancel_trial_job returns when the request is accepted");
  auto stopping = here.service().cancel_trial_job(run, StopReason::experiment_end);
  co_await std::move(stopping);
  auto hearing = here.listen(1, 5, "the end of a canceled run arrives as an event");
  co_await std::move(hearing);
  const JobEnd& end = here.heard(run).end;
  here.check(4, "a run that exits on its own on request is reported with its exit code",
             end.kind == EndKind::exited && end.code == 0, text_of(end));
  here.check(4, "and with the reason of the request", end.why == StopReason::experiment_end, text_of(end));
}

/// The first round is canceled without an event, the others when one may just have arrived.
template <class S>
awaitable<void> check_cancelled_reader(ServiceCase<S>& here) {
  constexpr std::uint64_t rounds = 3;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    here.expect(6, "a canceled next_event ends");
    auto hearing = here.hear_for(std::chrono::milliseconds(5));
    co_await std::move(hearing);
    auto submitting = here.submit(here.trials.succeeds(run_of(round)), run_of(round));
    co_await std::move(submitting);
  }
  auto rest = here.listen(rounds - here.count_ends(), 6, "a canceled next_event loses nothing");
  co_await std::move(rest);
  bool complete = true;
  for (const auto& [run, heard] : here.all_heard()) complete = complete && heard.started == 1 && heard.ended == 1;
  here.check(6, "a canceled next_event loses nothing", complete);
}

template <class S>
awaitable<void> check_many(ServiceCase<S>& here) {
  constexpr std::uint64_t count = 40;
  for (std::uint64_t trial = 1; trial <= count; ++trial) {
    auto submitting = here.submit(here.trials.succeeds(run_of(trial)), run_of(trial));
    co_await std::move(submitting);
  }
  const std::string each = "of many runs each is started once and ended once";
  auto hearing = here.listen(count, 4, each);
  co_await std::move(hearing);
  bool complete = true;
  for (const auto& [run, heard] : here.all_heard())
    complete = complete && heard.started == 1 && heard.ended == 1 && heard.end.succeeded();
  here.check(4, each, complete);
}

template <class S>
awaitable<void> order_one(ServiceCase<S>& here, RunId run) {
  auto ordering = here.order(here.trials.runs_until_stopped(run), run);
  co_await std::move(ordering);
}

template <class S>
awaitable<void> order_all(ServiceCase<S>& here, async::task_group& group, std::size_t count) {
  for (std::uint64_t trial = 1; trial <= count; ++trial) group.spawn(order_one(here, run_of(trial)));
  co_return;
}

template <class S>
awaitable<void> cancel_all(ServiceCase<S>& here, async::task_group& group, std::size_t count) {
  for (std::uint64_t trial = 1; trial <= count; ++trial)
    group.spawn(here.service().cancel_trial_job(run_of(trial), StopReason::user));
  co_return;
}

/// Concurrent submissions up to the limit of the service, and then cancellations.
template <class S>
awaitable<void> check_in_flight(ServiceCase<S>& here) {
  constexpr std::size_t enough = 8;
  const std::size_t most = std::min(here.service().capabilities().max_in_flight, enough);
  if (most < 2) co_return;
  const std::string each = "as many runs are submitted and canceled at a time as capabilities() allows";
  here.expect(1, each);
  auto submitting = async::with_task_group([&](async::task_group& group) { return order_all(here, group, most); });
  co_await std::move(submitting);
  auto stopping = async::with_task_group([&](async::task_group& group) { return cancel_all(here, group, most); });
  co_await std::move(stopping);
  auto hearing = here.listen(most, 1, each);
  co_await std::move(hearing);
  bool complete = true;
  for (const auto& [run, heard] : here.all_heard())
    complete = complete && heard.ended == 1 && heard.end.why == StopReason::user;
  here.check(1, each, complete);
}

/// A run that has started, and one that may not have.
template <class S>
awaitable<void> check_clean_up(ServiceCase<S>& here) {
  auto beginning = here.begin(run_of(1));
  co_await std::move(beginning);
  auto submitting = here.submit(here.trials.runs_until_stopped(run_of(2)), run_of(2));
  co_await std::move(submitting);
  auto cleaning = here.clean();
  co_await std::move(cleaning);
  const std::string silence = "there are no events after clean_up";
  here.expect(7, silence);
  bool silent = true;
  try {
    auto limited = async::with_timeout(here.service().next_event(), std::chrono::milliseconds(50));
    co_await std::move(limited);
    silent = false;
  } catch (const std::exception&) {
    // No event arrived, or the service reports that there will be none.
  }
  here.check(7, silence, silent);
}

/// An experiment that cannot be opened cleans up a service that was never started.
template <class S>
awaitable<void> check_never_started(ServiceCase<S>& here) {
  auto cleaning = here.clean();
  co_await std::move(cleaning);
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/service_outage_checks.hpp

namespace nni::testing::detail {

/// Submits a run to an unavailable platform. @returns the problem of the answer; empty: none
template <class S>
awaitable<std::string> order_in_outage(ServiceCase<S>& here, RunId run) {
  const int deferred = here.heard(run).deferred;
  std::string wrong;
  bool refused = false;
  try {
    auto ordering = here.order(here.trials.succeeds(run), run);
    co_await std::move(ordering);
  } catch (const std::exception& error) {
    refused = true;
    if (!is_transient(error)) wrong = std::string("an error that is not transient: ") + error.what();
  }
  while (!refused && here.heard(run).deferred == deferred && here.heard(run).ended == 0) {
    auto hearing = here.hear();
    co_await std::move(hearing);
  }
  const Heard& one = here.heard(run);
  if (one.started != 0) wrong = "it was started";
  if (one.ended != 0) wrong = text_of(one.end);
  if (!refused && one.deferred > deferred && one.end.message.empty()) wrong = "no reason";
  co_return wrong;
}

/// An outage of the platform, twice for the same run.
template <class S>
awaitable<void> check_outage(ServiceCase<S>& here) {
  const RunId run = run_of(1);
  const RunId other = run_of(2);
  auto beginning = here.begin(other);
  co_await std::move(beginning);
  here.trials.outage(true);
  const std::string answer =
      "a run that cannot start now is deferred with a reason, or rejected with a transient error";
  for (int times = 0; times < 2; ++times) {
    here.expect(3, answer);
    auto ordering = order_in_outage(here, run);
    const std::string wrong = co_await std::move(ordering);
    here.check(3, answer, wrong.empty(), wrong);
    if (wrong.empty()) continue;
    here.trials.outage(false);
    co_return;
  }
  here.trials.outage(false);
  const std::string again = "a run that was deferred or refused is started once when it is submitted again";
  here.expect(3, again);
  auto ordering = here.order(here.trials.succeeds(run), run);
  co_await std::move(ordering);
  auto hearing = here.listen(1, 3, again);
  co_await std::move(hearing);
  auto waiting = here.quiet();
  co_await std::move(waiting);
  const Heard& one = here.heard(run);
  here.check(3, again, one.started == 1 && one.ended == 1 && one.end.succeeded(),
             std::to_string(one.started) + " starts, " + std::to_string(one.ended) + " ends; " + text_of(one.end));
  here.check(4, "live runs continue while the platform can start nothing", here.heard(other).ended == 0,
             text_of(here.heard(other).end));
}

}  // namespace nni::testing::detail

// ---- nni/testing/conformance.hpp

namespace nni::testing {

/// Checks the observable promises of `nni::TrainingService` for any service.
///
/// Each case creates a service, starts it, and cleans it up, on a separate thread. The checks carry the numbers of
/// the promises; those of messages are the numbers of `nni::TrialChannel`, with its name. A service that does not return
/// within `ServiceTrials::limit` breaks the promise under test. It is canceled; if it does not react,
/// its case is leaked until the end of the process, and the suite ends there.
///
/// @param make    returns a service that is ready to be started
/// @param trials  trials for it
/// @param again   returns another service on the same platform, and in the same directory, as the last one, like the next
///                manager of an experiment; absent: no tests of runs that outlive their manager
/// @returns       the results of all checks
template <TrainingService S>
[[nodiscard]] ConformanceReport check_training_service(
    const std::function<S()>& make, const ServiceTrials& trials, const std::function<S()>& again = {}) {
  ConformanceReport report;
  using Case = detail::ServiceCase<S>;
  bool goes_on = true;
  const auto one = [&](const char* name, typename Case::Body body, bool starts = true) {
    if (!goes_on) return;
    std::optional<S> made;
    try {
      made.emplace(make());
    } catch (const std::exception& error) {
      report.check(0, "a service can be made", false, error.what());
      return;
    }
    typename Case::Plan plan;
    plan.name = name;
    plan.body = body;
    plan.starts = starts;
    goes_on = detail::SupervisedCase::run(std::make_shared<Case>(plan, std::move(*made), again, trials), report);
  };

  one("never started", &detail::check_never_started<S>, false);
  one("ends", &detail::check_ends<S>);
  if (trials.needs_variable) one("variables", &detail::check_variables<S>);
  one("same run twice", &detail::check_same_run_twice<S>);
  one("cancel", &detail::check_cancels<S>);
  if (trials.exits_when_stopped) one("exit on request", &detail::check_exit_on_request<S>);
  one("canceled reader", &detail::check_cancelled_reader<S>);
  one("many runs", &detail::check_many<S>);
  one("in flight", &detail::check_in_flight<S>);
  if (trials.outage) one("outage", &detail::check_outage<S>);
  one("clean up", &detail::check_clean_up<S>);
  if constexpr (CarriesMessages<S>) {
    one("send", &detail::check_send<S>);
    if (trials.reports) {
      one("messages", &detail::check_messages<S>);
      one("canceled reader of messages", &detail::check_cancelled_message_reader<S>);
      one("settle", &detail::check_settles<S>);
    }
  }
  if constexpr (ResumableService<S>) {
    one("adopt", &detail::check_adopts_unknown<S>);
    if (again) one("adopt what runs", &detail::check_adopts_running<S>);
  } else {
    report.check(8, "runs that outlive their manager can be adopted", !make().capabilities().survives_manager);
  }
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/store_script.hpp

namespace nni::testing {

/// Writes the events of an experiment for tests of data stores: what a session would record, with made-up values
/// that follow from the number of the trial.
/// @code
/// store.append(StoreScript().ordered(1).intended(1).started(1).final_value(1, "0.5").ended(1).events());
/// @endcode
class StoreScript {
 public:
  StoreScript() = default;

  /// The events so far.
  [[nodiscard]] const std::vector<StoreEvent>& events() const& noexcept { return events_; }
  /// The events so far, of a script that is at its end.
  [[nodiscard]] std::vector<StoreEvent> events() && noexcept { return std::move(events_); }

  /// The moment of a step of a trial: distinct for all trials and steps.
  [[nodiscard]] static TimePoint time_of(std::uint64_t trial, int step) {
    return from_epoch_ms(1'790'000'000'000 + static_cast<long long>(trial) * 10 + step);
  }
  /// What a trial tries: a number that follows from it, and a word that has to be escaped.
  [[nodiscard]] static Parameters parameters_of(std::uint64_t trial) {
    return ParametersWriter().add("x", 0.1 * static_cast<double>(trial)).add("kind", "a \"b\"").finish();
  }
  /// What the platform calls a run.
  [[nodiscard]] static JobId job_of(RunId run) { return JobId("job-" + to_string(run)); }
  /// What the platform says about how a run goes: a word that follows from it, and one that has to be escaped.
  [[nodiscard]] static std::vector<std::string> tags_of(RunId run) {
    std::vector<std::string> tags(1, "tag-" + to_string(run));
    tags.emplace_back("a \"b\"");
    return tags;
  }
  /// A profile in which every member is set.
  /// @param id        of the experiment
  /// @param status    of the experiment
  /// @param sequence  of the next trial
  [[nodiscard]] static ProfileChanged profile_of(
      const ExperimentId& id, ExperimentStatus status, std::uint64_t sequence) {
    ProfileChanged profile;
    profile.id = id;
    profile.name = "a name";
    profile.params = "{\"experimentName\": \"a name\", \"maxTrialNumber\": 10}";
    profile.seed = 0xfedc'ba98'7654'3210ULL;
    profile.status = status;
    profile.message = "because";
    profile.exec_duration = std::chrono::milliseconds(12'345);
    profile.start_time = time_of(0, 1);
    profile.end_time = time_of(0, 2);
    profile.next_sequence = sequence;
    profile.log_directory = "somewhere/log";
    profile.settings = R"({"concurrency": 2, "max_trials": 10})";
    return profile;
  }

  /// Adds `profile_of(id, status, sequence)`.
  StoreScript& profile(const ExperimentId& id, ExperimentStatus status, std::uint64_t sequence) {
    events_.emplace_back(profile_of(id, status, sequence));
    return *this;
  }
  /// A trial is ordered.
  /// @param trial  number from 1
  StoreScript& ordered(std::uint64_t trial) {
    events_.emplace_back(TrialOrdered(TrialId{trial}, ParameterId{trial - 1}, parameters_of(trial), time_of(trial, 0)));
    return *this;
  }
  /// A run of a trial is about to be submitted.
  /// @param trial    number from 1
  /// @param attempt  number from 0
  /// @param node     empty: no placement; otherwise that machine and its device 2
  StoreScript& intended(std::uint64_t trial, std::uint32_t attempt = 0, const std::string& node = {}) {
    Placement place(node);
    if (!node.empty()) place.gpus = std::vector<int>(1, 2);
    events_.emplace_back(RunIntended(RunId{TrialId{trial}, attempt}, std::move(place), time_of(trial, 1)));
    return *this;
  }
  /// The run `attempt` of a `trial` begins, with a link and a directory.
  StoreScript& started(std::uint64_t trial, std::uint32_t attempt = 0) {
    const RunId run{TrialId{trial}, attempt};
    JobStarted begin(run, job_of(run), time_of(trial, 2));
    begin.url = "http://example.invalid/" + to_string(run);
    begin.working_directory = "/trials/" + to_string(run);
    begin.tags = tags_of(run);
    events_.emplace_back(RunStarted(std::move(begin)));
    return *this;
  }
  /// An intermediate value.
  /// @param trial     number from 1
  /// @param sequence  position among those of the run, from 0
  /// @param value     JSON text
  /// @param attempt   number from 0
  StoreScript& intermediate(std::uint64_t trial, std::uint32_t sequence, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::intermediate, sequence, std::move(value));
  }
  /// A final `value`, JSON text, of the run `attempt` of a `trial`.
  StoreScript& final_value(std::uint64_t trial, std::string value, std::uint32_t attempt = 0) {
    return metric(trial, attempt, MetricKind::final, 0, std::move(value));
  }
  /// The end of a `trial` that did what it was asked to, in its run `attempt`.
  StoreScript& ended(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::exited, 0), TrialJobStatus::succeeded, true);
  }
  /// The end of an `attempt` of a `trial` that is followed by another one.
  StoreScript& lost(std::uint64_t trial, std::uint32_t attempt = 0) {
    return end(trial, attempt, JobEnd(EndKind::lost, 0, "the machine went away"), TrialJobStatus::waiting, false);
  }
  /// The end of an attempt after which the trial pauses: the second retry, of three seconds, after a loss that cost none.
  StoreScript& paused(std::uint64_t trial, std::uint32_t attempt = 0) {
    lost(trial, attempt);
    auto& event = std::get<RunEnded>(events_.back());
    event.retries = 2;
    event.losses = 1;
    event.pause = std::chrono::seconds(3);
    return *this;
  }
  /// A result from elsewhere: the parameters of the trial `number`, with a `value`.
  StoreScript& imported(std::uint64_t number, double value) {
    ResultImported event;
    event.parameters = parameters_of(number);
    event.value = value;
    event.history = {0.1, value};
    event.after = number - 1;
    events_.emplace_back(std::move(event));
    return *this;
  }
  /// Any end of a run.
  /// @param trial          number from 1
  /// @param attempt        number from 0
  /// @param job_end        as the platform reported it
  /// @param status         of the trial from now on
  /// @param final_attempt  false: the trial gets another run
  StoreScript& end(std::uint64_t trial, std::uint32_t attempt, JobEnd job_end, TrialJobStatus status,
                   bool final_attempt) {
    RunEnded event;
    event.run = RunId{TrialId{trial}, attempt};
    event.end = std::move(job_end);
    event.status = status;
    event.final_attempt = final_attempt;
    event.at = time_of(trial, 9);
    events_.emplace_back(std::move(event));
    return *this;
  }

  /// A whole trial with one final value.
  StoreScript& succeeded(std::uint64_t trial, std::string value) {
    return ordered(trial).intended(trial).started(trial).final_value(trial, std::move(value)).ended(trial);
  }
  /// A whole trial that a signal ended.
  StoreScript& failed(std::uint64_t trial) {
    ordered(trial).intended(trial).started(trial);
    return end(trial, 0, JobEnd(EndKind::signalled, 9, "out of memory"), TrialJobStatus::failed, true);
  }

 private:
  StoreScript& metric(std::uint64_t trial, std::uint32_t attempt, MetricKind kind, std::uint32_t sequence,
                      std::string value) {
    const int step = 3 + static_cast<int>(sequence % 5);
    events_.emplace_back(
        MetricReceived(Metric(RunId{TrialId{trial}, attempt}, kind, sequence, std::move(value), time_of(trial, step))));
    return *this;
  }

  std::vector<StoreEvent> events_;
};

}  // namespace nni::testing

// ---- nni/testing/data_store_failures.hpp

namespace nni::testing::detail {

/// The error that some work ends with.
inline awaitable<boost::system::error_code> code_of(awaitable<void> work) {
  boost::system::error_code code;
  try {
    co_await std::move(work);
  } catch (const boost::system::system_error& error) {
    code = error.code();
  }
  co_return code;
}

/// Checks that a store whose writes fail says so from then on. The store has one synced trial afterwards, perhaps more.
template <DataStore D>
awaitable<void> fail_for_good(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                              ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);
  break_writing();
  const std::vector<StoreEvent> more = StoreScript().succeeded(2, "0.5").events();
  const StorePosition lost = store.append(more);
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(more);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that failed says so, now and from then on", at_first && later && from_then_on);
}

/// Checks that a store waits out a full disk, and that it can be told to wait no longer. The store has two synced trials
/// afterwards, perhaps more.
template <DataStore D>
awaitable<void> wait_for_space(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                               ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);

  std::vector<std::string> told;
  async::event changed;
  store.on_trouble([&told, &changed](const std::string& reason) {
    told.push_back(reason);
    changed.notify();
  });
  break_writing();
  const std::vector<StoreEvent> second = StoreScript().succeeded(2, "0.5").events();
  const StorePosition late = store.append(second);
  while (told.empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  const bool told_why = !told.front().empty();
  mend_writing();
  auto arriving = code_of(store.synced(late));
  const bool arrived = !(co_await std::move(arriving));
  report.check(2, "a store that cannot write for now says why, and goes on by itself",
               told_why && arrived && told.back().empty());

  break_writing();
  const std::vector<StoreEvent> third = StoreScript().succeeded(3, "0.5").events();
  const StorePosition lost = store.append(third);
  while (told.back().empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  store.give_up();
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(third);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that gave up says so, now and from then on", at_first && later && from_then_on);
  store.on_trouble({});
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_best_checks.hpp

namespace nni::testing::detail {

/// The best trials by either direction, and no trial that has not ended among them.
template <class D>
awaitable<void> check_best(D& store, ConformanceReport& report) {
  const std::vector<StoreEvent> events =
      StoreScript()
          .succeeded(1, "3")
          .succeeded(2, "{\"default\": -1.5}")
          .succeeded(3, "NaN")
          .failed(4)
          .succeeded(5, "-1.5")
          .succeeded(6, "20")
          .succeeded(7, "\"text\"")
          .ordered(8)
          .events();
  store.append(events);
  TrialQuery query;
  query.limit = 3;
  query.best = Direction::minimize;
  auto first = store.page(query);
  const TrialPage least = co_await std::move(first);
  query.best = Direction::maximize;
  query.limit = 10;
  auto second = store.page(query);
  const TrialPage greatest = co_await std::move(second);
  const auto ids = [](const TrialPage& page) {
    std::string text;
    for (const TrialJobDetail& trial : page.trials) text += std::to_string(trial.trial.number) + " ";
    return text + (page.more ? "more" : "all");
  };
  report.check(5, "the smallest results come first, equal ones by id", ids(least) == "2 5 1 more", ids(least));
  report.check(5, "or the largest, and only finite ones", ids(greatest) == "6 1 2 5 all", ids(greatest));

  // One that runs and has reported its result, and one that had ended with one and runs again.
  const std::vector<StoreEvent> live =
      StoreScript().ordered(9).intended(9).started(9).final_value(9, "7").intended(5, 1).started(5, 1).events();
  store.append(live);
  std::string found;
  for (const TrialJobStatus status : {TrialJobStatus::unknown, TrialJobStatus::waiting, TrialJobStatus::running}) {
    query.status = status;
    auto reading = store.page(query);
    const TrialPage page = co_await std::move(reading);
    found += ids(page);
  }
  report.check(5, "what has not ended is nobody's best", found == "allallall", found);
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_final_checks.hpp

namespace nni::testing::detail {

/// Final values of a trial in the order in which a store gives them, with the attempt before each.
template <class D>
awaitable<std::string> final_values_of(D& store, TrialId trial) {
  auto listing = store.metrics(trial);
  const std::vector<Metric> values = co_await std::move(listing);
  std::string text;
  for (const Metric& metric : values)
    if (metric.kind == MetricKind::final) text += std::to_string(metric.run.attempt) + ":" + metric.value + " ";
  co_return text;
}

/// Runs that report several final values: the first is the result, the others are kept beside it.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_final_values(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> live =
      StoreScript().ordered(1).intended(1).started(1).final_value(1, "2").final_value(1, "1").events();
  store->append(live);
  store->append(std::span(live).last(2));
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  report.check(4, "the first of several final values is the result of an open run",
               found.unfinished.size() == 1 && found.unfinished[0].final_value == "2");

  const std::vector<StoreEvent> more =
      StoreScript().final_value(1, "1").final_value(1, "3").final_value(1, "2").events();
  store->append(more);
  auto listing = final_values_of(*store, TrialId{1});
  const std::string values = co_await std::move(listing);
  report.check(4, "several final values are kept in their order, each once", values == "0:2 0:1 0:3 ", values);

  // What counts is the first of the last attempt.
  const std::vector<StoreEvent> again =
      StoreScript()
          .lost(1)
          .intended(1, 1)
          .started(1, 1)
          .final_value(1, "1", 1)
          .final_value(1, "7", 1)
          .ended(1, 1)
          .events();
  store->append(again);
  const std::vector<StoreEvent> other = StoreScript().succeeded(2, "1.5").final_value(2, "0.5").events();
  store->append(other);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      auto resuming = reopen();
      co_await std::move(resuming);
    }
    auto loading = store->load(TrialId{1});
    const std::optional<TrialJobDetail> trial = co_await std::move(loading);
    report.check(4, "of the last attempt the first final value is the result", trial && trial->final_value == "1");
    auto all = final_values_of(*store, TrialId{1});
    const std::string kept = co_await std::move(all);
    report.check(4, "those of both attempts are kept", kept == "0:2 0:1 0:3 1:1 1:7 ", kept);
    TrialQuery query;
    query.best = Direction::minimize;
    auto ranking = store->page(query);
    const TrialPage ranked = co_await std::move(ranking);
    report.check(
        4, "a ranking goes by the results, and not by what came behind them or behind the end",
        ranked.trials.size() == 2 && ranked.trials[0].trial.number == 1 && ranked.trials[1].final_value == "1.5");
  }
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_repetition_checks.hpp

namespace nni::testing::detail {

/// Values of the first trial as a store gives them: attempt, kind, sequence and text.
template <class D>
awaitable<std::string> values_of_first(D& store) {
  auto listing = store.metrics(TrialId{1});
  const std::vector<Metric> values = co_await std::move(listing);
  std::string text;
  for (const Metric& metric : values)
    text += std::to_string(metric.run.attempt) + (metric.kind == MetricKind::final ? "f" : "i") +
            std::to_string(metric.sequence) + "=" + metric.value + " ";
  co_return text;
}

/// Looks at the values of the first trial.
template <class D>
awaitable<void> expect_values(D& store, std::string name, std::string expected, ConformanceReport& report) {
  auto reading = values_of_first(store);
  const std::string seen = co_await std::move(reading);
  report.check(4, name, seen == expected, seen);
}

/// Values that arrive in another order than they were numbered in, that share a number, and that are delivered again: to
/// a live run, after a resume, after the end, and after the next attempt began.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_repetitions(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const auto expect = [&store, &report](std::string name, std::string expected) {
    return expect_values(*store, std::move(name), std::move(expected), report);
  };
  store->append(StoreScript().ordered(1).intended(1).started(1).events());
  const std::vector<StoreEvent> values =
      StoreScript()
          .intermediate(1, 1, "0.6")
          .intermediate(1, 0, "0.5")
          .intermediate(1, 3, "0.8")
          .intermediate(1, 0, "5.5")
          .intermediate(1, 3, "8.8")
          .final_value(1, "1")
          .events();
  const std::string all = "0i1=0.6 0i0=0.5 0i3=0.8 0i0=5.5 0i3=8.8 0f0=1 ";
  store->append(values);
  auto order = expect("values are kept in the order of arrival, also several under one sequence", all);
  co_await std::move(order);
  store->append(values);
  auto again = expect("a second delivery while the trial runs changes nothing", all);
  co_await std::move(again);

  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  const std::vector<double> numbers{0.6, 0.5, 0.8, 5.5, 8.8};
  const bool open = found.unfinished.size() == 1;
  report.check(4, "a snapshot has the numbers of an open run in the order of arrival, each once",
               open && found.unfinished[0].history == numbers);
  const auto is_known = [&found](const StoreEvent& event) {
    return found.unfinished[0].seen.contains(std::get<MetricReceived>(event).metric);
  };
  report.check(4, "a snapshot knows the values of an open run, so that a second delivery is recognized",
               open && std::all_of(values.begin(), values.end(), is_known));
  store->append(values);
  auto resumed = expect("a second delivery after a resume changes nothing", all);
  co_await std::move(resumed);

  store->append(StoreScript().ended(1).events());
  store->append(values);
  const std::vector<StoreEvent> late = StoreScript().intermediate(1, 2, "0.7").intermediate(1, 1, "6.6").events();
  store->append(late);
  store->append(late);
  auto ended =
      expect("after the end a second delivery changes nothing, and a new value is kept", all + "0i2=0.7 0i1=6.6 ");
  co_await std::move(ended);

  store->append(StoreScript().intended(1, 1).started(1, 1).intermediate(1, 0, "0.5", 1).events());
  store->append(values);
  const std::vector<StoreEvent> later = StoreScript().intermediate(1, 2, "7.7").events();
  store->append(later);
  store->append(later);
  auto next = expect("values of an earlier attempt are known, and a new one is kept with it",
                     all + "0i2=0.7 0i1=6.6 0i2=7.7 1i0=0.5 ");
  co_await std::move(next);
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_resume_checks.hpp

namespace nni::testing::detail {

/// Trials that wait for a retry, and trials that are opened again after their end.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_reopening(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> first = StoreScript().failed(1).ordered(2).intended(2).started(2).paused(2).events();
  store->append(first);
  auto closing = reopen();
  const ExperimentSnapshot before = co_await std::move(closing);
  report.check(
      3, "a trial that pauses before its next attempt is found with its pause and its retries",
      before.unfinished.size() == 1 && before.unfinished[0].retries == 2 &&
          before.unfinished[0].pause == std::chrono::seconds(3) &&
          before.unfinished[0].ended_at == StoreScript::time_of(2, 9));
  report.check(
      3, "and with its losses that cost no retry", before.unfinished.size() == 1 && before.unfinished[0].losses == 1);
  report.check(
      3, "and with the end of its last run",
      before.unfinished.size() == 1 && before.unfinished[0].last_end &&
          before.unfinished[0].last_end->kind == EndKind::lost &&
          before.unfinished[0].last_end->message == "the machine went away");

  const std::vector<StoreEvent> second = StoreScript().intended(1, 1).intended(2, 1).events();
  store->append(second);
  auto again = reopen();
  const ExperimentSnapshot live = co_await std::move(again);
  report.check(3, "an intent opens a trial that had ended",
               live.unfinished.size() == 2 && live.unfinished[0].attempts == 2 && live.unfinished[0].open_run &&
                   live.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0);
  report.check(3, "the retries that are used up outlive the next intent",
               live.unfinished.size() == 2 && live.unfinished[1].retries == 2 && live.unfinished[1].losses == 1);

  const std::vector<StoreEvent> end = StoreScript().started(1, 1).final_value(1, "0.5", 1).ended(1, 1).events();
  store->append(end);
  auto loading = store->load(TrialId{1});
  const std::optional<TrialJobDetail> trial = co_await std::move(loading);
  report.check(5, "what its first end left behind is gone",
               trial && trial->status == TrialJobStatus::succeeded && trial->attempts == 2 && !trial->signal &&
                   trial->exit_code == 0 && trial->message.empty() && trial->final_value == "0.5");
  auto counting = reopen();
  const ExperimentSnapshot after = co_await std::move(counting);
  report.check(3, "and it is counted once",
               after.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0 &&
                   after.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 1);

  const JobEnd stopped(EndKind::killed, 0, "stopped before it started");
  const std::vector<StoreEvent> third =
      StoreScript()
          .ordered(3)
          .intended(3)
          .started(3)
          .final_value(3, "0.5")
          .lost(3)
          .end(3, 0, stopped, TrialJobStatus::user_canceled, true)
          .events();
  store->append(third);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      auto resuming = reopen();
      co_await std::move(resuming);
    }
    auto reading = store->load(TrialId{3});
    const std::optional<TrialJobDetail> seen = co_await std::move(reading);
    report.check(
        5, "a trial that is ended between two attempts has the start of the last one, and no result",
        seen && seen->status == TrialJobStatus::user_canceled && seen->start_time == StoreScript::time_of(3, 2) &&
            !seen->final_value && seen->job == StoreScript::job_of(RunId{TrialId{3}, 0}));
  }

  std::vector<StoreEvent> spent =
      StoreScript()
          .ordered(4)
          .intended(4)
          .started(4)
          .paused(4)
          .intended(4, 1)
          .started(4, 1)
          .end(4, 1, JobEnd(EndKind::exited, 1), TrialJobStatus::failed, true)
          .intended(4, 2)
          .events();
  std::get<RunEnded>(spent[spent.size() - 2]).retries = 2;
  std::get<RunEnded>(spent[spent.size() - 2]).losses = 1;
  store->append(spent);
  auto beginning = reopen();
  const ExperimentSnapshot fresh = co_await std::move(beginning);
  report.check(
      3, "a trial that is opened again after its end has all of its retries",
      fresh.unfinished.size() == 2 && fresh.unfinished[1].trial.number == 4 && fresh.unfinished[1].attempts == 3 &&
          fresh.unfinished[1].retries == 0 && fresh.unfinished[1].losses == 0);

  // One that was to be opened again, and was stopped before that.
  const std::vector<StoreEvent> twice =
      StoreScript().failed(5).end(5, 0, stopped, TrialJobStatus::user_canceled, true).events();
  store->append(twice);
  auto last = reopen();
  const ExperimentSnapshot counted = co_await std::move(last);
  auto looking = store->load(TrialId{5});
  const std::optional<TrialJobDetail> ended = co_await std::move(looking);
  report.check(5, "a trial that ends twice is seen through its last end",
               ended && ended->status == TrialJobStatus::user_canceled && !ended->signal &&
                   ended->message == "stopped before it started" && ended->start_time == StoreScript::time_of(5, 2));
  report.check(3, "and it is counted once, by that",
               counted.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0 &&
                   counted.by_status[static_cast<std::size_t>(TrialJobStatus::user_canceled)] == 2);
}

/// Results from elsewhere.
template <class D, class Reopen>
awaitable<void> check_imports(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().imported(1, 0.5).succeeded(1, "0.5").imported(2, 0.25).events();
  store->append(events);
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  const std::vector<ResultImported>& results = found.imported;
  report.check(
      3, "imported results are found in their order, and are no trials",
      found.trials == 1 && results.size() == 2 && results[0].parameters == StoreScript::parameters_of(1) &&
          results[0].value == 0.5 && results[1].value == 0.25 && results[1].after == 1 &&
          results[1].history == std::vector<double>({0.1, 0.25}));
}

}  // namespace nni::testing::detail

// ---- nni/testing/detail/store_strength_checks.hpp

namespace nni::testing::detail {

/// What `written` and `synced` claim when they return.
/// @param reopen        closes the store and opens it again
/// @param count_beside  counts the recorded trials as another process sees them; may be empty
template <class D, class Reopen>
awaitable<void> check_strengths(std::optional<D>& store, Reopen reopen, std::function<std::size_t()> count_beside,
                                ConformanceReport& report) {
  constexpr std::uint64_t count = 20;
  std::size_t early = 0;
  for (std::uint64_t trial = 1; trial <= count; ++trial) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(trial, "0.5").events();
    const StorePosition at = store->append(events);
    if (trial % 2 == 0) {
      auto writing = store->written(at);
      co_await std::move(writing);
    } else {
      auto syncing = store->synced(at);
      co_await std::move(syncing);
    }
    if (count_beside && count_beside() != trial) ++early;
  }
  auto earlier = store->synced(StorePosition{1});
  co_await std::move(earlier);
  if (count_beside)
    report.check(2, "when written or synced returns, another process finds the events", early == 0,
                 std::to_string(early) + " times it did not");
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  report.check(2, "what was written or synced is there afterwards",
               found.trials == count && found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == count,
               std::to_string(found.trials) + " of " + std::to_string(count));
}

}  // namespace nni::testing::detail

// ---- nni/testing/data_store_conformance.hpp

namespace nni::testing {

/// What the suite may expect of a store, beside the promises.
struct StoreSetup {
  bool persistent = true;  ///< false: what was recorded lives in the object only
  /// Opens the records of an experiment beside the store that owns them, as another process can, and counts the trials
  /// in them; absent: not checked.
  std::function<std::size_t(const ExperimentId&)> count_beside{};
  std::function<void(const ExperimentId&)> damage{};  ///< makes a closed store unreadable; absent: not checked
  std::function<void()> break_writing{};  ///< lets every write fail as on a full disk from now on; absent: not checked
  std::function<void()> mend_writing{};   ///< the inverse
};

namespace detail {

template <DataStore D>
class StoreSuite {
 public:
  StoreSuite(const std::function<D()>& make, const StoreSetup& setup, ConformanceReport& report)
      : make_(make), setup_(setup), report_(report) {}

  void run() {
    one("new", &StoreSuite::is_new);
    one("positions", &StoreSuite::positions);
    one("strengths", &StoreSuite::strengths);
    one("snapshot", &StoreSuite::snapshot);
    one("retry", &StoreSuite::retry);
    one("reopening", &StoreSuite::reopening);
    one("imports", &StoreSuite::imports);
    one("second-delivery", &StoreSuite::second_delivery);
    one("final-values", &StoreSuite::final_values);
    one("reads", &StoreSuite::reads);
    one("pages", &StoreSuite::pages);
    one("best", &StoreSuite::best);
    one("close", &StoreSuite::closes);
    if (setup_.persistent) one("owner", &StoreSuite::has_one_owner);
    if (setup_.damage) one("damage", &StoreSuite::refuses_damage);
    if (setup_.break_writing) one("failure", &StoreSuite::survives_failures);
  }

 private:
  // What a case works on: a store that is open, and closed behind the case.
  class Case {
   public:
    Case(Context& around, ExperimentId what) : context(around), id(std::move(what)) {}
    Context& context;
    ExperimentId id;
    std::optional<D> store;
    ExperimentSnapshot first;
  };

  // Each case has an experiment of its own, so the cases do not see each other.
  void one(const char* name, awaitable<void> (StoreSuite::*body)(Case&)) {
    try {
      Runtime runtime;
      Case here(runtime.context(), ExperimentId("conformance-" + std::string(name)));
      runtime.run(async::with_timeout(guarded(here, body), std::chrono::seconds(30)));
    } catch (const std::exception& error) {
      report_.check(0, std::string("the case \"") + name + "\" runs to its end", false, error.what());
    }
  }

  awaitable<void> guarded(Case& here, awaitable<void> (StoreSuite::*body)(Case&)) {
    here.store.emplace(make_());
    auto opening = here.store->open(here.context, here.id);
    here.first = co_await std::move(opening);
    auto work = (this->*body)(here);
    co_await std::move(work);
    if (!here.store) co_return;
    auto closing = here.store->close();
    co_await std::move(closing);
  }

  // Closes a store and opens it again: another object where records outlive the object.
  awaitable<ExperimentSnapshot> reopened(Case& here) {
    auto closing = here.store->close();
    co_await std::move(closing);
    if (setup_.persistent) here.store.emplace(make_());
    auto opening = here.store->open(here.context, here.id);
    co_return co_await std::move(opening);
  }

  awaitable<void> release(Case& here) {
    auto closing = here.store->close();
    co_await std::move(closing);
    here.store.reset();
  }

  // The error with which a store refuses to open.
  awaitable<boost::system::error_code> refusal(D& store, Case& here) {
    boost::system::error_code code;
    try {
      auto opening = store.open(here.context, here.id);
      co_await std::move(opening);
    } catch (const boost::system::system_error& error) {
      code = error.code();
    }
    co_return code;
  }

  awaitable<void> is_new(Case& here) {
    const ExperimentSnapshot& found = here.first;
    report_.check(
        3, "a new experiment has an empty snapshot", !found.exists && found.trials == 0 && found.unfinished.empty());
    auto loading = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> nothing = co_await std::move(loading);
    report_.check(5, "an unknown trial is nothing", !nothing);
  }

  awaitable<void> positions(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().ordered(1).intended(1).started(1).events();
    const StorePosition first = here.store->append(std::span(events).first(1));
    const StorePosition all = here.store->append(std::span(events).subspan(1));
    const StorePosition none = here.store->append({});
    report_.check(1, "a position counts the events appended so far",
                  first.value == 1 && all.value == events.size() && none == all,
                  std::to_string(first.value) + ", " + std::to_string(all.value) + ", " + std::to_string(none.value));
    co_return;
  }

  awaitable<void> strengths(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    std::function<std::size_t()> count_beside;
    if (setup_.count_beside) count_beside = [this, &here] { return setup_.count_beside(here.id); };
    return check_strengths(here.store, reopen, std::move(count_beside), report_);
  }

  awaitable<void> snapshot(Case& here) {
    const std::vector<StoreEvent> events =
        StoreScript()
            .profile(here.id, ExperimentStatus::initialized, 3)
            .profile(here.id, ExperimentStatus::running, 5)
            .succeeded(1, "0.5")
            .succeeded(2, "0.25")
            .failed(3)
            .ordered(4)
            .ordered(5)
            .intended(5, 0, "alpha")
            .started(5)
            .intermediate(5, 0, "0.5")
            .intermediate(5, 1, "\"no number\"")
            .final_value(5, "{\"default\": 0.75, \"loss\": NaN}")
            .ordered(6)
            .intended(6)
            .events();
    here.store->append(events);
    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);

    const ProfileChanged expected = StoreScript::profile_of(here.id, ExperimentStatus::running, 5);
    const ProfileChanged& profile = found.profile;
    report_.check(3, "an experiment that was recorded exists", found.exists);
    report_.check(
        3, "the last profile is found as it was recorded",
        profile.id == expected.id && profile.name == expected.name && profile.params == expected.params &&
            profile.seed == expected.seed && profile.status == expected.status && profile.message == expected.message &&
            profile.exec_duration == expected.exec_duration && profile.start_time == expected.start_time &&
            profile.end_time == expected.end_time && profile.next_sequence == expected.next_sequence &&
            profile.log_directory == expected.log_directory && profile.settings == expected.settings);
    const auto count = [&found](TrialJobStatus status) { return found.by_status[static_cast<std::size_t>(status)]; };
    report_.check(3, "finished trials are counted by their state",
                  found.trials == 6 && count(TrialJobStatus::succeeded) == 2 && count(TrialJobStatus::failed) == 1);

    const std::vector<UnfinishedTrial>& open = found.unfinished;
    const bool complete =
        open.size() == 3 && open[0].trial.number == 4 && open[1].trial.number == 5 && open[2].trial.number == 6;
    report_.check(3, "trials that have not ended are listed in the order of their ids", complete);
    if (complete) {
      report_.check(3, "a trial that was only ordered has no run",
                    open[0].attempts == 0 && !open[0].open_run && open[0].parameters == StoreScript::parameters_of(4) &&
                        open[0].parameter.value == 3);
      const UnfinishedTrial& live = open[1];
      report_.check(
          3, "a run that was started is open, with its job and its place",
          live.attempts == 1 && live.open_run && live.open_run->started && live.open_run->run == RunId{TrialId{5}, 0} &&
              live.open_run->job == StoreScript::job_of(RunId{TrialId{5}, 0}) &&
              live.open_run->placement.node == "alpha" && live.open_run->placement.gpus == std::vector<int>(1, 2));
      report_.check(3, "its values come back in order, not a number where there was none",
                    live.history.size() == 2 && live.history[0] == 0.5 && std::isnan(live.history[1]) &&
                        live.final_value == "{\"default\": 0.75, \"loss\": NaN}");
      report_.check(3, "a run that was only intended is open and has no job",
                    open[2].open_run && !open[2].open_run->started && open[2].open_run->job.empty());
    }
  }

  awaitable<void> retry(Case& here) {
    const std::vector<StoreEvent> first =
        StoreScript()
            .ordered(1)
            .intended(1)
            .started(1)
            .intermediate(1, 0, "0.125")
            .final_value(1, "0.5")
            .lost(1)
            .events();
    here.store->append(first);
    auto waiting = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> between = co_await std::move(waiting);
    report_.check(5, "between two attempts a trial waits and has no result",
                  between && between->status == TrialJobStatus::waiting && !between->final_value && !between->end_time);

    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);
    report_.check(3, "a lost run is not open any more",
                  found.unfinished.size() == 1 && found.unfinished[0].attempts == 1 && !found.unfinished[0].open_run);

    const std::vector<StoreEvent> second =
        StoreScript().intended(1, 1).started(1, 1).intermediate(1, 0, "0.25", 1).events();
    here.store->append(second);
    auto again = reopened(here);
    const ExperimentSnapshot live = co_await std::move(again);
    report_.check(3, "an open run has the values of its own attempt only",
                  live.unfinished.size() == 1 && live.unfinished[0].attempts == 2 &&
                      live.unfinished[0].history == std::vector<double>(1, 0.25) && !live.unfinished[0].final_value);

    const std::vector<StoreEvent> end = StoreScript().final_value(1, "0.75", 1).ended(1, 1).events();
    here.store->append(end);
    auto loading = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> trial = co_await std::move(loading);
    report_.check(
        5, "a trial is seen through its last attempt",
        trial && trial->attempts == 2 && trial->status == TrialJobStatus::succeeded && trial->final_value == "0.75" &&
            trial->job == StoreScript::job_of(RunId{TrialId{1}, 1}) &&
            trial->tags == StoreScript::tags_of(RunId{TrialId{1}, 1}));
    auto listing = here.store->metrics(TrialId{1});
    const std::vector<Metric> values = co_await std::move(listing);
    std::string text;
    for (const Metric& metric : values) text += std::to_string(metric.run.attempt) + ":" + metric.value + " ";
    report_.check(
        5, "the values of all attempts are kept, attempt by attempt", text == "0:0.125 0:0.5 1:0.25 1:0.75 ", text);
  }

  awaitable<void> second_delivery(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_repetitions(here.store, reopen, report_);
  }

  awaitable<void> reopening(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_reopening(here.store, reopen, report_);
  }

  awaitable<void> imports(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_imports(here.store, reopen, report_);
  }

  awaitable<void> final_values(Case& here) {
    const auto reopen = [this, &here] { return reopened(here); };
    return check_final_values(here.store, reopen, report_);
  }

  awaitable<void> reads(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").failed(2).ordered(3).events();
    here.store->append(events);
    auto first = here.store->load(TrialId{1});
    const std::optional<TrialJobDetail> good = co_await std::move(first);
    const RunId run{TrialId{1}, 0};
    report_.check(
        5, "a read sees what was appended before it",
        good && good->trial == run.trial && good->attempts == 1 && good->status == TrialJobStatus::succeeded &&
            good->parameter.value == 0 && good->parameters == StoreScript::parameters_of(1) &&
            good->final_value == "0.5" && good->job == StoreScript::job_of(run));
    report_.check(
        5, "a trial comes back with the tags of its platform", good && good->tags == StoreScript::tags_of(run));
    report_.check(
        5, "a trial comes back with its times and its exit code",
        good && good->submit_time == StoreScript::time_of(1, 0) && good->start_time == StoreScript::time_of(1, 2) &&
            good->end_time == StoreScript::time_of(1, 9) && good->exit_code == 0);
    auto second = here.store->load(TrialId{2});
    const std::optional<TrialJobDetail> bad = co_await std::move(second);
    report_.check(5, "a failure comes back with its signal and its reason",
                  bad && bad->status == TrialJobStatus::failed && bad->signal == 9 && bad->message == "out of memory" &&
                      !bad->final_value && !bad->exit_code);
    auto third = here.store->load(TrialId{3});
    const std::optional<TrialJobDetail> waiting = co_await std::move(third);
    report_.check(
        5, "a trial that waits comes back without times of a run",
        waiting && waiting->status == TrialJobStatus::waiting && waiting->attempts == 0 && !waiting->start_time);
  }

  awaitable<void> pages(Case& here) {
    constexpr std::uint64_t count = 250;
    StoreScript script;
    for (std::uint64_t trial = 1; trial <= count; ++trial)
      if (trial % 10 == 0)
        script.failed(trial);
      else
        script.succeeded(trial, std::to_string(trial));
    here.store->append(script.events());

    TrialQuery query;
    query.limit = 60;
    std::uint64_t seen = 0;
    bool in_order = true;
    bool more = true;
    while (more) {
      auto reading = here.store->page(query);
      const TrialPage page = co_await std::move(reading);
      for (const TrialJobDetail& trial : page.trials) in_order = in_order && trial.trial.number == ++seen;
      in_order = in_order && page.trials.size() <= query.limit;
      query.after = TrialId{seen};
      more = page.more && !page.trials.empty();
    }
    report_.check(
        6, "pages give every trial once, in the order of ids", in_order && seen == count, std::to_string(seen));

    query.after = TrialId{100};
    query.status = TrialJobStatus::failed;
    query.limit = 15;
    auto reading = here.store->page(query);
    const TrialPage failures = co_await std::move(reading);
    report_.check(6, "a page of one state holds that state only, and says that it is the last one",
                  failures.trials.size() == 15 && !failures.more && failures.trials.front().trial.number == 110 &&
                      failures.trials.back().trial.number == 250);
  }

  awaitable<void> best(Case& here) { return check_best(*here.store, report_); }

  awaitable<void> closes(Case& here) {
    StoreScript script;
    for (std::uint64_t trial = 1; trial <= 300; ++trial) script.succeeded(trial, "0.5");
    here.store->append(script.events());
    auto reopening = reopened(here);
    const ExperimentSnapshot found = co_await std::move(reopening);
    report_.check(7, "close keeps what was appended and not waited for",
                  found.trials == 300 && found.unfinished.empty(), std::to_string(found.trials));
  }

  awaitable<void> has_one_owner(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
    const StorePosition at = here.store->append(events);

    D second = make_();
    auto intruding = refusal(second, here);
    const bool refused = Errc::in_use == co_await std::move(intruding);
    report_.check(3, "a store that is owned is refused", refused);
    auto keeping = here.store->synced(at);
    co_await std::move(keeping);
    auto releasing = release(here);
    co_await std::move(releasing);

    here.store.emplace(std::move(second));
    auto entering = here.store->open(here.context, here.id);
    const ExperimentSnapshot found = co_await std::move(entering);
    report_.check(7, "a closed store is free, and the refusal changed nothing", found.trials == 1);
  }

  awaitable<void> refuses_damage(Case& here) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
    here.store->append(events);
    auto releasing = release(here);
    co_await std::move(releasing);
    setup_.damage(here.id);
    D again = make_();
    auto entering = refusal(again, here);
    const bool refused = Errc::store_corrupt == co_await std::move(entering);
    report_.check(3, "a store that cannot be understood is refused", refused);
  }

  awaitable<void> survives_failures(Case& here) {
    if constexpr (StopsRetrying<D>) {
      auto work = wait_for_space(*here.store, setup_.break_writing, setup_.mend_writing, report_);
      co_await std::move(work);
    } else {
      auto work = fail_for_good(*here.store, setup_.break_writing, setup_.mend_writing, report_);
      co_await std::move(work);
    }
    auto releasing = code_of(release(here));  // it may say so once more
    co_await std::move(releasing);
    here.store.emplace(make_());
    auto entering = here.store->open(here.context, here.id);
    const ExperimentSnapshot found = co_await std::move(entering);
    report_.check(2, "what was synced before the failure is there", found.trials >= (StopsRetrying<D> ? 2U : 1U));
  }

  const std::function<D()>& make_;
  const StoreSetup& setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the promises of `nni::DataStore` that can be seen from outside, for any store.
///
/// Each case uses an experiment of its own, `conformance-<name>`, in a place that was empty before. The checks
/// carry the numbers of the promises.
///
/// @param make   makes a store that is not open; all of them share one place
/// @param setup  what else to expect
/// @returns      what was found
template <DataStore D>
[[nodiscard]] ConformanceReport check_data_store(const std::function<D()>& make, const StoreSetup& setup = {}) {
  ConformanceReport report;
  detail::StoreSuite<D>(make, setup, report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/flapping.hpp

namespace nni::testing {

/// The availability of a simulated platform, and counts of rejected requests. Shared by a test and its `Flapping` service.
struct Outage {
  bool away = false;         ///< the platform is unavailable: no starts, stops or queries
  bool accepts = false;      ///< accept a submission nevertheless, and then defer it (`EndKind::deferred`)
  std::size_t starts = 0;    ///< rejected or deferred submissions
  std::size_t cancels = 0;   ///< rejected cancellations
  std::size_t requests = 0;  ///< rejected queries of resources
};

/// A training service with simulated outages of its platform: each submission is rejected with
/// `Errc::connection_lost` or deferred, each cancellation and query of resources is rejected. Live runs continue.
///
/// It tests the reaction of an experiment to outages, for services whose own platform cannot be made to fail.
///
/// @tparam S  the service that does the work
template <TrainingService S>
class Flapping {
 public:
  using role = nni::role::training_service;
  using mount_type = typename S::mount_type;
  static constexpr std::string_view platform = S::platform;
  static constexpr bool ends_come_last = nni::ends_come_last<S>;  ///< as for the service

  /// @param service  the wrapped service
  /// @param outage   controls the availability
  Flapping(S service, std::shared_ptr<Outage> outage)
      : service_(std::move(service)), outage_(std::move(outage)), own_(std::make_unique<Own>()) {}

  /// @name Operations of a training service: forwarded, unless the platform is away.
  /// @{

  /// Returns the capabilities of the service.
  [[nodiscard]] Capabilities capabilities() const noexcept { return service_.capabilities(); }

  awaitable<void> start(Context& context) {
    clock_ = context.clock();
    return service_.start(context);
  }

  awaitable<ResourceSnapshot> resources() {
    refuse_if_away(outage_->requests);
    return service_.resources();
  }

  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    if (outage_->away && outage_->accepts) {
      ++outage_->starts;
      JobEnd end(EndKind::deferred, 0, "the platform is away");
      own_->events.emplace_back(JobEnded(form.run, std::move(end), clock_.now()));
      own_->changed.notify();
      co_return JobId();
    }
    refuse_if_away(outage_->starts);
    auto work = service_.submit_trial_job(std::move(form));
    co_return co_await std::move(work);
  }

  awaitable<void> cancel_trial_job(RunId run, StopReason reason) {
    refuse_if_away(outage_->cancels);
    return service_.cancel_trial_job(run, reason);
  }

  awaitable<JobEvent> next_event() {
    while (own_->events.empty()) {
      auto either = async::race(service_.next_event(), own_->changed.wait());
      auto first = co_await std::move(either);
      if (auto* event = std::get_if<0>(&first)) co_return std::move(*event);
    }
    JobEvent event = std::move(own_->events.front());
    own_->events.pop_front();
    co_return event;
  }

  awaitable<void> clean_up() { return service_.clean_up(); }
  /// @}

  /// @name Optional operations of a training service.
  /// @{

  /// Forwards `directory` and `id`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id)
    requires UsesExperimentDirectory<S>
  {
    service_.set_experiment_directory(directory, id);
  }
  /// Forwards `life` and `can_resume`.
  void set_experiment_life(const std::string& life, bool can_resume)
    requires UsesExperimentLife<S>
  {
    service_.set_experiment_life(life, can_resume);
  }
  /// Forwards `listener`.
  void on_trouble(TroubleListener listener)
    requires ReportsTrouble<S>
  {
    service_.on_trouble(std::move(listener));
  }
  /// Forwards the end of `run`.
  void recorded(RunId run)
    requires ReleasesRecordedRuns<S>
  {
    service_.recorded(run);
  }
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs)
    requires ResumableService<S>
  {
    return service_.adopt(std::move(runs));
  }
  awaitable<TrialMessage> next_message()
    requires CarriesMessages<S>
  {
    return service_.next_message();
  }
  awaitable<void> acknowledge(Receipt receipt)
    requires CarriesMessages<S>
  {
    return service_.acknowledge(receipt);
  }
  awaitable<void> send(RunId run, Parameters parameters)
    requires CarriesMessages<S>
  {
    return service_.send(run, std::move(parameters));
  }
  awaitable<void> settle(RunId run)
    requires CarriesMessages<S>
  {
    return service_.settle(run);
  }
  /// @}

 private:
  struct Own {
    std::deque<JobEvent> events;
    async::event changed;
  };

  void refuse_if_away(std::size_t& count) const {
    if (!outage_->away) return;
    ++count;
    throw Error(Errc::connection_lost, "the platform is away");
  }

  S service_;
  std::shared_ptr<Outage> outage_;
  std::unique_ptr<Own> own_;
  ClockRef clock_;
};

}  // namespace nni::testing

// ---- nni/testing/manual_clock.hpp

namespace nni::testing {

/// A clock that a test advances manually; models `Clock`.
///
/// Call `advance` or `run` from outside of the sleepers' context. Work on other
/// threads (`async::offload`) does not delay the time; a test that needs both waits for that work first.
/// @code
/// ManualClock clock;
/// Runtime runtime(RuntimeOptions{.clock = clock});
/// clock.attach(runtime.io());
/// clock.run(sleep_an_hour(runtime.context()));  // returns at once
/// @endcode
class ManualClock {
 public:
  /// @param start  initial wall time
  explicit ManualClock(TimePoint start = from_epoch_ms(1'700'000'000'000));

  /// @param context  of the sleepers
  /// @param start    initial wall time
  explicit ManualClock(boost::asio::io_context& context, TimePoint start = from_epoch_ms(1'700'000'000'000))
      : ManualClock(start) {
    attach(context);
  }

  ManualClock(const ManualClock&) = delete;
  ManualClock& operator=(const ManualClock&) = delete;
  ~ManualClock();

  /// Sets the context of the sleepers; required before the first advance, not for sleeping.
  void attach(boost::asio::io_context& context) noexcept { context_ = &context; }

  /// Returns the wall time, which advances with the steady time.
  [[nodiscard]] TimePoint now() const noexcept {
    return start_ + std::chrono::floor<std::chrono::milliseconds>(steady_now().time_since_epoch());
  }

  /// Returns the steady time.
  [[nodiscard]] SteadyPoint steady_now() const noexcept;

  /// Suspends until a test has advanced the time to the deadline.
  /// @throws boost::system::system_error  `operation_aborted` when canceled; the sleeper is removed then
  [[nodiscard]] awaitable<void> sleep_until(SteadyPoint deadline);

  /// Advances the time, stopping at each deadline on the way: resumes its sleepers and runs the context until nothing
  /// is ready, so that their work happens at the right time, and new sleepers are included.
  /// @param span  >= 0
  void advance(Duration span);

  /// Advances the time to the earliest deadline and runs the resumed sleepers.
  /// @returns false if there are no sleepers
  bool advance_to_next();

  /// Runs the context until nothing is ready, without advancing the time.
  void settle();

  /// Runs an awaitable to completion; whenever nothing is ready, advances the time to the earliest deadline. Without
  /// sleepers it waits for other threads and devices.
  /// @returns its result
  /// @throws  any exception of the work
  template <class T>
  T run(awaitable<T> work) {
    auto outcome = std::make_shared<async::detail::Outcome<T>>();
    drive(async::detail::capture(outcome, std::move(work)));
    return outcome->take();
  }

  /// Returns the number of sleepers.
  [[nodiscard]] std::size_t sleepers() const noexcept;

  /// Returns the earliest deadline of a sleeper.
  [[nodiscard]] std::optional<SteadyPoint> next_deadline() const;

 private:
  struct State;

  void drive(awaitable<void> work);
  void wake(SteadyPoint deadline);

  TimePoint start_;
  boost::asio::io_context* context_ = nullptr;
  std::shared_ptr<State> state_;
};

}  // namespace nni::testing

// ---- nni/testing/scheduler_conformance.hpp

namespace nni::testing {

/// Inputs of the suite for schedulers.
struct SchedulerSetup {
  ResourceSnapshot idle{};                ///< idle machines; empty: two machines with two devices each
  std::vector<ResourceRequest> wishes{};  ///< requests; empty: any, none, one device, two devices, and far too many
  std::size_t endless = 200;              ///< number of placements after which a scheduler counts as unlimited
};

namespace detail {

inline ResourceSnapshot two_machines() {
  ResourceSnapshot snapshot;
  for (const char* name : {"alpha", "beta"}) {
    Node& node = snapshot.nodes.emplace_back(name);
    for (int index = 0; index < 2; ++index)
      node.gpus.push_back({.index = index, .memory_bytes = 1ULL << 34, .free_memory_bytes = 1ULL << 34});
  }
  return snapshot;
}

inline std::string to_text(const ResourceRequest& want) {
  return want.gpus ? std::to_string(*want.gpus) + " devices" : "whatever there is";
}

inline std::string to_text(const PlacementResult& answer) {
  if (const auto* wait = std::get_if<Wait>(&answer)) return "Wait: " + wait->reason;
  if (const auto* never = std::get_if<Impossible>(&answer)) return "Impossible: " + never->reason;
  const Placement& placed = std::get<Placement>(answer);
  std::string text = "on \"" + placed.node + "\"";
  if (placed.gpus)
    for (const int device : *placed.gpus) text += " " + std::to_string(device);
  return text + (placed.gpus ? " visible" : "");
}

template <Scheduler S>
class SchedulerSuite {
 public:
  SchedulerSuite(const std::function<S()>& make, SchedulerSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {
    if (setup_.idle.nodes.empty()) setup_.idle = two_machines();
    if (setup_.wishes.empty())
      for (const int gpus : {-1, 0, 1, 2, 1000}) {
        ResourceRequest& wish = setup_.wishes.emplace_back();
        if (gpus >= 0) wish.gpus = gpus;
      }
  }

  void run() {
    report_.run_case(1, "equal histories", [this] { answers_equally(); });
    for (const ResourceRequest& wish : setup_.wishes) {
      report_.run_case(2, "a wish for " + to_text(wish), [this, &wish] { refuses_rightly(wish); });
      report_.run_case(4, "filling up with " + to_text(wish), [this, &wish] { counts(wish); });
    }
  }

 private:
  // Runs the same simulated history with two schedulers.
  void answers_equally() {
    S one = make_();
    S other = make_();
    CounterRandom random(seed(1), ParameterId{0});
    std::vector<Placement> held;
    bool equal = true;
    for (int step = 0; step < 300 && equal; ++step) {
      if (!held.empty() && random.uniform() < 0.4) {
        const auto gone = held.begin() + static_cast<std::ptrdiff_t>(random.below(held.size()));
        one.release(*gone);
        other.release(*gone);
        held.erase(gone);
        continue;
      }
      const ResourceRequest& wish = setup_.wishes[random.below(setup_.wishes.size())];
      const PlacementResult first = one.place(wish, setup_.idle);
      const PlacementResult second = other.place(wish, setup_.idle);
      equal = to_text(first) == to_text(second);
      if (!equal) seen_ = to_text(first) + " and " + to_text(second);
      if (const auto* placed = std::get_if<Placement>(&first)) held.push_back(*placed);
    }
    report_.check(1, "equal history and equal snapshot give an equal answer", equal, seen_);
  }

  void refuses_rightly(const ResourceRequest& wish) {
    S fresh = make_();
    const PlacementResult at_rest = fresh.place(wish, setup_.idle);
    report_.check(2, "on idle machines " + to_text(wish) + " is placed or impossible: waiting would never end",
                  !std::holds_alternative<Wait>(at_rest), to_text(at_rest));
    check_reason(at_rest);
    if (!std::holds_alternative<Placement>(at_rest)) {
      const PlacementResult again = fresh.place(wish, setup_.idle);
      report_.check(1, "a repeated request gets the same refusal", to_text(again) == to_text(at_rest), to_text(again));
      return;
    }
    ResourceSnapshot busy = setup_.idle;
    for (Node& node : busy.nodes)
      for (GpuDevice& device : node.gpus) {
        device.active = true;
        device.free_memory_bytes = 0;
      }
    S another = make_();
    const PlacementResult now = another.place(wish, busy);
    report_.check(2, to_text(wish) + " is not impossible because others use the devices now",
                  !std::holds_alternative<Impossible>(now), to_text(now));
    check_reason(now);
  }

  void counts(const ResourceRequest& wish) {
    S scheduler = make_();
    const std::vector<Placement> all = fill(scheduler, wish);
    if (all.empty()) return;
    for (const Placement& placed : all) check_shape(wish, placed);
    const bool endless = all.size() == setup_.endless;
    if (wish.gpus.value_or(0) > 0)
      report_.check(4, "allocated devices are reserved, so placements are limited: " + to_text(wish), !endless);
    if (endless) return;

    const PlacementResult full = scheduler.place(wish, setup_.idle);
    report_.check(2, to_text(wish) + " waits for reserved devices, which will be free again",
                  std::holds_alternative<Wait>(full), to_text(full));
    check_reason(full);
    scheduler.release(all.front());
    const std::vector<Placement> refilled = fill(scheduler, wish);
    report_.check(4, "a released placement is free again: " + to_text(wish), refilled.size() == 1,
                  std::to_string(refilled.size()));

    S resumed = make_();
    for (const Placement& placed : all) resumed.hold(placed);
    const PlacementResult held = resumed.place(wish, setup_.idle);
    report_.check(4, "a placement passed to hold is reserved: " + to_text(wish), std::holds_alternative<Wait>(held),
                  to_text(held));
    for (const Placement& placed : all) resumed.release(placed);
    const std::size_t again = fill(resumed, wish).size();
    report_.check(4, "a placement that was held and released is free: " + to_text(wish), again == all.size(),
                  std::to_string(again) + " of " + std::to_string(all.size()));
  }

  std::vector<Placement> fill(S& scheduler, const ResourceRequest& wish) {
    std::vector<Placement> all;
    while (all.size() < setup_.endless) {
      PlacementResult answer = scheduler.place(wish, setup_.idle);
      auto* placed = std::get_if<Placement>(&answer);
      if (placed == nullptr) break;
      all.push_back(std::move(*placed));
    }
    return all;
  }

  void check_shape(const ResourceRequest& wish, const Placement& placed) {
    const auto& nodes = setup_.idle.nodes;
    const auto node =
        std::find_if(nodes.begin(), nodes.end(), [&](const Node& one) { return one.name == placed.node; });
    report_.check(5, "a placement names a machine of the snapshot, or none", placed.node.empty() || node != nodes.end(),
                  to_text(PlacementResult(placed)));
    if (!wish.gpus) return;
    const std::vector<int> devices = placed.gpus.value_or(std::vector<int>{-1});
    bool known = true;
    for (const int device : devices)
      known =
          known && node != nodes.end() &&
          std::any_of(node->gpus.begin(), node->gpus.end(), [&](const GpuDevice& one) { return one.index == device; });
    const std::set<int> different(devices.begin(), devices.end());
    report_.check(
        5, "it has as many different devices as requested: " + to_text(wish),
        placed.gpus && different.size() == static_cast<std::size_t>(*wish.gpus) && devices.size() == different.size() &&
            (known || devices.empty()),
        to_text(PlacementResult(placed)));
  }

  void check_reason(const PlacementResult& answer) {
    if (std::holds_alternative<Placement>(answer)) return;
    const auto* wait = std::get_if<Wait>(&answer);
    const std::string& reason = wait != nullptr ? wait->reason : std::get<Impossible>(answer).reason;
    report_.check(3, "a refusal has a reason with numbers", reason.find_first_of("0123456789") != std::string::npos,
                  to_text(answer));
  }

  const std::function<S()>& make_;
  SchedulerSetup setup_;
  ConformanceReport& report_;
  std::string seen_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Scheduler` for any scheduler.
///
/// The checks carry the numbers of the promises.
///
/// @param make   returns a new scheduler without placements, always with the same settings
/// @returns      the results of all checks
template <Scheduler S>
[[nodiscard]] ConformanceReport check_scheduler(const std::function<S()>& make, SchedulerSetup setup = {}) {
  ConformanceReport report;
  detail::SchedulerSuite<S>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/storage_conformance.hpp

#include <fstream>

namespace nni::testing {

/// Inputs of the suite for storages.
struct StorageSetup {
  std::filesystem::path scratch{};  ///< local directory for files to upload; empty: a temporary one
  std::size_t large = 1 << 20;      ///< size in bytes of the file that is replaced during reads
};

namespace detail {

template <Storage S>
class StorageSuite {
 public:
  StorageSuite(const std::function<S()>& make, StorageSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {}

  void run() {
    const bool temporary = setup_.scratch.empty();
    if (temporary)
      setup_.scratch = std::filesystem::temp_directory_path() / ("nni-conformance-" + ExperimentId::random().value);
    std::filesystem::create_directories(setup_.scratch);
    one(1, "files", &StorageSuite::files);
    one(1, "directories", &StorageSuite::directories);
    one(1, "a failed upload", &StorageSuite::failed_upload);
    one(1, "replacing", &StorageSuite::replaces_whole);
    one(2, "reading", &StorageSuite::reads);
    one(3, "listing", &StorageSuite::lists);
    one(4, "removing", &StorageSuite::removes);
    one(5, "leaving the root", &StorageSuite::keeps_inside);
    if constexpr (std::same_as<typename S::mount_type, HostPath>) one(6, "mount", &StorageSuite::mounts);
    if (temporary) std::filesystem::remove_all(setup_.scratch);
  }

 private:
  void one(int promise, const char* name, awaitable<void> (StorageSuite::*body)(S&, Context&)) {
    report_.run_case(promise, name, [this, body] {
      S storage = make_();
      Runtime runtime;
      runtime.run(async::with_timeout(guarded(storage, runtime.context(), body), std::chrono::seconds(60)));
    });
  }

  // Each case has a separate directory in the storage, which is removed afterwards.
  awaitable<void> guarded(S& storage, Context& context, awaitable<void> (StorageSuite::*body)(S&, Context&)) {
    auto opening = storage.open(context);
    co_await std::move(opening);
    std::exception_ptr failure;
    try {
      auto work = (this->*body)(storage, context);
      co_await std::move(work);
    } catch (...) {
      failure = std::current_exception();
    }
    auto clearing = storage.remove(RemotePath("conformance"));
    co_await std::move(clearing);
    auto closing = storage.close();
    co_await std::move(closing);
    if (failure) std::rethrow_exception(failure);
  }

  std::filesystem::path local(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = setup_.scratch / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return path;
  }

  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  static RemotePath remote(const std::string& name) { return RemotePath("conformance/" + name); }

  static awaitable<void> send(S& storage, std::filesystem::path from, std::string name) {
    auto sending = storage.upload(std::move(from), remote(name));
    co_await std::move(sending);
  }

  static awaitable<std::string> whole(S& storage, std::string name) {
    auto reading = storage.read(remote(name), 0, std::size_t{1} << 24);
    co_return co_await std::move(reading);
  }

  template <class T>
  static awaitable<boost::system::error_code> code_of(awaitable<T> work) {
    boost::system::error_code code;
    try {
      co_await std::move(work);
    } catch (const boost::system::system_error& error) {
      code = error.code();
    }
    co_return code;
  }

  awaitable<void> files(S& storage, Context&) {
    std::string text(200'000, '\0');
    for (std::size_t at = 0; at < text.size(); ++at) text[at] = static_cast<char>(at * 31 % 256);
    auto sending = send(storage, local("binary", text), "deep/down/binary");
    co_await std::move(sending);
    auto reading = whole(storage, "deep/down/binary");
    const std::string back = co_await std::move(reading);
    report_.check(1, "a file comes back byte for byte", back == text, std::to_string(back.size()) + " bytes");
    const std::filesystem::path target = setup_.scratch / "back" / "binary";
    std::filesystem::create_directories(target.parent_path());
    auto fetching = storage.download(remote("deep/down/binary"), target);
    co_await std::move(fetching);
    report_.check(1, "and can be downloaded", content(target) == text);
    auto again = send(storage, local("binary", "short"), "deep/down/binary");
    co_await std::move(again);
    auto reading_again = whole(storage, "deep/down/binary");
    const std::string replaced = co_await std::move(reading_again);
    report_.check(1, "a second upload takes the place of the first", replaced == "short", replaced.substr(0, 40));
  }

  awaitable<void> directories(S& storage, Context&) {
    local("tree/one.txt", "1");
    local("tree/below/two.txt", "2");
    auto sending = send(storage, setup_.scratch / "tree", "tree");
    co_await std::move(sending);
    auto reading = whole(storage, "tree/below/two.txt");
    const std::string two = co_await std::move(reading);
    report_.check(1, "a directory is uploaded with everything in it", two == "2", two);
    const std::filesystem::path target = setup_.scratch / "tree-back";
    auto fetching = storage.download(remote("tree"), target);
    co_await std::move(fetching);
    report_.check(1, "and can be downloaded as a directory",
                  content(target / "one.txt") == "1" && content(target / "below" / "two.txt") == "2");
  }

  awaitable<void> failed_upload(S& storage, Context&) {
    auto sending = send(storage, local("kept", "kept"), "kept");
    co_await std::move(sending);
    auto failing = code_of(send(storage, setup_.scratch / "there-is-no-such-file", "kept"));
    const bool refused = Errc::not_found == co_await std::move(failing);
    report_.check(1, "uploading a file that does not exist is Errc::not_found", refused);
    auto reading = whole(storage, "kept");
    const std::string back = co_await std::move(reading);
    report_.check(1, "an upload that fails leaves the destination as it was", back == "kept", back);
  }

  // Reads a file repeatedly while it is replaced.
  awaitable<void> replaces_whole(S& storage, Context& context) {
    auto first = send(storage, local("large", std::string(setup_.large, 'a')), "large");
    co_await std::move(first);
    bool replaced = false;
    bool torn = false;
    async::task_group group(context);
    for (int reader = 0; reader < 2; ++reader) group.spawn(watch(storage, replaced, torn));
    auto second = send(storage, local("large", std::string(setup_.large, 'b')), "large");
    std::exception_ptr failure;
    try {
      co_await std::move(second);
    } catch (...) {
      failure = std::current_exception();
    }
    replaced = true;
    auto all = group.join();
    co_await std::move(all);
    if (failure) std::rethrow_exception(failure);
    report_.check(1, "a read during a replacement returns the old or the new file, complete", !torn);
  }

  awaitable<void> watch(S& storage, const bool& replaced, bool& torn) {
    const auto executor = co_await boost::asio::this_coro::executor;
    while (!replaced) {
      auto reading = whole(storage, "large");
      const std::string seen = co_await std::move(reading);
      if (seen.size() != setup_.large || seen.front() != seen.back()) torn = true;
      // A storage that never suspends would block the upload.
      auto turn = boost::asio::post(executor, boost::asio::use_awaitable);
      co_await std::move(turn);
    }
  }

  awaitable<void> reads(S& storage, Context&) {
    auto sending = send(storage, local("ten", "0123456789"), "ten");
    co_await std::move(sending);
    std::string seen;
    for (const auto& [offset, length] : {std::pair{2, 3}, {8, 100}, {10, 5}, {1000, 5}, {0, 0}}) {
      auto reading = storage.read(remote("ten"), static_cast<std::uint64_t>(offset), static_cast<std::size_t>(length));
      seen += co_await std::move(reading);
      seen += "|";
    }
    report_.check(2, "a read past the end returns what exists, an empty string at the end", seen == "234|89||||", seen);
    auto missing = code_of(storage.read(remote("nothing"), 0, 1));
    const bool refused = Errc::not_found == co_await std::move(missing);
    report_.check(2, "reading a file that does not exist is Errc::not_found", refused);
    auto fetching = code_of(storage.download(remote("nothing"), setup_.scratch / "nothing"));
    const bool refused_too = Errc::not_found == co_await std::move(fetching);
    report_.check(2, "and so is downloading it", refused_too);
  }

  awaitable<void> lists(S& storage, Context&) {
    for (const char* name : {"list/b", "list/a", "list/c/inside", "list/10", "list/9"}) {
      auto sending = send(storage, local("listed", "four"), name);
      co_await std::move(sending);
    }
    auto listing = storage.list(remote("list"));
    const std::vector<FileInfo> entries = co_await std::move(listing);
    std::string seen;
    for (const FileInfo& entry : entries) {
      seen += entry.name;
      seen += entry.directory ? "/ " : ":" + std::to_string(entry.size) + " ";
    }
    report_.check(3, "a directory is listed in the order of names, with sizes", seen == "10:4 9:4 a:4 b:4 c/ ", seen);
    auto missing = code_of(storage.list(remote("no-directory")));
    const bool refused = Errc::not_found == co_await std::move(missing);
    report_.check(3, "listing a directory that does not exist is Errc::not_found", refused);
  }

  awaitable<void> removes(S& storage, Context&) {
    for (const char* name : {"gone/one", "gone/below/two", "gone-not"}) {
      auto sending = send(storage, local("removed", "text"), name);
      co_await std::move(sending);
    }
    auto nothing = code_of(storage.remove(remote("never-was")));
    const bool accepted = !co_await std::move(nothing);
    report_.check(4, "removing what does not exist succeeds", accepted);
    auto removing = storage.remove(remote("gone"));
    co_await std::move(removing);
    auto below = code_of(whole(storage, "gone/below/two"));
    const bool empty = Errc::not_found == co_await std::move(below);
    report_.check(4, "a directory is removed with everything in it", empty);
    auto beside = code_of(whole(storage, "gone-not"));
    const bool kept = !co_await std::move(beside);
    report_.check(4, "and nothing else", kept);
  }

  awaitable<void> keeps_inside(S& storage, Context&) {
    const std::filesystem::path file = local("outside", "text");
    std::string leaving;
    for (const char* name : {"..", "../outside", "a/../../outside", "/etc/passwd"}) {
      const RemotePath path{std::string(name)};
      auto sending = code_of(storage.upload(file, path));
      if (Errc::storage_failed != co_await std::move(sending)) leaving += "upload to " + path.value + "; ";
      auto fetching = code_of(storage.download(path, setup_.scratch / "fetched"));
      if (Errc::storage_failed != co_await std::move(fetching)) leaving += "download of " + path.value + "; ";
      auto reading = code_of(storage.read(path, 0, 1));
      if (Errc::storage_failed != co_await std::move(reading)) leaving += "read of " + path.value + "; ";
      auto listing = code_of(storage.list(path));
      if (Errc::storage_failed != co_await std::move(listing)) leaving += "list of " + path.value + "; ";
    }
    report_.check(5, "a path that leaves the root is Errc::storage_failed", leaving.empty(), leaving);
  }

  awaitable<void> mounts(S& storage, Context&) {
    auto sending = send(storage, local("mounted", "seen"), "mounted");
    co_await std::move(sending);
    const HostPath place = storage.mount(TrialId{1});
    report_.check(6, "a trial finds the files below the path that mount gives",
                  content(place.path / "conformance" / "mounted") == "seen", place.path.string());
  }

  const std::function<S()>& make_;
  StorageSetup setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Storage` for any storage.
///
/// It uses the directory `conformance` of the storage and removes it after each case. The checks carry the
/// numbers of the promises.
///
/// @param make   returns a storage that is not open, always at the same place
/// @param setup  local files and sizes
/// @returns      the results of all checks
template <Storage S>
[[nodiscard]] ConformanceReport check_storage(const std::function<S()>& make, StorageSetup setup = {}) {
  ConformanceReport report;
  detail::StorageSuite<S>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/transport_conformance.hpp

namespace nni::testing {

/// The simulated trial of the suite for transports. The functions receive the result of `environment`, block, and are
/// called from several threads.
struct TransportTrial {
  /// Reports these values, in order, as a trial would; returns when the trial could continue.
  std::function<void(const EnvironmentVariables&, const std::vector<Metric>&)> report{};
  std::function<void(const EnvironmentVariables&)> report_garbage{};  ///< reports an unreadable value
  /// Requests the parameters of a phase and waits for them; absent if the transport does not deliver parameters.
  std::function<Parameters(const EnvironmentVariables&, unsigned phase)> ask{};
  bool waits = true;                          ///< `report` returns only after the values are acknowledged
  bool multi_phase = true;                    ///< a running trial accepts further parameters
  Duration limit = std::chrono::seconds(20);  ///< timeout of one case, which detects missing messages
};

namespace detail {

template <class T, Storage Store>
class TransportSuite {
 public:
  TransportSuite(const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial,
                 ConformanceReport& report)
      : make_(make), make_store_(make_store), trial_(trial), report_(report) {}

  void run() {
    one(8, "open and close", &TransportSuite::opens_and_closes);
    if constexpr (TrialChannel<T>) {
      one(4, "values", &TransportSuite::values);
      one(2, "acknowledge", &TransportSuite::acknowledges);
      one(3, "settle", &TransportSuite::settles);
      one(4, "canceled reader", &TransportSuite::reader_is_cancelled);
      one(5, "garbage", &TransportSuite::garbage);
      if (trial_.ask) one(9, "parameters", &TransportSuite::parameters);
      if (trial_.ask && trial_.multi_phase) one(6, "phases", &TransportSuite::phases);
      one(10, "closed reader", &TransportSuite::closes_its_reader);
      if constexpr (ResumableChannel<T>) one(11, "resume", &TransportSuite::resumes);
    }
  }

 private:
  // The objects of a case.
  class Case {
   public:
    Case(Context& around, T tested, Store files)
        : context(around), transport(std::move(tested)), store(std::move(files)), trials(around) {}
    Context& context;
    T transport;
    Store store;
    async::task_group trials;  // concurrent actions of trials
  };
  static constexpr RunId first{TrialId{3}, 0};
  static constexpr RunId second{TrialId{4}, 2};

  void one(int promise, const char* name, awaitable<void> (TransportSuite::*body)(Case&)) {
    report_.run_case(promise, name, [this, body] {
      Runtime runtime;
      Case here(runtime.context(), make_(), make_store_());
      runtime.run(guarded(here, body));
    });
  }

  awaitable<void> guarded(Case& here, awaitable<void> (TransportSuite::*body)(Case&)) {
    auto mounting = here.store.open(here.context);
    co_await std::move(mounting);
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    std::exception_ptr failure;
    try {
      auto limited = async::with_timeout((this->*body)(here), trial_.limit);
      co_await std::move(limited);
    } catch (...) {
      failure = std::current_exception();
    }
    auto closing = here.transport.close();
    co_await std::move(closing);
    // Ends whatever a failed case has left waiting.
    try {
      if (failure) here.trials.cancel();
      auto ending = here.trials.join();
      co_await std::move(ending);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
    auto leaving = here.store.close();
    co_await std::move(leaving);
    if (failure) std::rethrow_exception(failure);
  }

  // The actions of the experiment before it submits a run.
  awaitable<EnvironmentVariables> begin(Case& here, RunId run) {
    TrialJobForm form;
    form.run = run;
    form.parameter = ParameterId{run.trial.sequence()};
    form.parameters = ParametersWriter{}.add("phase", 0).finish();
    if (trial_.multi_phase) form.environment["MULTI_PHASE"] = "true";
    if constexpr (PreparesFiles<T>) {
      auto preparing = here.transport.prepare(form);
      co_await std::move(preparing);
    } else if constexpr (PreparesRuns<T>) {
      here.transport.prepare(form);
    }
    EnvironmentVariables environment = here.transport.environment(run);
    report_.check(8, "the environment of a run stays the same", environment == here.transport.environment(run));
    for (const auto& [name, value] : form.environment) environment[name] = value;
    co_return environment;
  }

  static std::vector<Metric> intermediates(RunId run, std::uint32_t from, std::uint32_t count) {
    std::vector<Metric> values;
    for (std::uint32_t index = from; index < from + count; ++index)
      values.emplace_back(run, MetricKind::intermediate, index, std::to_string(index) + ".5", TimePoint{});
    return values;
  }

  awaitable<void> report(Case& here, EnvironmentVariables environment, std::vector<Metric> values) {
    auto work =
        async::offload(here.context.pool(), [this, environment = std::move(environment), values = std::move(values)] {
          trial_.report(environment, values);
        });
    co_await std::move(work);
  }

  awaitable<void> note(awaitable<void> work, bool& done) {
    co_await std::move(work);
    done = true;
  }

  // Long enough to detect an early answer.
  static awaitable<void> moment(Case& here) { return here.context.clock().sleep_for(std::chrono::milliseconds(50)); }

  awaitable<TrialMessage> take(Case& here, bool acknowledge = true) {
    auto next = here.transport.next_message();
    TrialMessage message = co_await std::move(next);
    if (acknowledge) {
      auto answering = here.transport.acknowledge(message.receipt);
      co_await std::move(answering);
    }
    co_return message;
  }

  awaitable<void> opens_and_closes(Case& here) {
    if constexpr (TrialChannel<T>) {
      auto beginning = begin(here, first);
      const EnvironmentVariables environment = co_await std::move(beginning);
      report_.check(8, "a trial gets an address to report to", !environment.empty());
    } else {
      report_.check(8, "the environment of a run stays the same",
                    here.transport.environment(first) == here.transport.environment(first));
    }
    co_return;
  }

  awaitable<void> values(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables one = co_await std::move(beginning);
    auto another = begin(here, second);
    const EnvironmentVariables two = co_await std::move(another);
    std::vector<Metric> reported = intermediates(first, 0, 3);
    reported.emplace_back(first, MetricKind::final, 0, "0.75", TimePoint{});
    here.trials.spawn(report(here, one, reported));
    here.trials.spawn(report(here, two, intermediates(second, 0, 2)));
    std::string heard_one;
    std::string heard_two;
    for (int count = 0; count < 6; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      const Metric& metric = message.metric;
      (metric.run == first ? heard_one : heard_two) +=
          std::string(to_string(metric.kind)) + std::to_string(metric.sequence) + "=" + metric.value + " ";
      report_.check(1, "the run comes from the channel", metric.run == first || metric.run == second);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(4, "values of one run come in its order, with kind and sequence",
                  heard_one == "PERIODICAL0=0.5 PERIODICAL1=1.5 PERIODICAL2=2.5 FINAL0=0.75 ", heard_one);
    report_.check(4, "values of another run are its own", heard_two == "PERIODICAL0=0.5 PERIODICAL1=1.5 ", heard_two);
  }

  awaitable<void> acknowledges(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    bool answered = false;
    here.trials.spawn(note(report(here, environment, intermediates(first, 0, 1)), answered));
    auto taking = take(here, false);
    const TrialMessage message = co_await std::move(taking);
    auto early = moment(here);
    co_await std::move(early);
    if (trial_.waits) report_.check(2, "a trial gets no answer before its value is acknowledged", !answered);
    const bool before = answered;
    std::string refused;
    try {
      constexpr Receipt nobodys{0xffff'ffff'ffff};
      auto unknown = here.transport.acknowledge(nobodys);
      co_await std::move(unknown);
    } catch (const std::exception& error) {
      refused = error.what();
    }
    auto mistaken = moment(here);
    co_await std::move(mistaken);
    report_.check(2, "an unknown receipt is ignored: it is no error and acknowledges no message",
                  refused.empty() && answered == before, refused);
    auto answering = here.transport.acknowledge(message.receipt);
    co_await std::move(answering);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(2, "a trial gets its answer when its value is acknowledged", answered);
  }

  awaitable<void> settles(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(report(here, environment, intermediates(first, 0, 2)));
    if (!trial_.waits) {
      auto written = here.trials.join();
      co_await std::move(written);
    }
    auto hearing = take(here);
    const TrialMessage heard = co_await std::move(hearing);
    report_.check(4, "the first value comes first", heard.metric.sequence == 0);
    if (trial_.waits) {
      // Its other value was sent when the first was taken, or is acknowledged like any late one.
      auto last = take(here);
      co_await std::move(last);
      auto written = here.trials.join();
      co_await std::move(written);
      bool returned = true;
      try {
        auto settling = async::with_timeout(here.transport.settle(first), trial_.limit / 2);
        co_await std::move(settling);
      } catch (const Error& error) {
        if (error.code() != make_error_code(Errc::timed_out)) throw;
        returned = false;
      }
      report_.check(3, "settling a run whose values were taken returns", returned);
      co_return;
    }
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    auto waiting = moment(here);
    co_await std::move(waiting);
    report_.check(3, "settling waits until the values were taken", !settled);
    auto last = take(here);
    const TrialMessage message = co_await std::move(last);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(3, "settling returns when the values were taken", settled && message.metric.sequence == 1);
  }

  awaitable<void> reader_is_cancelled(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    std::vector<TrialMessage> heard;
    const SteadyPoint until = here.context.clock().steady_now() + trial_.limit / 2;
    for (int round = 0; heard.size() < 3 && here.context.clock().steady_now() < until; ++round) {
      // The first rounds are canceled without a message, the others when one may just have arrived.
      if (round == 2) here.trials.spawn(report(here, environment, intermediates(first, 0, 3)));
      try {
        auto limited = async::with_timeout(here.transport.next_message(), std::chrono::milliseconds(5));
        heard.push_back(co_await std::move(limited));
      } catch (const Error& error) {
        if (error.code() != make_error_code(Errc::timed_out)) throw;
        continue;
      }
      auto answering = here.transport.acknowledge(heard.back().receipt);
      co_await std::move(answering);
    }
    while (heard.size() < 3) {
      auto taking = take(here);
      heard.push_back(co_await std::move(taking));
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    bool complete = true;
    for (std::uint32_t index = 0; index < 3; ++index) complete = complete && heard[index].metric.sequence == index;
    report_.check(4, "a canceled next_message loses nothing", complete);
  }

  awaitable<void> garbage(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    here.trials.spawn(nonsense(here, environment));
    std::string heard;
    for (int count = 0; count < 3; ++count) {
      auto taking = take(here);
      const TrialMessage message = co_await std::move(taking);
      heard += message.kind == TrialMessage::Kind::garbage ? "garbage " : message.metric.value + " ";
      report_.check(5, "garbage has its run", message.metric.run == first);
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(
        5, "unreadable content is delivered as garbage, and loses no value", heard == "0.5 garbage 1.5 ", heard);
  }

  awaitable<void> nonsense(Case& here, EnvironmentVariables environment) {
    auto before = report(here, environment, intermediates(first, 0, 1));
    co_await std::move(before);
    auto work = async::offload(here.context.pool(), [this, environment] { trial_.report_garbage(environment); });
    co_await std::move(work);
    auto behind = report(here, environment, intermediates(first, 1, 1));
    co_await std::move(behind);
  }

  awaitable<Parameters> asked(Case& here, EnvironmentVariables environment, unsigned phase) {
    auto work = async::offload(here.context.pool(), [this, environment = std::move(environment), phase] {
      return trial_.ask(environment, phase);
    });
    co_return co_await std::move(work);
  }

  awaitable<void> parameters(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto asking = asked(here, environment, 0);
    const Parameters got = co_await std::move(asking);
    report_.check(9, "a run gets the parameters of its form", got.find<int>("phase") == 0, got.text());
  }

  awaitable<void> phases(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    for (unsigned phase = 0; phase < 3; ++phase) {
      auto asking = asked(here, environment, phase);
      const Parameters got = co_await std::move(asking);
      report_.check(6, "further parameters arrive one by one", got.find<unsigned>("phase") == phase, got.text());
      auto sending = here.transport.send(first, ParametersWriter{}.add("phase", phase + 1).finish());
      co_await std::move(sending);
    }
  }

  awaitable<void> closes_its_reader(Case& here) {
    bool closed = false;
    here.trials.spawn(until_closed(here, closed));
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(10, "a pending next_message ends with Errc::closed", closed);
  }

  awaitable<void> until_closed(Case& here, bool& closed) {
    try {
      auto next = here.transport.next_message();
      co_await std::move(next);
    } catch (const Error& error) {
      closed = error.code() == make_error_code(Errc::closed);
    }
  }

  awaitable<void> resumes(Case& here) {
    auto beginning = begin(here, first);
    const EnvironmentVariables environment = co_await std::move(beginning);
    auto before = report(here, environment, intermediates(first, 0, 2));
    co_await std::move(before);
    auto taking = take(here);
    co_await std::move(taking);
    auto closing = here.transport.close();
    co_await std::move(closing);
    auto meanwhile = report(here, environment, intermediates(first, 2, 1));
    co_await std::move(meanwhile);

    here.transport = make_();
    auto opening = here.transport.open(here.context, here.store);
    co_await std::move(opening);
    here.transport.resume(first);
    bool settled = false;
    here.trials.spawn(note(here.transport.settle(first), settled));
    std::vector<bool> seen(3, false);
    while (!(seen[1] && seen[2])) {
      auto next = take(here);
      const TrialMessage message = co_await std::move(next);
      seen.at(message.metric.sequence) = true;
    }
    auto ending = here.trials.join();
    co_await std::move(ending);
    report_.check(11, "values reported without a manager are delivered to the next one", seen[1] && seen[2] && settled);
  }

  const std::function<T()>& make_;
  const std::function<Store()>& make_store_;
  const TransportTrial& trial_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::TrialChannel` and `nni::MetricTransportOver`. For a
/// transport that leaves the messages to the service, only opening and closing.
///
/// Each case creates a transport and a storage. The checks carry the numbers of the promises.
///
/// @param make        returns a transport that is ready to be opened
/// @param make_store  returns an empty storage
/// @param trial       simulates the trial
template <class T, Storage Store>
[[nodiscard]] ConformanceReport check_metric_transport(
    const std::function<T()>& make, const std::function<Store()>& make_store, const TransportTrial& trial) {
  ConformanceReport report;
  detail::TransportSuite<T, Store>(make, make_store, trial, report).run();
  return report;
}

}  // namespace nni::testing

// ---- nni/testing/tuner_conformance.hpp

namespace nni::testing {

/// Inputs of the suite for tuners.
struct TunerSetup {
  SearchSpace space{};      ///< search space; empty: one with numbers, integers, choices and a conditional branch
  SearchSpace other{};      ///< second space, for `update_search_space`; empty: the same keys with other limits
  std::size_t rounds = 40;  ///< number of suggestions per case
};

namespace detail {

inline SearchSpace space_for_tuners(double from, double to) {
  return SearchSpace{loguniform("rate", 1e-5, 1.0), randint("depth", 1, 9), uniform("share", from, to),
                     choice("optimizer", {branch("sgd", {uniform("momentum", 0.0, 1.0)}), branch("adam")})};
}

template <Tuner T>
class TunerSuite {
 public:
  TunerSuite(const std::function<T()>& make, TunerSetup setup, ConformanceReport& report)
      : make_(make), setup_(std::move(setup)), report_(report) {
    if (setup_.space.empty()) setup_.space = space_for_tuners(0.0, 1.0);
    if (setup_.other.empty()) setup_.other = space_for_tuners(2.0, 3.0);
  }

  void run() {
    report_.run_case(1, "suggestions", [this] { fits_the_space(); });
    report_.run_case(2, "equal histories", [this] { repeats_itself(); });
    report_.run_case(3, "a space of six configurations", [this] { ends_properly(); });
    report_.run_case(4, "trials without a value", [this] { takes_every_outcome(); });
    report_.run_case(4, "results out of order", [this] { takes_any_order(); });
    report_.run_case(5, "another space", [this] { follows_the_space(); });
    report_.run_case(6, "resume", [this] { resumes(); });
  }

 private:
  static TrialOutcome outcome_of(std::uint64_t k, Parameters parameters, TrialJobStatus status,
                                 std::optional<double> value) {
    TrialOutcome outcome;
    outcome.trial = TrialId{k + 1};
    outcome.parameter = ParameterId{k};
    outcome.parameters = std::move(parameters);
    outcome.status = status;
    outcome.value = value;
    return outcome;
  }

  // A simulated result that is a function of k.
  static TrialOutcome good(std::uint64_t k, Parameters parameters) {
    const double value = std::abs(static_cast<double>(k * 37 % 101) - 50.0);
    return outcome_of(k, std::move(parameters), TrialJobStatus::succeeded, value);
  }

  // Returns a suggestion that does not fit, as text; empty for one that does.
  static std::string misfit(const SearchSpace& space, const std::optional<Parameters>& answer) {
    if (!answer) return "nothing";
    return space.to_point(*answer) ? std::string() : answer->text();
  }

  void check_fit(int promise, const std::string& expectation, const SearchSpace& space,
                 const std::optional<Parameters>& answer) {
    const std::string seen = misfit(space, answer);
    if (!seen.empty()) report_.check(promise, expectation, false, seen);
  }

  // Sequential trials with results; returns the texts of the suggestions, and the outcomes for a resume.
  std::vector<std::string> one_by_one(T& tuner, std::uint64_t from, std::uint64_t to,
                                      std::vector<TrialOutcome>* history = nullptr) {
    std::vector<std::string> texts;
    for (std::uint64_t k = from; k < to; ++k) {
      std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      if (!answer) break;
      texts.push_back(answer->text());
      const TrialOutcome outcome = good(k, std::move(*answer));
      tuner.observe(outcome);
      if (history != nullptr) history->push_back(outcome);
    }
    return texts;
  }

  void fits_the_space() {
    for (const Direction direction : {minimize, maximize}) {
      T tuner = make_();
      tuner.start(setup_.space, Objectives(direction));
      const std::vector<std::string> texts = one_by_one(tuner, 0, setup_.rounds);
      for (const std::string& text : texts)
        check_fit(1, "every suggestion fits the space that start was given", setup_.space, Parameters(text));
      report_.check(1, "it suggests something", !texts.empty());
    }
  }

  void repeats_itself() {
    T one = make_();
    T other = make_();
    one.start(setup_.space, Objectives(minimize));
    other.start(setup_.space, Objectives(minimize));
    const std::vector<std::string> first = one_by_one(one, 0, setup_.rounds);
    auto elsewhere = std::async(std::launch::async, [&] { return one_by_one(other, 0, setup_.rounds); });
    const std::vector<std::string> second = elsewhere.get();
    report_.check(
        2, "the same calls give the same suggestions, on whatever thread", first == second, difference(first, second));
  }

  void ends_properly() {
    const SearchSpace small{choice("a", {1, 2, 3}), choice("b", {true, false})};
    T tuner = make_();
    tuner.start(small, Objectives(minimize));
    std::uint64_t k = 0;
    std::optional<Parameters> answer = tuner.generate(ParameterId{k});
    for (; answer && k < 200; answer = tuner.generate(ParameterId{k})) {
      check_fit(3, "every suggestion until the end fits the space", small, answer);
      tuner.observe(good(k++, std::move(*answer)));
    }
    report_.check(3, "a space of six configurations gives at least one", k > 0);
    if (answer) return;
    const bool still = !tuner.generate(ParameterId{k});
    report_.check(3, "after an empty suggestion there are no more until the next result", still);
    tuner.observe(outcome_of(k, Parameters("{\"a\":1,\"b\":true}"), TrialJobStatus::succeeded, 0.5));
    const std::optional<Parameters> more = tuner.generate(ParameterId{k});
    if (more) check_fit(3, "a suggestion after the next result fits the space", small, more);
  }

  void takes_every_outcome() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(minimize));
    const std::vector<std::pair<TrialJobStatus, std::optional<double>>> ends = {
        {TrialJobStatus::failed, std::nullopt},        {TrialJobStatus::succeeded, std::nullopt},
        {TrialJobStatus::early_stopped, 0.5},          {TrialJobStatus::early_stopped, std::nullopt},
        {TrialJobStatus::user_canceled, std::nullopt}, {TrialJobStatus::succeeded, 0.25}};
    std::string seen;
    for (std::uint64_t k = 0; k < setup_.rounds; ++k) {
      std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      seen = misfit(setup_.space, answer);
      if (!seen.empty()) break;
      const auto& [status, value] = ends[k % ends.size()];
      tuner.observe(outcome_of(k, std::move(*answer), status, value));
    }
    report_.check(4, "it continues after trials that failed, were stopped or have no value", seen.empty(), seen);
  }

  void takes_any_order() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(maximize));
    std::uint64_t next = 0;
    std::string seen;
    for (int batch = 0; batch < 5 && seen.empty(); ++batch) {
      std::vector<TrialOutcome> in_flight;
      for (int one = 0; one < 8; ++one, ++next) {
        std::optional<Parameters> answer = tuner.generate(ParameterId{next});
        // It may need a result before it continues, but no trial is running before the first one of a batch.
        if (!answer && one > 0) continue;
        if (seen = misfit(setup_.space, answer); !seen.empty()) break;
        in_flight.push_back(good(next, std::move(*answer)));
      }
      for (std::size_t at = in_flight.size(); at-- > 0;) tuner.observe(in_flight[at]);
    }
    if (seen.empty()) seen = misfit(setup_.space, tuner.generate(ParameterId{next}));
    report_.check(4, "it continues after results in any order", seen.empty(), seen);
  }

  void follows_the_space() {
    T tuner = make_();
    tuner.start(setup_.space, Objectives(minimize));
    std::vector<TrialOutcome> history;
    one_by_one(tuner, 0, setup_.rounds / 2, &history);
    const std::optional<Parameters> flying = tuner.generate(ParameterId{setup_.rounds / 2});
    tuner.update_search_space(setup_.other);
    // A trial of the old space that ends now may not fit the new one.
    if (flying) tuner.observe(good(setup_.rounds / 2, *flying));
    bool fits = true;
    std::string seen;
    for (std::uint64_t k = setup_.rounds / 2 + 1; k <= setup_.rounds; ++k) {
      const std::optional<Parameters> answer = tuner.generate(ParameterId{k});
      if (!answer || !setup_.other.to_point(*answer)) {
        fits = false;
        seen = answer ? answer->text() : "nothing";
        break;
      }
      tuner.observe(good(k, *answer));
    }
    report_.check(5, "after update_search_space suggestions come from the new space", fits, seen);
  }

  void resumes() {
    const std::uint64_t before = setup_.rounds / 2;
    T first = make_();
    first.start(setup_.space, Objectives(minimize));
    std::vector<TrialOutcome> history;
    one_by_one(first, 0, before, &history);
    const std::vector<std::string> expected = one_by_one(first, before, setup_.rounds);

    T resumed = make_();
    resumed.start(setup_.space, Objectives(minimize));
    for (const TrialOutcome& outcome : history) resumed.observe(outcome);
    const std::vector<std::string> seen = one_by_one(resumed, before, setup_.rounds);
    report_.check(
        6, "after a resume suggestion k is the same as without", expected == seen, difference(expected, seen));
  }

  static std::string difference(const std::vector<std::string>& one, const std::vector<std::string>& other) {
    for (std::size_t k = 0; k < one.size() && k < other.size(); ++k)
      if (one[k] != other[k]) return one[k] + " and " + other[k];
    return std::to_string(one.size()) + " and " + std::to_string(other.size()) + " suggestions";
  }

  const std::function<T()>& make_;
  TunerSetup setup_;
  ConformanceReport& report_;
};

}  // namespace detail

/// Checks the observable promises of `nni::Tuner` for any tuner.
///
/// The checks carry the numbers of the promises. It requests about ten times `setup.rounds` suggestions.
///
/// @param make   returns a new tuner that was not started, always with the same settings and seed
/// @returns      the results of all checks
template <Tuner T>
[[nodiscard]] ConformanceReport check_tuner(const std::function<T()>& make, TunerSetup setup = {}) {
  ConformanceReport report;
  detail::TunerSuite<T>(make, std::move(setup), report).run();
  return report;
}

}  // namespace nni::testing

#if NNI_HEADER_ONLY || defined(NNI_IMPLEMENTATION)

// ---- nni/testing/manual_clock_inl.hpp

namespace nni::testing {

/// Shared with the sleepers, which a context may destroy after the clock.
struct ManualClock::State {
  // Other threads may read the time.
  std::atomic<Duration::rep> elapsed{0};
  std::map<SteadyPoint, async::detail::WaitList> moments;
  std::size_t sleeping = 0;

  /// A registered sleeper; unregisters itself however its sleep ends.
  struct Sleeper {
    Sleeper(std::shared_ptr<State> owner, SteadyPoint until) : state(std::move(owner)), deadline(until) {
      ++state->sleeping;
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    ~Sleeper() {
      --state->sleeping;
      const auto moment = state->moments.find(deadline);
      if (moment != state->moments.end() && moment->second.empty()) state->moments.erase(moment);
    }

    std::shared_ptr<State> state;
    SteadyPoint deadline;
  };
};

NNI_INLINE ManualClock::ManualClock(TimePoint start) : start_(start), state_(std::make_shared<State>()) {}

NNI_INLINE ManualClock::~ManualClock() {
  for (auto& [deadline, sleepers] : state_->moments) sleepers.post_all(boost::asio::error::operation_aborted);
}

NNI_INLINE SteadyPoint ManualClock::steady_now() const noexcept {
  return SteadyPoint(Duration(state_->elapsed.load()));
}

NNI_INLINE std::size_t ManualClock::sleepers() const noexcept { return state_->sleeping; }

NNI_INLINE std::optional<SteadyPoint> ManualClock::next_deadline() const {
  if (state_->moments.empty()) return std::nullopt;
  return state_->moments.begin()->first;
}

NNI_INLINE awaitable<void> ManualClock::sleep_until(SteadyPoint deadline) {
  if (deadline <= steady_now()) {
    co_await boost::asio::post(boost::asio::use_awaitable);
    co_return;
  }
  const State::Sleeper sleeper(state_, deadline);
  co_await sleeper.state->moments[deadline].wait();
}

NNI_INLINE void ManualClock::settle() {
  if (context_ == nullptr) throw Error{Errc::internal, "ManualClock: attach a context before advancing the time"};
  do {
    context_->restart();
  } while (context_->poll() > 0);
}

NNI_INLINE void ManualClock::wake(SteadyPoint deadline) {
  state_->elapsed = std::max(state_->elapsed.load(), Duration(deadline.time_since_epoch()).count());
  auto moment = state_->moments.extract(deadline);
  if (!moment.empty()) moment.mapped().post_all();
}

NNI_INLINE void ManualClock::advance(Duration span) {
  if (span < Duration::zero()) throw Error{Errc::internal, "ManualClock: the time cannot go backwards"};
  settle();
  const SteadyPoint target = steady_now() + span;
  for (auto next = next_deadline(); next && *next <= target; next = next_deadline()) {
    wake(*next);
    settle();
  }
  wake(target);
  settle();
}

NNI_INLINE bool ManualClock::advance_to_next() {
  settle();
  const auto next = next_deadline();
  if (!next) return false;
  wake(*next);
  settle();
  return true;
}

NNI_INLINE void ManualClock::drive(awaitable<void> work) {
  settle();
  auto done = std::make_shared<bool>(false);
  boost::asio::co_spawn(*context_, std::move(work), [done](std::exception_ptr) { *done = true; });
  while (!*done) {
    settle();
    if (*done || advance_to_next()) continue;
    context_->restart();
    context_->run_one();
  }
}

}  // namespace nni::testing

#endif  // bodies
