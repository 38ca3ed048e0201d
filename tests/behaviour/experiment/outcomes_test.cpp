// What an experiment says of trials that end in the ways in which trials end.

#include "support/catch.hpp"

#include <limits>
#include <stdexcept>
#include <thread>

#include <nni/nni.hpp>

using namespace nni;

namespace {

ExperimentOptions quiet(std::uint64_t trials, std::size_t concurrency = 2) {
  return {.concurrency = concurrency, .max_trials = trials, .handle_signals = false};
}

SearchSpace line() { return {uniform("x", -1.0, 1.0)}; }

/// Runs one trial and gives it back.
TrialJobDetail only_trial(std::function<void(TrialHandle&)> trial) {
  Experiment experiment{quiet(1), platforms::InProcess{std::move(trial)}, tuning::Random{line(), seed(1)}};
  const Summary summary = experiment.run();
  REQUIRE(summary.trials.size() == 1);
  return summary.trials.front();
}

}  // namespace

TEST_CASE("experiment: runs as many trials as it was told, and finds the best", "[experiment]") {
  Experiment experiment{
      quiet(50, 4),
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(trial.parameter<double>("x")); }},
      tuning::Random{line(), seed(3)}};

  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 50);
  CHECK(summary.count(TrialJobStatus::succeeded) == 50);
  REQUIRE(summary.best());
  double least = 2.0;
  for (const TrialJobDetail& trial : summary.trials) least = std::min(least, final_number(trial).value());
  CHECK(final_number(*summary.best()) == least);
  CHECK(summary.top.size() == 10);
}

TEST_CASE("experiment: maximize turns best round", "[experiment]") {
  ExperimentOptions options = quiet(20);
  options.direction = maximize;
  Experiment experiment{
      options,
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(trial.parameter<double>("x")); }},
      tuning::Random{line(), seed(3)}};

  const Summary summary = experiment.run();

  for (const TrialJobDetail& trial : summary.trials)
    CHECK(final_number(trial).value() <= final_number(*summary.best()).value());
}

TEST_CASE("experiment: one seed gives one set of suggestions, whatever the threads do", "[experiment]") {
  const auto run = [](std::size_t concurrency) {
    Experiment experiment{
        quiet(30, concurrency), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(0.0); }},
        tuning::Random{line(), seed(11)}};
    std::vector<std::string> texts;
    for (const TrialJobDetail& trial : experiment.run().trials) texts.push_back(trial.parameters.text());
    return texts;
  };
  CHECK(run(1) == run(8));
}

TEST_CASE("experiment: a callable that throws has failed, with the text", "[experiment]") {
  const TrialJobDetail trial = only_trial([](TrialHandle&) { throw std::runtime_error("no such learning rate"); });

  CHECK(trial.status == TrialJobStatus::failed);
  CHECK(trial.message == "no such learning rate");
}

TEST_CASE("experiment: a callable that throws after its final value has failed, and the value is kept",
          "[experiment]") {
  const TrialJobDetail trial = only_trial([](TrialHandle& handle) {
    handle.report_final_result(0.5);
    throw std::runtime_error("afterwards");
  });

  CHECK(trial.status == TrialJobStatus::failed);
  CHECK(final_number(trial) == 0.5);
}

TEST_CASE("experiment: a callable that reports nothing succeeds without a value and is nobody's best", "[experiment]") {
  Experiment experiment{quiet(3), platforms::InProcess{[](TrialHandle&) {}}, tuning::Random{line(), seed(1)}};

  const Summary summary = experiment.run();

  CHECK(summary.count(TrialJobStatus::succeeded) == 3);
  CHECK(summary.best() == nullptr);
  CHECK(summary.without_value == 3);
  CHECK(summary.no_value == "it reported no final result");
  CHECK_THAT(summary.to_json(), Catch::Contains("\"without_value\":3"));
}

TEST_CASE("experiment: a callable may return its objective", "[experiment]") {
  SECTION("a number is the final value") {
    Experiment experiment{
        quiet(1), platforms::InProcess{[](TrialHandle&) { return 0.5; }}, tuning::Random{line(), seed(1)}};
    const Summary summary = experiment.run();
    REQUIRE(summary.best());
    CHECK(final_number(*summary.best()) == 0.5);
    CHECK(summary.without_value == 0);
  }
  SECTION("unless it reported one") {
    const auto trial = [](TrialHandle& handle) {
      handle.report_final_result(0.25);
      return 1;
    };
    Experiment experiment{quiet(1), platforms::InProcess{trial}, tuning::Random{line(), seed(1)}};
    const Summary summary = experiment.run();
    REQUIRE(summary.best());
    CHECK(final_number(*summary.best()) == 0.25);
  }
  SECTION("a bool says something else") {
    Experiment experiment{
        quiet(1), platforms::InProcess{[](TrialHandle&) { return true; }}, tuning::Random{line(), seed(1)}};
    CHECK(experiment.run().without_value == 1);
  }
}

