#include "behaviour/local/harness.hpp"

#include <deque>

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
  std::deque<Place> places;  // one for each case: they use the same runs

  const testing::ConformanceReport report = testing::check_training_service<platforms::Local>(
      [&places, launch] { return places.emplace_back().local(launch); }, trials);

  INFO(report.to_string());
  CHECK(report.passed());
  for (const Place& place : places) CHECK(place.processes().empty());
}
