#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/async/cancellation.hpp>
#include <nni/async/runtime.hpp>
#include <nni/async/timeout.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/core/error.hpp>
#include <nni/core/event.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing {

/// How the suite makes trials for a service: each function fills in what its platform needs to run.
struct ServiceTrials {
  std::function<TrialJobForm(RunId)> succeeds{};            ///< ends by itself, exit code 0
  std::function<TrialJobForm(RunId)> fails{};               ///< ends by itself, otherwise
  std::function<TrialJobForm(RunId)> runs_until_stopped{};  ///< ends only when it is cancelled
  std::function<TrialJobForm(RunId)> cannot_start{};        ///< absent where nothing can fail to start
  /// Succeeds only if its variable NNI_CONFORMANCE is `it's here`, which the suite adds to the form. Absent where trials
  /// are callables.
  std::function<TrialJobForm(RunId)> needs_variable{};
  std::function<TrialJobForm(RunId)> reports{};  ///< reports 0.25, 0.5 and finally 0.75; absent without messages
};

namespace detail {

// What was heard of one run.
struct Heard {
  int started = 0;
  int ended = 0;
  bool in_order = true;
  JobEnd end;
};

template <TrainingService S>
class ServiceSuite {
 public:
  ServiceSuite(const std::function<S()>& make, const ServiceTrials& trials, ConformanceReport& report)
      : make_(make), trials_(trials), report_(report) {}

  void run() {
    one("ends", &ServiceSuite::ends);
    if (trials_.needs_variable) one("variables", &ServiceSuite::variables);
    one("same run twice", &ServiceSuite::same_run_twice);
    one("cancel", &ServiceSuite::cancels);
    one("cancelled reader", &ServiceSuite::reader_is_cancelled);
    one("many runs", &ServiceSuite::many);
    one("clean up", &ServiceSuite::cleans_up);
    if constexpr (CarriesMessages<S>)
      if (trials_.reports) one("messages", &ServiceSuite::messages);
    if constexpr (ResumableService<S>) one("adopt", &ServiceSuite::adopts_unknown);
  }

 private:
  void one(const char* name, awaitable<void> (ServiceSuite::*body)(S&, Context&)) {
    heard_.clear();
    try {
      S service = make_();
      Runtime runtime;
      runtime.run(guarded(service, runtime.context(), body));
    } catch (const std::exception& error) {
      report_.check(0, std::string("the case \"") + name + "\" runs to its end", false, error.what());
    }
  }

  awaitable<void> guarded(S& service, Context& context, awaitable<void> (ServiceSuite::*body)(S&, Context&)) {
    auto starting = service.start(context);
    co_await std::move(starting);
    std::exception_ptr failure;
    try {
      auto limited = async::with_timeout((this->*body)(service, context), std::chrono::seconds(30));
      co_await std::move(limited);
    } catch (...) {
      failure = std::current_exception();
    }
    auto cleaning = service.clean_up();
    co_await std::move(cleaning);
    if (failure) std::rethrow_exception(failure);
  }

  static RunId run_of(std::uint64_t trial, std::uint32_t attempt = 0) { return RunId{TrialId{trial}, attempt}; }

  awaitable<void> submit(S& service, TrialJobForm form, RunId run) {
    form.run = run;
    auto work = service.submit_trial_job(std::move(form));
    co_await std::move(work);
  }

  void note(const JobEvent& event) {
    if (const auto* begin = std::get_if<JobStarted>(&event)) {
      Heard& heard = heard_[begin->run];
      ++heard.started;
      heard.in_order = heard.in_order && heard.ended == 0;
    } else if (const auto* ended = std::get_if<JobEnded>(&event)) {
      Heard& heard = heard_[ended->run];
      ++heard.ended;
      heard.end = ended->end;
    }
  }

  awaitable<void> listen(S& service, std::size_t ends) {
    std::size_t seen = 0;
    while (seen < ends) {
      auto next = service.next_event();
      const JobEvent event = co_await std::move(next);
      note(event);
      if (std::holds_alternative<JobEnded>(event)) ++seen;
    }
  }

