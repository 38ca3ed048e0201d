// The smallest advisor models the concept; without any one of its obligations it does not.

#include <nni/concepts/advisor.hpp>

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::advisor;
  awaitable<void> start(Context&, const SearchSpace&, const Objectives&);
  awaitable<void> request(std::size_t);
  awaitable<void> report(const Metric&);
  awaitable<void> trial_ended(const TrialOutcome&);
  awaitable<Order> next_order();
  awaitable<void> stop();
};
static_assert(Advisor<Smallest>);

struct WrongRole : Smallest {
  using role = nni::role::tuner;
};
struct CannotStart : Smallest {
  void start() = delete;
};
struct CannotBeAsked : Smallest {
  void request() = delete;
};
struct IgnoresMetrics : Smallest {
  void report() = delete;
};
struct IgnoresEnds : Smallest {
  void trial_ended() = delete;
};
struct OrdersVaguely : Smallest {
  awaitable<int> next_order();
};
struct CannotStop : Smallest {
  void stop() = delete;
};
static_assert(!Advisor<WrongRole>);
static_assert(!Advisor<CannotStart>);
static_assert(!Advisor<CannotBeAsked>);
static_assert(!Advisor<IgnoresMetrics>);
static_assert(!Advisor<IgnoresEnds>);
static_assert(!Advisor<OrdersVaguely>);
static_assert(!Advisor<CannotStop>);

}  // namespace
