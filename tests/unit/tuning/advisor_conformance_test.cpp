#include "support/catch.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nni/assessing/median_stop.hpp>
#include <nni/async/event.hpp>
#include <nni/async/runtime.hpp>
#include <nni/testing/advisor_conformance.hpp>
#include <nni/tuning/as_advisor.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>

using namespace nni;

namespace {

enum class Fault { none, orders_too_much, wants_numbers, gives_up, loses_orders, kills_strangers, never_stops };

// Orders random trials; each fault breaks one promise.
class Ordering {
 public:
  using role = role::advisor;

  explicit Ordering(Fault fault) : fault_(fault), tuner_({}, seed(1)) {}

  awaitable<void> start(Context&, const SearchSpace& space, const Objectives& goals) {
    changed_ = std::make_unique<async::event>();
    tuner_.start(space, goals);
    co_return;
  }
  awaitable<void> request(std::size_t count) {
    if (fault_ == Fault::orders_too_much) ++count;
    // Hands an order to a reader that is not there any more.
    if (fault_ == Fault::loses_orders && std::exchange(abandoned_, false)) --count;
    for (; count > 0; --count) {
      waiting_.emplace_back(NewTrial{ParameterId{next_}, *tuner_.generate(ParameterId{next_})});
      ++next_;
    }
    changed_->notify();
    co_return;
  }
  awaitable<void> report(const Metric& metric) {
    if (fault_ == Fault::wants_numbers) static_cast<void>(metric.scalar().value());
    co_return;
  }
  awaitable<void> trial_ended(const TrialOutcome& outcome) {
    if (fault_ == Fault::gives_up && !outcome.value) waiting_.emplace_back(NoMoreTrials{});
    if (fault_ == Fault::kills_strangers) waiting_.emplace_back(KillTrial{TrialId{77}});
    co_return;
  }
  awaitable<Order> next_order() {
    while (waiting_.empty()) {
      abandoned_ = true;  // stays so when the reader is cancelled
      auto change = changed_->wait();
      co_await std::move(change);
    }
    abandoned_ = false;
    Order order = std::move(waiting_.front());
    waiting_.pop_front();
    co_return order;
  }
  awaitable<void> stop() {
    if (fault_ != Fault::never_stops) co_return;
    throw Error(Errc::timed_out, "what was started does not end");
  }

 private:
  Fault fault_;
  tuning::Random tuner_;
  std::unique_ptr<async::event> changed_;
  std::deque<Order> waiting_;
  std::uint64_t next_ = 0;
  bool abandoned_ = false;
};
static_assert(Advisor<Ordering>);

// Keeps how runs ended.
class Listening {
 public:
  using role = role::assessor;

  explicit Listening(std::vector<bool>& heard) : heard_(&heard) {}

  void start(const Objectives&) {}
  [[nodiscard]] Verdict assess(const RunId&, std::span<const double>) { return Verdict::good; }
  void trial_ended(const RunId&, bool succeeded) { heard_->push_back(succeeded); }

 private:
  std::vector<bool>* heard_;
};

std::string seen_of(Fault fault, testing::AdvisorSetup setup = {}) {
  return testing::check_advisor<Ordering>([fault] { return Ordering(fault); }, std::move(setup)).to_string();
}

}  // namespace

TEST_CASE("a tuner and an assessor keep the promises of an advisor", "[tuning][conformance]") {
  using Both = tuning::AsAdvisor<tuning::Random, assessing::MedianStop>;

  const testing::ConformanceReport report =
      testing::check_advisor<Both>([] { return Both(tuning::Random({}, seed(7)), assessing::MedianStop()); });

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("a tuner that comes to its end keeps the promises of an advisor", "[tuning][conformance]") {
  using Ending = tuning::AsAdvisor<tuning::Grid, assessing::MedianStop>;

  const testing::ConformanceReport report = testing::check_advisor<Ending>(
      [] { return Ending(tuning::Grid(), assessing::MedianStop()); }, {.space = {choice("a", {1, 2, 3})}, .trials = 3});

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("an assessor hears by their ends which trials did well, before and after a resume", "[tuning]") {
  using Both = tuning::AsAdvisor<tuning::Random, Listening>;
  Runtime runtime;
  std::vector<bool> live;
  std::vector<bool> resumed;
  Both first(tuning::Random({}, seed(7)), Listening(live));
  Both second(tuning::Random({}, seed(7)), Listening(resumed));
  runtime.run(first.start(runtime.context(), {uniform("x", 0.0, 1.0)}, {}));
  runtime.run(second.start(runtime.context(), {uniform("x", 0.0, 1.0)}, {}));

  // One without a final value did well all the same.
  for (const TrialJobStatus status :
       {TrialJobStatus::succeeded, TrialJobStatus::failed, TrialJobStatus::early_stopped}) {
    TrialOutcome outcome;
    outcome.trial = TrialId{1};
    outcome.parameters = Parameters(std::string(R"({"x": 0.5})"));
    outcome.status = status;
    runtime.run(first.trial_ended(outcome));
    second.replay(outcome, {});
  }

  CHECK(live == std::vector<bool>{true, false, false});
  CHECK(resumed == live);
}

TEST_CASE("the suite names the promise that an advisor breaks", "[tuning][conformance]") {
  CHECK_THAT(seen_of(Fault::none), Catch::Contains("checks passed"));
  CHECK_THAT(seen_of(Fault::orders_too_much), Catch::Contains("promise 2 broken"));
  CHECK_THAT(seen_of(Fault::wants_numbers), Catch::Contains("promise 3 broken"));
  CHECK_THAT(seen_of(Fault::gives_up),
             Catch::Contains("promise 3 broken: it continues after trials with and without results"));
  CHECK_THAT(
      seen_of(Fault::kills_strangers), Catch::Contains("promise 4 broken: an order to kill names a known trial"));
  // An order that is lost is noticed by waiting for it.
  CHECK_THAT(
      seen_of(Fault::loses_orders, {.limit = std::chrono::milliseconds(200)}), Catch::Contains("promise 4 broken"));
  CHECK_THAT(seen_of(Fault::never_stops), Catch::Contains("promise 5 broken"));
}
