// Experiments without any library for their records: killed, resumed, looked at, and carried over into another store.

#include "support/catch.hpp"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <nni/datastore/convert.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/experiment/view.hpp>
#include <nni/nni.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

nni_test::ChildEnd manage(const std::filesystem::path& where, int trials, int kill_at) {
  nni_test::Child child(
      {nni_test::program("journal_manager").string(), where.string(), std::to_string(trials), std::to_string(kill_at)},
      {});
  return child.wait();
}

template <class Store>
Summary look(Store store) {
  return view(std::move(store), ExperimentId("parabola"), {}, 100);
}

std::vector<std::string> parameters_of(const Summary& summary) {
  std::vector<std::string> texts;
  for (const TrialJobDetail& trial : summary.trials) texts.push_back(trial.parameters.text());
  return texts;
}

}  // namespace

TEST_CASE("journal: an experiment that is killed again and again comes to the same end", "[journal][resume]") {
  const nni_test::TemporaryDirectory whole, parts;
  REQUIRE(manage(whole.path(), 20, 0).output == "20\n");
  const Summary expected = look(datastore::Journal{{.directory = whole.path(), .read_only = true}});

  CHECK(manage(parts.path(), 20, 6).code == -SIGKILL);
  CHECK(manage(parts.path(), 20, 1).code == -SIGKILL);
  CHECK(manage(parts.path(), 20, 7).code == -SIGKILL);
  const nni_test::ChildEnd last = manage(parts.path(), 20, 0);
  CHECK(last.output == "20\n");
  CHECK(last.code == 0);

  const Summary found = look(datastore::Journal{{.directory = parts.path(), .read_only = true}});
  CHECK(found.finished == 20);
  CHECK(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 20);
  CHECK(parameters_of(found) == parameters_of(expected));
  REQUIRE(found.best());
  CHECK(found.best()->final_value == expected.best()->final_value);
}

TEST_CASE("journal: an experiment goes on in another kind of store", "[journal][resume]") {
  const nni_test::TemporaryDirectory whole, parts, other;
  REQUIRE(manage(whole.path(), 20, 0).output == "20\n");
  const Summary expected = look(datastore::Journal{{.directory = whole.path(), .read_only = true}});
  CHECK(manage(parts.path(), 20, 9).code == -SIGKILL);

  datastore::convert(datastore::Journal{{.directory = parts.path(), .read_only = true}},
                     datastore::Sqlite{{.directory = other.path()}}, ExperimentId("parabola"));
  Experiment experiment{
      ExperimentOptions{
          .id = "parabola",
          .directory = other.path(),
          .resume = Resume::always,
          .concurrency = 2,
          .max_trials = 20,
          .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) {
        const double x = trial.parameter<double>("x");
        trial.report_final_result(x * x);
      }},
      datastore::Sqlite{}, tuning::Random{{uniform("x", -1.0, 1.0)}, seed(99)}};  // the recorded seed counts
  const Summary found = experiment.run();

  CHECK(found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 20);
  CHECK(parameters_of(found) == parameters_of(expected));
}

TEST_CASE("journal: people convert experiments from the shell", "[journal]") {
  const nni_test::TemporaryDirectory from, to;
  REQUIRE(manage(from.path(), 5, 0).output == "5\n");
  const std::string program = nni_test::program("nni-convert").string();
  const std::string source = "journal:" + from.path().string();
  const std::string target = "sqlite:" + to.path().string();

  const nni_test::ChildEnd copied = nni_test::run_child({program, source, target, "parabola"}, {});
  CHECK(copied.output == "parabola: 5 trials, 10 values\n");
  CHECK(copied.code == 0);
  CHECK(look(datastore::Sqlite{{.directory = to.path(), .read_only = true}}).finished == 5);

  const nni_test::ChildEnd again = nni_test::run_child({program, source, target, "parabola"}, {});
  CHECK_THAT(again.output, Catch::Contains("has 5 trials in the store that it should be copied into"));
  CHECK(again.code == 1);
  const nni_test::ChildEnd strange = nni_test::run_child({program, "tape:/dev/st0", target, "parabola"}, {});
  CHECK_THAT(strange.output, Catch::Contains("use journal:DIRECTORY or sqlite:DIRECTORY"));
}
