// An experiment that was stopped goes on where it was: nothing is lost, repeated or told twice.

#include "support/catch.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <nni/assessing/median_stop.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/view.hpp>
#include <nni/nni.hpp>
#include <nni/tuning/tpe.hpp>

#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

SearchSpace plane() { return {uniform("x", -1.0, 1.0), choice("kind", {"a", "b"})}; }

ExperimentOptions options(const std::filesystem::path& where, std::uint64_t trials, Resume resume = Resume::if_exists) {
  return {.id = "parabola", .directory = where, .resume = resume, .max_trials = trials, .handle_signals = false};
}

double parabola(TrialHandle& trial) {
  const double x = trial.parameter<double>("x");
  return x * x;
}

template <class Tuner>
Summary run(ExperimentOptions settings, Tuner tuner) {
  Experiment experiment{
      std::move(settings), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(parabola(trial)); }},
      datastore::Sqlite{}, std::move(tuner)};
  return experiment.run();
}

std::vector<std::string> parameters_of(const Summary& summary) {
  std::vector<std::string> texts;
  for (const TrialJobDetail& trial : summary.trials) texts.push_back(trial.parameters.text());
  return texts;
}

}  // namespace

TEST_CASE("resume: a larger budget goes on with the next suggestion", "[resume]") {
  const nni_test::TemporaryDirectory whole, parts;

  const Summary once = run(options(whole.path(), 20), tuning::Tpe{plane(), seed(5)});
  run(options(parts.path(), 8), tuning::Tpe{plane(), seed(5)});
  const Summary again = run(options(parts.path(), 20), tuning::Tpe{plane(), seed(999)});  // the recorded seed counts

  CHECK(again.finished == 20);
  CHECK(parameters_of(again) == parameters_of(once));
  CHECK(again.best()->parameters == once.best()->parameters);
}

TEST_CASE("resume: a finished experiment has nothing left to do", "[resume]") {
  const nni_test::TemporaryDirectory where;
  run(options(where.path(), 5), tuning::Random{plane(), seed(1)});

  const Summary again = run(options(where.path(), 5), tuning::Random{plane(), seed(1)});

  CHECK(again.finished == 5);
  CHECK(again.status == ExperimentStatus::done);
  REQUIRE(again.best());
}

TEST_CASE("resume: trials that were live when it was stopped run again, the others do not", "[resume]") {
  const nni_test::TemporaryDirectory where;
  std::function<void()> stop;
  std::atomic<int> calls = 0;
  const auto trial = [&](TrialHandle& handle) {
    ++calls;
    if (handle.sequence() == 3 && stop) {
      stop();
      while (!handle.stop_requested()) std::this_thread::yield();
      throw std::runtime_error("stopped");
    }
    handle.report_final_result(parabola(handle));
  };
  {
    Experiment first{options(where.path(), 6), platforms::InProcess{trial, {.threads = 1}}, datastore::Sqlite{},
                     tuning::Random{plane(), seed(2)}};
    stop = [&first] { first.request_stop(); };
    const Summary summary = first.run();
    CHECK(summary.status == ExperimentStatus::stopped);
    CHECK(summary.finished == 3);
    stop = nullptr;
  }
  Experiment second{options(where.path(), 6), platforms::InProcess{trial, {.threads = 1}}, datastore::Sqlite{},
                    tuning::Random{plane(), seed(2)}};

  const Summary summary = second.run();

  CHECK(summary.finished == 6);
  CHECK(summary.count(TrialJobStatus::succeeded) == 6);
  CHECK(calls == 7);
  CHECK(summary.trials[3].attempts == 2);
  const std::vector<std::string> texts = parameters_of(summary);
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == 6);
}

