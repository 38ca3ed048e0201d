#pragma once

#include <exception>
#include <string>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/testing/detail/service_case.hpp>
#include <nni/testing/detail/service_run_checks.hpp>

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