  // Listens a little longer than an event takes, so that a second one would be noticed.
  awaitable<void> nothing_more(S& service) {
    try {
      auto limited = async::with_timeout(service.next_event(), std::chrono::milliseconds(50));
      const JobEvent event = co_await std::move(limited);
      note(event);
    } catch (const Error&) {
    }
  }

  awaitable<void> ends(S& service, Context&) {
    auto good = submit(service, trials_.succeeds(run_of(1)), run_of(1));
    co_await std::move(good);
    auto bad = submit(service, trials_.fails(run_of(2)), run_of(2));
    co_await std::move(bad);
    std::size_t expected = 2;
    if (trials_.cannot_start) {
      auto never = submit(service, trials_.cannot_start(run_of(3)), run_of(3));
      co_await std::move(never);
      ++expected;
    }
    auto hearing = listen(service, expected);
    co_await std::move(hearing);
    auto quiet = nothing_more(service);
    co_await std::move(quiet);
    const Heard& one_good = heard_[run_of(1)];
    report_.check(4, "a run that succeeds is started once and ended once, in that order",
                  one_good.started == 1 && one_good.ended == 1 && one_good.in_order,
                  std::to_string(one_good.started) + " starts, " + std::to_string(one_good.ended) + " ends");
    report_.check(
        4, "exit code 0 is told as such", one_good.end.succeeded(), std::string(to_string(one_good.end.kind)));
    const Heard& one_bad = heard_[run_of(2)];
    report_.check(4, "a run that fails is not told as success", one_bad.ended == 1 && !one_bad.end.succeeded());
    report_.check(4, "a run that fails by itself is neither killed nor lost",
                  one_bad.end.kind != EndKind::killed && one_bad.end.kind != EndKind::lost);
    if (trials_.cannot_start) {
      const Heard& never = heard_[run_of(3)];
      report_.check(
          3, "a command that cannot start is an end with a reason, not an exception",
          never.ended == 1 && never.end.kind == EndKind::not_started && !never.end.message.empty(), never.end.message);
    }
  }

  awaitable<void> variables(S& service, Context&) {
    TrialJobForm form = trials_.needs_variable(run_of(1));
    form.environment["NNI_CONFORMANCE"] = "it's here";
    auto submitting = submit(service, std::move(form), run_of(1));
    co_await std::move(submitting);
    auto hearing = listen(service, 1);
    co_await std::move(hearing);
    const JobEnd& end = heard_[run_of(1)].end;
    report_.check(3, "what runs has the variables of its form", end.succeeded(),
                  std::string(to_string(end.kind)) + " " + std::to_string(end.code) + " " + end.message);
  }

  awaitable<void> same_run_twice(S& service, Context&) {
    auto first = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(first);
    auto second = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(second);
    auto next_attempt = submit(service, trials_.succeeds(run_of(1, 1)), run_of(1, 1));
    co_await std::move(next_attempt);
    auto stopping = service.cancel_trial_job(run_of(1), StopReason::user);
    co_await std::move(stopping);
    auto hearing = listen(service, 2);
    co_await std::move(hearing);
    auto quiet = nothing_more(service);
    co_await std::move(quiet);
    report_.check(3, "a second submit of the same run makes no second job",
                  heard_[run_of(1)].started <= 1 && heard_[run_of(1)].ended == 1);
    report_.check(3, "the next attempt is a job of its own",
                  heard_[run_of(1, 1)].ended == 1 && heard_[run_of(1, 1)].end.succeeded());
  }

  awaitable<void> cancels(S& service, Context&) {
    auto submitting = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(submitting);
    while (heard_[run_of(1)].started == 0) {
      auto next = service.next_event();
      const JobEvent event = co_await std::move(next);
      note(event);
    }
    auto stopping = service.cancel_trial_job(run_of(1), StopReason::early_stop);
    co_await std::move(stopping);
    auto hearing = listen(service, 1);
    co_await std::move(hearing);
    const JobEnd& end = heard_[run_of(1)].end;
    report_.check(4, "an end on request says so, and why",
                  end.kind == EndKind::killed && end.why == StopReason::early_stop, std::string(to_string(end.kind)));
    bool refused = false;
    try {
      auto unknown = service.cancel_trial_job(run_of(77), StopReason::user);
      co_await std::move(unknown);
    } catch (const Error& error) {
      refused = error.code() == make_error_code(Errc::no_such_job);
    }
    report_.check(5, "cancelling an unknown run is Errc::no_such_job", refused);
  }

