#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <nni/async/timeout.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/core/error.hpp>
#include <nni/core/messages.hpp>
#include <nni/testing/detail/supervised_case.hpp>
#include <nni/testing/service_trials.hpp>

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
