// The suite for training services names the promise that a service breaks, and survives whatever it does.

#include "unit/platforms/scripted_service.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>

#include <nni/testing/conformance.hpp>

#include "support/catch.hpp"

using namespace nni;
using namespace nni_test;

namespace {

std::function<TrialJobForm(RunId)> doing(const char* what) {
  return [what](RunId) {
    TrialJobForm form;
    form.command = what;
    return form;
  };
}

testing::ServiceTrials trials() {
  testing::ServiceTrials trials;
  trials.succeeds = doing("succeed");
  trials.fails = doing("fail");
  trials.runs_until_stopped = doing("stop");
  trials.exits_when_stopped = doing("leave");
  trials.cannot_start = doing("never");
  trials.needs_variable = doing("variable");
  trials.reports = doing("report");
  trials.kills_itself = doing("signal");
  trials.failure_code = 9;
  return trials;
}

// What never comes is noticed by waiting for it.
constexpr Duration soon = std::chrono::milliseconds(500);
constexpr Duration never = std::chrono::seconds(20);

std::string seen_of(Fault fault, Duration limit = never, const std::shared_future<void>& gate = {}) {
  auto world = std::make_shared<World>();
  testing::ServiceTrials how = trials();
  how.limit = limit;
  how.alive = [&world] { return world->running.size(); };
  how.outage = [&world](bool away) { world->away = away; };
  return testing::check_training_service<Scripted>(
             [&world, fault, &gate] {
               world = std::make_shared<World>();
               world->gate = gate;
               return Scripted(world, fault);
             },
             how, [&world, fault] { return Scripted(world, fault); })
      .to_string();
}

}  // namespace

TEST_CASE("a service that keeps its promises passes the suite", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::none), Catch::Contains("checks passed"));
}

TEST_CASE("the suite names the promise that a service breaks: what it says of itself", "[platforms][conformance]") {
  const testing::ConformanceReport unmade = testing::check_training_service<Scripted>(
      []() -> Scripted { throw std::runtime_error("there is no license"); }, trials());
  CHECK_THAT(
      unmade.to_string(), Catch::StartsWith("promise 0 broken: a service can be made; seen: there is no license"));
  CHECK_THAT(seen_of(Fault::never_starts, soon), Catch::Contains("promise 0 broken: the service can be started"));
  CHECK_THAT(seen_of(Fault::takes_one_at_a_time, soon),
             Catch::Contains("promise 1 broken: as many runs are submitted and canceled at a time"));
  const testing::ConformanceReport boasts =
      testing::check_training_service<Boaster>([] { return Boaster(std::make_shared<World>()); }, trials());
  CHECK(boasts.to_string() == "promise 8 broken: runs that outlive their manager can be adopted\n");
}

TEST_CASE("the suite names the promise that a service breaks: the identity of runs", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::never_answers, soon), Catch::Contains("promise 3 broken: submit_trial_job accepts a run"));
  CHECK_THAT(seen_of(Fault::runs_twice),
             Catch::Contains("promise 3 broken: a second submit of the same run makes no second job"));
  CHECK_THAT(seen_of(Fault::names_the_second_submit),
             Catch::Contains("promise 3 broken: a second submit of the same run is answered with the same job"));
  CHECK_THAT(seen_of(Fault::forgets_attempts, soon), Catch::Contains("promise 3 broken: of two attempts each is"));
  CHECK_THAT(seen_of(Fault::throws_at_a_bad_command),
             Catch::Contains("promise 3 broken: a command that cannot start is an end with a reason"));
  CHECK_THAT(seen_of(Fault::gives_no_reason),
             Catch::Contains("promise 3 broken: a command that cannot start is an end with a reason"));
  CHECK_THAT(seen_of(Fault::drops_variables), Catch::Contains("promise 3 broken: a run has the variables"));
}