  awaitable<void> reader_is_cancelled(S& service, Context&) {
    for (int round = 0; round < 3; ++round) {
      try {
        auto limited = async::with_timeout(service.next_event(), std::chrono::milliseconds(5));
        const JobEvent event = co_await std::move(limited);
        note(event);
      } catch (const Error&) {
      }
      const RunId run = run_of(static_cast<std::uint64_t>(round) + 1);
      auto submitting = submit(service, trials_.succeeds(run), run);
      co_await std::move(submitting);
    }
    std::size_t ended = 0;
    for (const auto& [run, heard] : heard_) ended += static_cast<std::size_t>(heard.ended);
    auto hearing = listen(service, 3 - ended);
    co_await std::move(hearing);
    bool complete = heard_.size() == 3;
    for (const auto& [run, heard] : heard_) complete = complete && heard.ended == 1;
    report_.check(6, "a cancelled next_event loses nothing", complete);
  }

  awaitable<void> many(S& service, Context&) {
    constexpr std::uint64_t count = 40;
    for (std::uint64_t trial = 1; trial <= count; ++trial) {
      auto submitting = submit(service, trials_.succeeds(run_of(trial)), run_of(trial));
      co_await std::move(submitting);
    }
    auto hearing = listen(service, count);
    co_await std::move(hearing);
    bool complete = heard_.size() == count;
    for (const auto& [run, heard] : heard_)
      complete = complete && heard.started == 1 && heard.ended == 1 && heard.in_order && heard.end.succeeded();
    report_.check(4, "of many runs each is started once and ended once", complete);
  }

  awaitable<void> cleans_up(S& service, Context& context) {
    auto submitting = submit(service, trials_.runs_until_stopped(run_of(1)), run_of(1));
    co_await std::move(submitting);
    const SteadyPoint before = context.clock().steady_now();
    auto cleaning = service.clean_up();
    co_await std::move(cleaning);
    report_.check(7, "clean_up ends what runs within the context's limit",
                  context.clock().steady_now() - before < context.shutdown_limit());
  }

  awaitable<void> messages(S& service, Context&) {
    auto submitting = submit(service, trials_.reports(run_of(1)), run_of(1));
    co_await std::move(submitting);
    std::vector<std::string> values;
    while (values.size() < 3) {
      auto next = service.next_message();
      const TrialMessage message = co_await std::move(next);
      values.push_back(message.metric.value);
      auto answering = service.acknowledge(message.receipt);
      co_await std::move(answering);
    }
    auto hearing = listen(service, 1);
    co_await std::move(hearing);
    auto settling = service.settle(run_of(1));
    co_await std::move(settling);
    std::string all;
    for (const std::string& value : values) all += value + " ";
    report_.check(1, "values arrive once and in order", all == "0.25 0.5 0.75 ", all);
  }

  awaitable<void> adopts_unknown(S& service, Context&) {
    Intent intent;
    intent.run = run_of(5);
    std::vector<Intent> intents;
    intents.push_back(std::move(intent));
    auto adopting = service.adopt(std::move(intents));
    const std::vector<JobReport> reports = co_await std::move(adopting);
    report_.check(
        8, "adopt answers for every intent, also for one without a job",
        reports.size() == 1 && reports.front().run == run_of(5) && reports.front().state != JobReport::State::running);
  }

  const std::function<S()>& make_;
  const ServiceTrials& trials_;
  ConformanceReport& report_;
  std::map<RunId, Heard> heard_;
};

}  // namespace detail

/// Checks the promises of `nni::TrainingService` that can be seen from outside, for any service.
///
/// Each case makes a fresh service, starts it, and cleans it up. The checks carry the numbers of the promises.
///
/// @param make    makes a service that is ready to be started
/// @param trials  how to make trials for it
/// @returns       what was found
template <TrainingService S>
[[nodiscard]] ConformanceReport check_training_service(const std::function<S()>& make, const ServiceTrials& trials) {
  ConformanceReport report;
  detail::ServiceSuite<S>(make, trials, report).run();
  return report;
}

}  // namespace nni::testing