TEST_CASE("experiment: a callable that was told to stop keeps the final value that it then reports",
          "[experiment][stop]") {
  const bool returns = GENERATE(false, true);
  ExperimentOptions options = quiet(2, 1);
  Experiment experiment{
      options, platforms::InProcess{[returns](TrialHandle& trial) {
        if (trial.sequence() == 0) return trial.report_final_result(3.0);
        while (!trial.stop_requested()) std::this_thread::yield();
        trial.report_final_result(1.0);
        if (!returns) throw std::runtime_error("stopped");
      }},
      tuning::Random{line(), seed(1)}};
  const Control control = experiment.control();
  experiment.observe({.on_progress = [&control](const Progress& progress) {
    if (progress.running == 1 && progress.finished == 1) control.cancel(TrialId{2});
  }});

  const Summary summary = experiment.run();

  REQUIRE(summary.trials.size() == 2);
  CHECK(summary.trials[1].status == TrialJobStatus::user_canceled);
  CHECK(final_number(summary.trials[1]) == 1.0);
  CHECK(final_number(*summary.best()) == 3.0);  // the smaller value was not reached by a whole trial
}

TEST_CASE("experiment: a value that is not a number is kept and is nobody's best", "[experiment]") {
  const TrialJobDetail trial =
      only_trial([](TrialHandle& handle) { handle.report_final_result(std::numeric_limits<double>::quiet_NaN()); });

  CHECK(trial.status == TrialJobStatus::succeeded);
  CHECK(trial.final_value == "NaN");
  CHECK_FALSE(final_number(trial).has_value());
}

TEST_CASE("experiment: a tuner without further suggestions ends it", "[experiment]") {
  ExperimentOptions options = quiet(1000);
  options.max_trials.reset();
  Experiment experiment{options, platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        tuning::Random{SearchSpace{choice("kind", {"a", "b", "c"})}, seed(1)}};

  const Summary summary = experiment.run();

  CHECK(summary.finished == 3);  // a small space is never suggested from twice
  CHECK(summary.status == ExperimentStatus::done);
}

TEST_CASE("experiment: observers hear the start, each end and the summary", "[experiment]") {
  int starts = 0, ends = 0, progress = 0, summaries = 0;
  Experiment experiment{quiet(5), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        tuning::Random{line(), seed(1)}};
  experiment.observe(
      {.on_start = [&](const ExperimentStart& start) { starts += start.platform == "in_process"; },
       .on_trial_ended = [&](const TrialJobDetail&) { ++ends; },
       .on_progress = [&](const Progress& now) { progress += now.max_trials == 5; },
       .on_end = [&](const Summary& summary) { summaries += summary.finished == 5; }});

  experiment.run();

  CHECK(starts == 1);
  CHECK(ends == 5);
  CHECK(progress > 0);
  CHECK(summaries == 1);
}

TEST_CASE("experiment: every wrong option is named at once, before anything starts", "[experiment][errors]") {
  try {
    Experiment experiment{
        ExperimentOptions{.id = "../etc", .concurrency = 0, .max_trials = 0, .trial_command = "python3 train.py"},
        platforms::InProcess{[](TrialHandle&) {}}};
    FAIL("nothing was refused");
  } catch (const ConfigError& error) {
    std::vector<std::string> keys;
    for (const Problem& problem : error.problems()) keys.push_back(problem.key);
    CHECK(keys == std::vector<std::string>{"id", "concurrency", "max_trials", "trial_command"});
  }
}

TEST_CASE("experiment: GPUs are refused before anything starts where nobody can hand them out",
          "[experiment][errors]") {
  int calls = 0;
  ExperimentOptions options = quiet(1);
  options.trial_gpu_number = 2;

  CHECK_THROWS_WITH((Experiment{options, platforms::InProcess{[&calls](TrialHandle&) { ++calls; }}}),
                    Catch::Contains("trial_gpu_number") && Catch::Contains("2 cannot be given"));
  CHECK(calls == 0);

  options.trial_gpu_number = 0;
  Experiment hidden{options, platforms::InProcess{[&calls](TrialHandle&) { ++calls; }}};
  CHECK(hidden.run().count(TrialJobStatus::succeeded) == 1);
  CHECK(calls == 1);
}

TEST_CASE("experiment: a summary is JSON and CSV", "[experiment]") {
  Experiment experiment{quiet(2, 1), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(2.0); }},
                        tuning::Random{line(), seed(1)}};

  const Summary summary = experiment.run();

  CHECK(summary.to_json().find("\"finished\":2") != std::string::npos);
  const std::string csv = summary.to_csv();
  CHECK(csv.starts_with("id,sequence,status,value,seconds,x\r\n"));
  CHECK(csv.find(",SUCCEEDED,2.0,") != std::string::npos);
}

TEST_CASE("experiment: runs once, and says how to go on", "[experiment][errors]") {
  Experiment experiment{quiet(2), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        tuning::Random{line(), seed(1)}};
  CHECK(experiment.run().finished == 2);

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("runs once") && Catch::Contains("nni::Resume::if_exists"));
}

TEST_CASE("experiment: a duration that no clock can reckon with is refused", "[experiment][errors]") {
  try {
    Experiment experiment{
        ExperimentOptions{
            .max_duration = Duration::max(),
            .max_trial_duration = Duration::max(),
            .retry_backoff_limit = Duration::max(),
            .shutdown_limit = Duration::max()},
        platforms::InProcess{[](TrialHandle&) {}}, tuning::Random{line(), seed(1)}};
    FAIL("nothing was refused");
  } catch (const ConfigError& error) {
    std::vector<std::string> keys;
    for (const Problem& problem : error.problems()) keys.push_back(problem.key);
    CHECK(keys ==
          std::vector<std::string>{"max_duration", "max_trial_duration", "retry_backoff_limit", "shutdown_limit"});
    CHECK_THAT(error.what(), Catch::Contains("a hundred years"));
  }
}