TEST_CASE("the suite names the promise that a service breaks: a platform that is away", "[platforms][conformance]") {
  const char* const answer = "promise 3 broken: a run that cannot start now is deferred with a reason, or";
  CHECK_THAT(seen_of(Fault::fails_in_an_outage), Catch::Contains(answer) && Catch::Contains("not started 0"));
  CHECK_THAT(seen_of(Fault::refuses_for_good), Catch::Contains(answer) && Catch::Contains("not transient"));
  CHECK_THAT(seen_of(Fault::defers_without_a_reason), Catch::Contains(answer) && Catch::Contains("no reason"));
  CHECK_THAT(seen_of(Fault::starts_in_an_outage), Catch::Contains(answer) && Catch::Contains("it was started"));
  CHECK_THAT(seen_of(Fault::forgets_what_it_deferred, soon),
             Catch::Contains("promise 3 broken: a run that was deferred or refused is started once"));
  CHECK_THAT(seen_of(Fault::loses_others_in_an_outage),
             Catch::Contains("promise 4 broken: live runs continue while the platform can start nothing"));
}

TEST_CASE("the suite names the promise that a service breaks: starts and ends", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::starts_twice), Catch::Contains("promise 4 broken: a run that succeeds is started once"));
  CHECK_THAT(seen_of(Fault::ends_twice), Catch::Contains("promise 4 broken: a run that succeeds is started once"));
  CHECK_THAT(seen_of(Fault::ends_first), Catch::Contains("a start after an end"));
  CHECK_THAT(seen_of(Fault::never_ends, soon), Catch::Contains("promise 4 broken: the end of each run is reported"));
  CHECK_THAT(
      seen_of(Fault::never_tells_starts, soon), Catch::Contains("promise 4 broken: the start of a run is reported"));
  CHECK_THAT(seen_of(Fault::tells_of_strangers),
             Catch::Contains("promise 4 broken: there are no events of runs that were not submitted"));
  CHECK_THAT(seen_of(Fault::loses_one_of_many, soon), Catch::Contains("promise 4 broken: of many runs each"));
}

TEST_CASE("the suite names the promise that a service breaks: kinds of end", "[platforms][conformance]") {
  CHECK_THAT(
      seen_of(Fault::hides_failures), Catch::Contains("promise 4 broken: a failed run is not reported as a success"));
  CHECK_THAT(seen_of(Fault::hides_success), Catch::Contains("promise 4 broken: exit code 0 is reported as such"));
  CHECK_THAT(seen_of(Fault::blames_the_user), Catch::Contains("promise 4 broken: a run that fails by itself is"));
  CHECK_THAT(
      seen_of(Fault::forgets_exit_codes), Catch::Contains("promise 4 broken: the exit code of a run is reported"));
  CHECK_THAT(
      seen_of(Fault::calls_signals_exits), Catch::Contains("promise 4 broken: a signal that the service did not send"));
  CHECK_THAT(seen_of(Fault::forgets_reasons),
             Catch::Contains("promise 4 broken: a requested end is reported with its reason"));
  CHECK_THAT(
      seen_of(Fault::calls_every_stopped_run_killed),
      Catch::Contains("promise 4 broken: a run that exits on its own on request is reported with its exit code"));
}

TEST_CASE("the suite names the promise that a service breaks: cancellation of runs", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::waits_for_the_end, soon),
             Catch::Contains("promise 5 broken: cancel_trial_job returns when the request is accepted"));
  CHECK_THAT(seen_of(Fault::ignores_cancellations, soon),
             Catch::Contains("promise 5 broken: the end of a canceled run arrives"));
  CHECK_THAT(seen_of(Fault::refuses_before_the_start),
             Catch::Contains("promise 5 broken: cancel_trial_job works in every state"));
  CHECK_THAT(seen_of(Fault::refuses_a_second_time),
             Catch::Contains("promise 5 broken: a run that is being stopped, or has ended, can be canceled"));
  CHECK_THAT(seen_of(Fault::accepts_anybody), Catch::Contains("promise 5 broken: canceling an unknown run"));
  CHECK_THAT(seen_of(Fault::has_errors_of_its_own), Catch::Contains("promise 5 broken"));
}

TEST_CASE("the suite names the promise that a service breaks: cancelled readers", "[platforms][conformance]") {
  const char* const lost = "promise 6 broken: a canceled next_event loses nothing";
  CHECK_THAT(seen_of(Fault::loses_when_cancelled, soon), Catch::Contains(lost));
  CHECK_THAT(seen_of(Fault::loses_behind_a_cancelled_reader, soon), Catch::Contains(lost));
}