TEST_CASE("resume: a trial that had reported its final value when the experiment was stopped is over", "[resume]") {
  const nni_test::TemporaryDirectory where;
  std::function<void()> stop;
  std::atomic<int> calls = 0;
  const auto trial = [&](TrialHandle& handle) {
    ++calls;
    handle.report_final_result(parabola(handle));
    if (handle.sequence() != 1 || !stop) return;
    stop();
    while (!handle.stop_requested()) std::this_thread::yield();
    throw std::runtime_error("stopped");
  };
  {
    Experiment first{options(where.path(), 4), platforms::InProcess{trial, {.threads = 1}}, datastore::Sqlite{},
                     tuning::Random{plane(), seed(2)}};
    stop = [&first] { first.request_stop(); };
    const Summary summary = first.run();
    CHECK(summary.finished == 2);
    CHECK(summary.count(TrialJobStatus::succeeded) == 2);
    stop = nullptr;
  }
  Experiment second{options(where.path(), 4), platforms::InProcess{trial, {.threads = 1}}, datastore::Sqlite{},
                    tuning::Random{plane(), seed(2)}};

  const Summary summary = second.run();

  CHECK(summary.count(TrialJobStatus::succeeded) == 4);
  CHECK(calls == 4);
  CHECK(summary.trials[1].attempts == 1);
}

TEST_CASE("resume: an existing experiment is an error that says how to go on", "[resume][errors]") {
  const nni_test::TemporaryDirectory where;
  run(options(where.path(), 2, Resume::never), tuning::Random{plane(), seed(1)});

  CHECK_THROWS_WITH(run(options(where.path(), 2, Resume::never), tuning::Random{plane(), seed(1)}),
                    Catch::Contains("exists") && Catch::Contains("nni::Resume::if_exists"));
  CHECK(run(options(where.path(), 3), tuning::Random{plane(), seed(1)}).finished == 3);
}

TEST_CASE("resume: what must exist and does not is an error, and leaves nothing that runs", "[resume][errors]") {
  const nni_test::TemporaryDirectory where;

  CHECK_THROWS_WITH(run(options(where.path(), 2, Resume::always), tuning::Random{plane(), seed(1)}),
                    Catch::Contains("there is no experiment"));
}

TEST_CASE("resume: a second manager is refused with the owner's name", "[resume][errors]") {
  const nni_test::TemporaryDirectory where;
  std::string refusal;
  Experiment first{
      options(where.path(), 1), platforms::InProcess{[&](TrialHandle& handle) {
        try {
          run(options(where.path(), 1), tuning::Random{plane(), seed(1)});
        } catch (const Error& error) {
          refusal = error.what();
        }
        handle.report_final_result(1.0);
      }},
      datastore::Sqlite{}, tuning::Random{plane(), seed(1)}};

  CHECK(first.run().finished == 1);

  INFO(refusal);
  CHECK(refusal.find(std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("resume: early stops are replayed to tuner and assessor", "[resume][assessor]") {
  const nni_test::TemporaryDirectory where;
  const auto trial = [](TrialHandle& handle) {
    for (int step = 0; step < 4; ++step) handle.report_intermediate_result(parabola(handle));
    handle.report_final_result(parabola(handle));
  };
  const auto go = [&](std::uint64_t trials) {
    Experiment experiment{options(where.path(), trials), platforms::InProcess{trial}, datastore::Sqlite{},
                          tuning::Tpe{plane(), seed(4)}, assessing::MedianStop{{.start_step = 1}}};
    return experiment.run();
  };
  go(6);

  const Summary summary = go(12);

  CHECK(summary.finished == 12);
  CHECK(summary.trials.size() == 12);
}

TEST_CASE("view: a finished experiment can be looked at, and is not changed by it", "[resume][view]") {
  const nni_test::TemporaryDirectory where;
  const Summary before = run(options(where.path(), 4), tuning::Random{plane(), seed(1)});

  const Summary seen =
      view(datastore::Sqlite{{.directory = where.path(), .read_only = true}}, ExperimentId("parabola"),
           where.path() / "parabola");

  CHECK(seen.finished == 4);
  CHECK(parameters_of(seen) == parameters_of(before));
  CHECK(seen.best()->parameters == before.best()->parameters);
}
