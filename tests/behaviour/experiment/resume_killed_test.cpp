// An experiment whose process was killed goes on as if nothing had happened, whatever is asked for at the resume.

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/tpe.hpp>

#include "support/temporary_directory.hpp"

using namespace nni;
using namespace std::chrono_literals;

namespace {

SearchSpace plane() { return {uniform("x", -1.0, 1.0), choice("kind", {"a", "b"})}; }
SearchSpace small() { return {choice("x", {1, 2, 3, 4, 5}), choice("kind", {"a", "b", "c", "d"})}; }
SearchSpace wider() { return {choice("x", {4, 5, 6, 7}), choice("kind", {"a", "b", "c", "d"})}; }

ExperimentOptions options(const std::filesystem::path& where, std::uint64_t trials) {
  return {.id = "one",
          .directory = where,
          .resume = Resume::if_exists,
          .max_trials = trials,
          .handle_signals = false,
          .threads = 2};
}

double value_of(TrialHandle& trial) {
  const double x = trial.parameter<double>("x");
  return x * x + (trial.parameter<std::string>("kind") == "a" ? 0.5 : 0.0);
}

/// Runs something in a process of its own, which is expected to be killed on the way.
void killed(const std::function<void()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      work();
    } catch (...) {
    }
    ::_exit(7);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

void die() { ::kill(::getpid(), SIGKILL); }

using Hook = std::function<void(const Control&, TrialHandle&)>;

/// One run of the experiment. @param hook  called in each trial before its result
template <class Tuner>
Summary run(ExperimentOptions settings, Tuner tuner, const Hook& hook = {}, std::vector<ResultImported> imported = {}) {
  std::optional<Control> control;
  Experiment experiment{
      std::move(settings), platforms::InProcess{[&](TrialHandle& trial) {
        if (hook) hook(*control, trial);
        trial.report_final_result(value_of(trial));
      }},
      datastore::Sqlite{}, std::move(tuner)};
  control = experiment.control();
  experiment.import_results(std::move(imported));
  return experiment.run();
}

std::vector<std::string> parameters_of(const Summary& summary) {
  std::vector<std::string> texts;
  for (const TrialJobDetail& trial : summary.trials) texts.push_back(trial.parameters.text());
  return texts;
}

std::size_t different(const Summary& summary) {
  const std::vector<std::string> texts = parameters_of(summary);
  return std::set<std::string>(texts.begin(), texts.end()).size();
}

Hook dies_in(std::uint64_t trial) {
  return [trial](const Control&, TrialHandle& handle) {
    if (handle.run().trial.number == trial && handle.run().attempt == 0) die();
  };
}

template <class Make>
void same_with_and_without_a_kill(Make make, const Hook& hook = {}, const std::vector<ResultImported>& imported = {}) {
  const nni_test::TemporaryDirectory whole, parts;
  const Summary once = run(options(whole.path(), 18), make(), hook, imported);
  for (const std::uint64_t trial : {5, 6, 14})
    killed([&] {
      run(
          options(parts.path(), 18), make(),
          [&](const Control& control, TrialHandle& handle) {
            if (hook) hook(control, handle);
            dies_in(trial)(control, handle);
          },
          imported);
    });

  const Summary again = run(options(parts.path(), 18), make(), hook, imported);

  CHECK(again.finished == once.finished);
  CHECK(parameters_of(again) == parameters_of(once));
  CHECK(again.best()->parameters == once.best()->parameters);
  CHECK(again.unfitting == once.unfitting);
}

/// In trial 4 the space changes, before its result is known.
void widen(const Control& control, TrialHandle& trial) {
  if (trial.run().trial.number != 4) return;
  control.update_search_space(wider());
  control.wait_until_recorded();
}

std::vector<ResultImported> some_results() {
  return results_from_json(R"([{"parameters": {"x": 1, "kind": "b"}, "value": 1.0},
                               {"parameter": {"x": 5, "kind": "a"}, "value": {"default": 25.5}},
                               {"parameters": {"x": 77, "kind": "a"}, "value": 3.0, "intermediates": [1, 2.5]}])");
}

}  // namespace

