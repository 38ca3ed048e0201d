#include "behaviour/local/harness.hpp"

#include <algorithm>
#include <deque>
#include <optional>

#include <poll.h>
#include <unistd.h>

#include <nni/process/pidfd.hpp>
#include <nni/testing/conformance.hpp>

using namespace nni;
using namespace nni_test;

static_assert(TrainingService<platforms::Local>);
static_assert(ResumableService<platforms::Local>);
static_assert(CarriesMessages<platforms::Local>);
static_assert(LogSource<platforms::Local>);

namespace {

std::function<TrialJobForm(RunId)> doing(const std::string& words) {
  return [words](RunId) { return trial_form(1, words); };
}

}  // namespace

TEST_CASE("local: keeps the promises of a training service", "[local][conformance]") {
  const auto launch = GENERATE(platforms::Launch::keeper, platforms::Launch::direct);
  testing::ServiceTrials trials;
  trials.succeeds = doing("exit 0");
  trials.fails = doing("exit 9");
  trials.runs_until_stopped = doing("stop");
  trials.exits_when_stopped = doing("defer metric 1 leave exit 0");
  trials.cannot_start = [](RunId) {
    TrialJobForm form;
    form.command = Command{"/no/such/program"};
    return form;
  };
  trials.needs_variable = [](RunId) {
    TrialJobForm form;
    form.command = "test \"$NNI_CONFORMANCE\" = \"it's here\"";
    return form;
  };
  trials.reports = doing("metric 0.25 metric 0.5 final 0.75");
  trials.kills_itself = doing("signal 9");
  trials.failure_code = 9;
  std::deque<Place> places;  // one for each case: they use the same runs
  trials.alive = [&places] {
    // What is dying already may do so: a sanitizer ends a trial with the help of a second process.
    for (const process::Identity& one : places.back().processes()) {
      const int file = process::open_pidfd(one.pid);
      pollfd end{file, POLLIN, 0};
      if (file < 0) continue;
      ::poll(&end, 1, 1000);
      ::close(file);
    }
    return places.back().processes().size();
  };

  // What starts trials directly is this process, which needs files itself.
  std::optional<OpenFileLimit> limit;
  if (launch == platforms::Launch::keeper)
    trials.outage = [&places, &limit](bool away) {
      limit.reset();
      if (away) limit.emplace(places.back().keeper(), 0);
    };

  const testing::ConformanceReport report = testing::check_training_service<platforms::Local>(
      [&places, launch] { return places.emplace_back().local(launch); }, trials,
      [&places, launch] { return places.back().local(launch); });

  INFO(report.to_string());
  CHECK(report.passed());
  // Only a keeper outlives its manager.
  const bool adopts = std::any_of(report.checks().begin(), report.checks().end(), [](const testing::Check& check) {
    return check.name == "adopt finds a run by its name alone, and the run continues";
  });
  CHECK(adopts == (launch == platforms::Launch::keeper));
  for (const Place& place : places) CHECK(place.processes().empty());
}
