#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/async/timeout.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/core/error.hpp>
#include <nni/core/time.hpp>
#include <nni/testing/checks.hpp>

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