TEST_CASE("resume: after kill -9 the suggestions are those of a run without it", "[resume][kill]") {
  SECTION("random") {
    same_with_and_without_a_kill([] { return tuning::Random{plane(), seed(3)}; });
  }
  SECTION("random, without repetitions") {
    same_with_and_without_a_kill([] { return tuning::Random{small(), seed(3)}; });
  }
  SECTION("grid") {
    same_with_and_without_a_kill([] { return tuning::Grid{small()}; });
  }
  SECTION("grid over real numbers") {
    same_with_and_without_a_kill([] { return tuning::Grid{plane()}; });
  }
  SECTION("estimator") {
    same_with_and_without_a_kill([] { return tuning::Tpe{plane(), seed(3)}; });
  }
  SECTION("estimator, without repetitions") {
    same_with_and_without_a_kill([] { return tuning::Tpe{small(), seed(3)}; });
  }
}

TEST_CASE("resume: after kill -9 the suggestions from a changed space are those of a run without it",
          "[resume][kill][space]") {
  SECTION("random") {
    same_with_and_without_a_kill([] { return tuning::Random{small(), seed(3)}; }, widen);
  }
  SECTION("grid") {
    same_with_and_without_a_kill([] { return tuning::Grid{small()}; }, widen);
  }
  SECTION("estimator") {
    same_with_and_without_a_kill([] { return tuning::Tpe{small(), {.startup_trials = 3}, seed(3)}; }, widen);
  }
}

TEST_CASE("resume: after kill -9 imported results count as they did", "[resume][kill][import]") {
  SECTION("random") {
    same_with_and_without_a_kill([] { return tuning::Random{small(), seed(3)}; }, {}, some_results());
  }
  SECTION("grid") {
    same_with_and_without_a_kill([] { return tuning::Grid{small()}; }, {}, some_results());
  }
  SECTION("estimator") {
    same_with_and_without_a_kill(
        [] { return tuning::Tpe{small(), {.startup_trials = 2}, seed(3)}; }, {}, some_results());
  }
}

TEST_CASE("resume: no configuration is tried twice after a change of the space", "[resume][space]") {
  const nni_test::TemporaryDirectory where;
  const Hook hook = widen;
  SECTION("random") {
    const Summary summary = run(options(where.path(), 16), tuning::Random{small(), seed(3)}, hook);
    CHECK(different(summary) == 16);
  }
  SECTION("grid") {
    const Summary summary = run(options(where.path(), 16), tuning::Grid{small()}, hook);
    CHECK(different(summary) == 16);
  }
}

TEST_CASE("resume: changes made while it ran survive kill -9, and an edited option wins", "[resume][kill][control]") {
  const nni_test::TemporaryDirectory where;
  killed([&] {
    run(options(where.path(), 4), tuning::Random{plane(), seed(3)}, [](const Control& control, TrialHandle& trial) {
      while (trial.run().trial.number > 2) ::pause();
      if (trial.run().trial.number < 2) return;
      control.set_max_trials(9);
      control.set_concurrency(3);
      control.set_max_duration(10h);
      control.wait_until_recorded();
      die();
    });
  });
  SECTION("the same program goes on with the changes") {
    CHECK(run(options(where.path(), 4), tuning::Random{plane(), seed(3)}).finished == 9);
    CHECK(run(options(where.path(), 4), tuning::Random{plane(), seed(3)}).finished == 9);
  }
  SECTION("what was edited since wins, the rest stays") {
    ExperimentOptions edited = options(where.path(), 6);
    CHECK(run(edited, tuning::Random{plane(), seed(3)}).finished == 6);
    edited.max_trials = 7;
    edited.concurrency = 1;
    std::size_t concurrency = 0;
    Experiment experiment{edited, platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                          datastore::Sqlite{}, tuning::Random{plane(), seed(3)}};
    experiment.observe(Observer{.on_progress = [&](const Progress& progress) {
      concurrency = progress.concurrency;
      CHECK(progress.max_duration == 10h);
    }});
    CHECK(experiment.run().finished == 7);
    CHECK(concurrency == 3);
  }
}

