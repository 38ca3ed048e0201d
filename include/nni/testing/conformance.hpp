#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <nni/concepts/training_service.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/detail/service_adoption_checks.hpp>
#include <nni/testing/detail/service_case.hpp>
#include <nni/testing/detail/service_channel_checks.hpp>
#include <nni/testing/detail/service_outage_checks.hpp>
#include <nni/testing/detail/service_run_checks.hpp>
#include <nni/testing/service_trials.hpp>

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
