#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nni/core/trial.hpp>
#include <nni/testing/detail/service_case.hpp>

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