TEST_CASE("resume: a pause survives the manager that dies, and not a stop", "[resume][kill][pause]") {
  const nni_test::TemporaryDirectory where;
  killed([&] {
    run(options(where.path(), 3), tuning::Random{plane(), seed(3)}, [](const Control& control, TrialHandle&) {
      control.pause();
      control.wait_until_recorded();
      die();
    });
  });
  bool paused = false;
  Experiment experiment{
      options(where.path(), 3), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      datastore::Sqlite{}, tuning::Random{plane(), seed(3)}};
  experiment.observe(Observer{.on_progress = [&, control = experiment.control()](const Progress& progress) {
    if (!progress.paused || std::exchange(paused, true)) return;
    CHECK(progress.running == 0);
    control.stop();
  }});

  CHECK(experiment.run().finished == 0);
  CHECK(paused);
  CHECK(run(options(where.path(), 3), tuning::Random{plane(), seed(3)}).finished == 3);
}

TEST_CASE("resume: a trial in the pause before its retry is found in it", "[resume][kill][retry]") {
  const nni_test::TemporaryDirectory where;
  ExperimentOptions settings = options(where.path(), 2);
  settings.max_retries = 1;
  settings.retry_on = RetryOn::failures;
  settings.retry_backoff = 1h;
  settings.retry_backoff_limit = 2h;
  killed([&] {
    run(settings, tuning::Random{plane(), seed(3)}, [](const Control&, TrialHandle& trial) {
      if (trial.run().trial.number == 1) throw std::runtime_error("not yet");
      die();
    });
  });
  std::size_t retrying = 0;
  Experiment experiment{settings, platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        datastore::Sqlite{}, tuning::Random{plane(), seed(3)}};
  experiment.observe(Observer{.on_progress = [&, control = experiment.control()](const Progress& progress) {
    if (progress.finished == 0) return;
    retrying = std::max(retrying, progress.retrying);
    if (progress.retrying == 1) control.cancel(TrialId{1});
  }});

  const Summary summary = experiment.run();

  CHECK(retrying == 1);
  CHECK(summary.trials[0].status == TrialJobStatus::user_canceled);
  CHECK(summary.trials[1].status == TrialJobStatus::succeeded);
}

TEST_CASE("resume: another tuner learns from what there is, and repeats nothing", "[resume][tuner]") {
  const nni_test::TemporaryDirectory where;
  run(options(where.path(), 7), tuning::Tpe{small(), seed(3)});
  CHECK(different(run(options(where.path(), 11), tuning::Grid{small()})) == 11);
  CHECK(different(run(options(where.path(), 15), tuning::Random{small(), seed(4)})) == 15);
  const Summary all = run(options(where.path(), 50), tuning::Grid{small()});

  CHECK(all.finished == 20);  // the whole space
  CHECK(different(all) == 20);
}

TEST_CASE("resume: another space keeps the results that fit it and counts the others", "[resume][space]") {
  const nni_test::TemporaryDirectory where;
  run(options(where.path(), 20), tuning::Grid{small()});
  std::uint64_t unfitting = 0;
  Experiment experiment{
      options(where.path(), 100),
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(value_of(trial)); }}, datastore::Sqlite{},
      tuning::Grid{wider()}};
  experiment.observe(Observer{.on_start = [&](const ExperimentStart& start) { unfitting = start.unfitting; }});

  const Summary summary = experiment.run();

  CHECK(unfitting == 12);  // x of 1, 2, 3 with four kinds
  CHECK(summary.unfitting == 12);
  CHECK(summary.finished == 28);  // 4 and 5 were tried already
  CHECK(different(summary) == 28);
  CHECK(summary.to_json().find("\"unfitting\":12") != std::string::npos);
}

