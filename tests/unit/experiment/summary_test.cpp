#include "support/catch.hpp"

#include <string>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/experiment/summary.hpp>

using namespace nni;

namespace {

TrialJobDetail trial(std::uint64_t number, TrialJobStatus status, std::string message = {}) {
  TrialJobDetail detail;
  detail.trial = TrialId{number};
  detail.status = status;
  detail.message = std::move(message);
  return detail;
}

Summary of(ExperimentStatus status, TrialJobStatus ended, std::uint64_t count) {
  Summary summary;
  summary.status = status;
  summary.finished = count;
  summary.by_status[static_cast<std::size_t>(ended)] = count;
  return summary;
}

std::string why_none(const Summary& summary) {
  try {
    static_cast<void>(summary.best_or_throw());
  } catch (const Error& error) {
    CHECK(error.code() == make_error_code(Errc::not_found));
    return error.what();
  }
  return "there is one";
}

}  // namespace

TEST_CASE("summary: the best trial is a reference into it, or a copy of one that is about to go",
          "[experiment][summary]") {
  Summary summary = of(ExperimentStatus::done, TrialJobStatus::succeeded, 1);
  summary.top.push_back(trial(1, TrialJobStatus::succeeded));

  CHECK(&summary.best_or_throw() == summary.best());
  CHECK(std::move(summary).best_or_throw().trial == TrialId{1});
}

TEST_CASE("summary: without a best trial the error says what happened and what to do", "[experiment][summary]") {
  Summary failed = of(ExperimentStatus::done, TrialJobStatus::failed, 40);
  failed.failures.push_back(trial(1, TrialJobStatus::failed, "there is no parameter \"y\""));
  CHECK_THAT(why_none(failed),
             Catch::Contains("no trial succeeded: 40 of 40 failed") &&
                 Catch::Contains("with: there is no parameter \"y\"") && Catch::Contains("correct the trial"));

  CHECK_THAT(why_none(of(ExperimentStatus::done, TrialJobStatus::succeeded, 3)),
             Catch::Contains("although 3 of 3 succeeded") && Catch::Contains("report_final_result"));
  CHECK_THAT(why_none(of(ExperimentStatus::stopped, TrialJobStatus::succeeded, 0)),
             Catch::Contains("stopped before any trial had ended") && Catch::Contains("run it again"));
  CHECK_THAT(why_none(of(ExperimentStatus::stopped, TrialJobStatus::user_canceled, 2)),
             Catch::Contains("stopped before any trial had succeeded"));
  CHECK_THAT(why_none(of(ExperimentStatus::done, TrialJobStatus::early_stopped, 2)),
             Catch::Contains("none of the 2 trials succeeded, because all were stopped"));
  CHECK_THAT(why_none(of(ExperimentStatus::done, TrialJobStatus::succeeded, 0)), Catch::Contains("without a trial"));
}
