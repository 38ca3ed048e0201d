#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <nni/async/task_group.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/testing/detail/service_case.hpp>

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