TEST_CASE("the suite names the promise that a service breaks: clean-up", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::needs_a_start), Catch::Contains("promise 7 broken: clean_up ends live runs within"));
  CHECK_THAT(
      seen_of(Fault::never_cleans_up, soon), Catch::Contains("promise 7 broken: clean_up ends live runs within"));
  CHECK_THAT(seen_of(Fault::leaves_trials), Catch::Contains("promise 7 broken: no trial runs after clean_up"));
  CHECK_THAT(seen_of(Fault::leaves_a_timer, soon),
             Catch::Contains("promise 7 broken: nothing is left on the executor after clean_up"));
  CHECK_THAT(seen_of(Fault::tells_afterwards), Catch::Contains("promise 7 broken: there are no events after clean_up"));
}

TEST_CASE("the suite names the promise that a service breaks: adoption", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::forgets_an_intent), Catch::Contains("promise 8 broken: adopt answers for every intent"));
  CHECK_THAT(seen_of(Fault::adopts_anything),
             Catch::Contains("promise 8 broken: a run that never started is not reported as running"));
  CHECK_THAT(seen_of(Fault::needs_job_ids), Catch::Contains("promise 8 broken: adopt finds a run by its name alone"));
  CHECK_THAT(seen_of(Fault::forgets_adopted_ends, soon),
             Catch::Contains("promise 8 broken: the end of an adopted run is reported"));
}

TEST_CASE("the suite names the promise that a service breaks: messages", "[platforms][conformance]") {
  CHECK_THAT(seen_of(Fault::takes_the_word_of_the_trial), Catch::Contains("promise 1 broken: (TrialChannel)"));
  CHECK_THAT(seen_of(Fault::loses_a_value, soon),
             Catch::Contains("promise 1 broken: (TrialChannel) every value is delivered"));
  CHECK_THAT(seen_of(Fault::refuses_receipts), Catch::Contains("promise 2 broken: (TrialChannel)"));
  CHECK_THAT(seen_of(Fault::settles_at_once), Catch::Contains("promise 3 broken: (TrialChannel) settling waits until"));
  const std::string unsettled = seen_of(Fault::never_settles, soon);
  CHECK_THAT(
      unsettled, Catch::Contains("promise 3 broken: (TrialChannel) settling a run whose values were taken returns"));
  CHECK_THAT(unsettled, Catch::Contains("promise 3 broken: (TrialChannel) settling returns when the values"));
  CHECK_THAT(seen_of(Fault::reverses_values), Catch::Contains("promise 4 broken: (TrialChannel) values of a run come"));
  const char* const lost = "promise 4 broken: (TrialChannel) a canceled next_message loses nothing";
  CHECK_THAT(seen_of(Fault::loses_messages_when_cancelled, soon), Catch::Contains(lost));
  CHECK_THAT(seen_of(Fault::cannot_send), Catch::Contains("promise 6 broken: (TrialChannel)"));
}

TEST_CASE("the suite does not hang with a service that cannot be cancelled", "[platforms][conformance]") {
  const std::string seen = seen_of(Fault::ignores_its_cancellation, soon);
  CHECK_THAT(seen, Catch::Contains("promise 6 broken: a canceled next_event ends"));
  CHECK_THAT(seen, Catch::Contains("and it does not end when it is canceled; the following cases were skipped"));
  CHECK_THAT(seen_of(Fault::ignores_cancelled_message_readers, soon),
             Catch::Contains("promise 4 broken: (TrialChannel) a canceled next_message ends"));
}

TEST_CASE("the suite does not hang with a service that blocks", "[platforms][conformance]") {
  std::promise<void> gate;
  const std::string seen = seen_of(Fault::blocks, soon, gate.get_future().share());
  gate.set_value();
  CHECK_THAT(seen, Catch::StartsWith("promise 1 broken: no member blocks the executor"));
  CHECK_THAT(seen, Catch::EndsWith("awaited: submit_trial_job accepts a run; the following cases were skipped\n"));
}