TEST_CASE("resume: failed trials run again as their next attempts when that is asked for", "[resume][retry]") {
  const nni_test::TemporaryDirectory where;
  bool works = false;
  std::map<std::uint64_t, int> calls;
  const Hook hook = [&](const Control&, TrialHandle& trial) {
    ++calls[trial.run().trial.number];
    if (!works && trial.run().trial.number % 2 == 0) throw std::runtime_error("broken");
  };
  CHECK(run(options(where.path(), 6), tuning::Tpe{plane(), seed(3)}, hook).count(TrialJobStatus::failed) == 3);
  works = true;
  ExperimentOptions again = options(where.path(), 8);
  again.retry_failed = true;

  const Summary summary = run(again, tuning::Tpe{plane(), seed(3)}, hook);

  CHECK(summary.count(TrialJobStatus::succeeded) == 8);
  CHECK(summary.count(TrialJobStatus::failed) == 0);
  CHECK(summary.finished == 8);
  CHECK(summary.failures.empty());
  for (const TrialJobDetail& trial : summary.trials) {
    const bool twice = trial.trial.number <= 6 && trial.trial.number % 2 == 0;
    CHECK(trial.attempts == (twice ? 2 : 1));
    CHECK(calls[trial.trial.number] == (twice ? 2 : 1));
  }
  CHECK(run(again, tuning::Tpe{plane(), seed(3)}, hook).finished == 8);
}

TEST_CASE("import: results from elsewhere are learnt from, are no trials, and are not tried again", "[import]") {
  const nni_test::TemporaryDirectory where, other;
  SECTION("from JSON") {
    const Summary summary = run(options(where.path(), 50), tuning::Grid{small()}, {}, some_results());
    CHECK(summary.finished == 18);
    CHECK(summary.unfitting == 1);  // x of 77
  }
  SECTION("from another experiment") {
    run(options(other.path(), 12), tuning::Grid{small()});
    const std::vector<ResultImported> results =
        results_of(datastore::Sqlite{{.directory = other.path(), .read_only = true}}, ExperimentId("one"));
    CHECK(results.size() == 12);
    CHECK(run(options(where.path(), 50), tuning::Random{small(), seed(3)}, {}, results).finished == 8);
    // The same again, as a program does that is started again.
    CHECK(run(options(where.path(), 50), tuning::Random{small(), seed(3)}, {}, results).finished == 8);
  }
  SECTION("the estimator begins with them") {
    std::vector<ResultImported> results;
    for (int step = 0; step < 20; ++step) {
      ResultImported& result = results.emplace_back();
      const double x = -1.0 + 0.1 * step;
      result.parameters = ParametersWriter{}.add("x", x).add("kind", "b").finish();
      result.value = x * x;
    }
    const Summary with = run(options(where.path(), 4), tuning::Tpe{plane(), seed(3)}, {}, results);
    const Summary without = run(options(other.path(), 4), tuning::Tpe{plane(), seed(3)});
    CHECK(parameters_of(with) != parameters_of(without));
    CHECK(with.finished == 4);
  }
}

TEST_CASE("import: what cannot be used is refused, with its place", "[import][errors]") {
  CHECK_THROWS_WITH(results_from_json("{}"), Catch::Contains("results") && Catch::Contains("JSON list"));
  CHECK_THROWS_WITH(
      results_from_json(R"([{"parameters": {"x": 1}, "value": 1}, {"value": NaN}])"), Catch::Contains("results"));
  CHECK_THROWS_WITH(results_from_json(R"([{"parameters": {"x": 1}, "value": 1}, {"value": "no"}])"),
                    Catch::Contains("results[1].parameters") && Catch::Contains("results[1].value"));
  std::vector<ResultImported> results = some_results();
  results[2].history.push_back(std::nan(""));
  CHECK_THROWS_WITH(detail::check_results(results), Catch::Contains("results[2].history[2]"));
}
