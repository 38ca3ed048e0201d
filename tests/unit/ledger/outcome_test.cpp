#include "support/catch.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <nni/ledger/outcome.hpp>

using nni::TrialJobDetail;
using nni::TrialJobStatus;

namespace {

TrialJobDetail trial(TrialJobStatus status, std::optional<std::string> final_value = {}) {
  TrialJobDetail detail;
  detail.trial = nni::TrialId{3};
  detail.status = status;
  detail.final_value = std::move(final_value);
  return detail;
}

}  // namespace

TEST_CASE("a tuner is told of a success only with a finite number", "[core][outcome]") {
  struct Row {
    std::optional<std::string> final_value;
    TrialJobStatus told;
    std::optional<double> value;
  };
  const Row rows[] = {
      {"0.5", TrialJobStatus::succeeded, 0.5},
      {R"({"default": 0.25, "loss": 1})", TrialJobStatus::succeeded, 0.25},
      {std::nullopt, TrialJobStatus::succeeded, std::nullopt},
      {"NaN", TrialJobStatus::failed, std::nullopt},
      {R"({"loss": 0.1})", TrialJobStatus::failed, std::nullopt},
      {R"("good")", TrialJobStatus::failed, std::nullopt},
  };
  for (const Row& row : rows) {
    INFO(row.final_value.value_or("none"));
    const nni::TrialOutcome outcome = nni::outcome_of(trial(TrialJobStatus::succeeded, row.final_value), {});
    CHECK(outcome.status == row.told);
    CHECK(outcome.value == row.value);
    CHECK(outcome.trial == nni::TrialId{3});
  }
}

TEST_CASE("of a trial that was stopped early its final value is told, and otherwise the last finite one",
          "[core][outcome]") {
  const std::vector<double> history{0.7, 0.8, std::numeric_limits<double>::quiet_NaN()};

  CHECK(nni::outcome_of(trial(TrialJobStatus::early_stopped, "0.9"), nni::last_finite(history)).value == 0.9);
  CHECK(nni::outcome_of(trial(TrialJobStatus::early_stopped), nni::last_finite(history)).value == 0.8);
  CHECK_FALSE(nni::outcome_of(trial(TrialJobStatus::early_stopped), {}).value);
  CHECK_FALSE(nni::outcome_of(trial(TrialJobStatus::user_canceled), nni::last_finite(history)).value);
}

TEST_CASE("a success without a usable value is explained", "[core][outcome]") {
  const auto reason = [](std::optional<std::string> final_value) {
    return nni::why_no_value(trial(TrialJobStatus::succeeded, std::move(final_value)));
  };
  CHECK(reason("0.5").empty());
  CHECK(reason(std::nullopt) == "it reported no final result");
  CHECK(reason("NaN") == "its final result is not a finite number: NaN");
  CHECK(reason(R"({"default": Infinity})") == R"(its final result is not a finite number: {"default": Infinity})");
  CHECK(reason(R"({"loss": 0.1})") == R"(its final result has no number under "default": {"loss": 0.1})");
  CHECK(reason(R"("good")") == R"(its final result is not a number: "good")");
  CHECK(reason("\"\x1b[31m" + std::string(100, 'x') + "\"") ==
        "its final result is not a number: \"?[31m" + std::string(54, 'x') + "...");
  CHECK(nni::why_no_value(trial(TrialJobStatus::failed)).empty());
}
