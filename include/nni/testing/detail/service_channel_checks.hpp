#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>
#include <string>
#include <utility>

#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/parameters.hpp>
#include <nni/testing/detail/service_case.hpp>

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
