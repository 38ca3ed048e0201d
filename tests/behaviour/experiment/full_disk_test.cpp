// An experiment whose records cannot be kept for a while, or never again.

#include "support/catch.hpp"

#include <atomic>
#include <chrono>
#include <set>
#include <string>

#include <nni/core/error.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>

#include "support/recording_vfs.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using nni_test::RecordingVfs;

namespace {

void fill(RecordingVfs& disk) {
  disk.change([](const RecordingVfs::Asked& asked) {
    return RecordingVfs::Fault{asked.call == RecordingVfs::Call::write ? SQLITE_FULL : SQLITE_OK, 0, false};
  });
}

ExperimentOptions options(const nni_test::TemporaryDirectory& place, Resume resume = Resume::never) {
  return {
      .id = "abc",
      .directory = place.path(),
      .resume = resume,
      .concurrency = 3,
      .max_trials = 30,
      .handle_signals = false,
      .shutdown_limit = std::chrono::seconds(2)};
}

// Loses its last records: it can hand out nothing any more, or cannot be closed.
class Failing : public datastore::Memory {
 public:
  enum class Where { page, close };
  explicit Failing(Where where) : where_(where) {}

  awaitable<TrialPage> page(TrialQuery query) {
    if (where_ == Where::page) throw Error(Errc::storage_failed, "the disk is gone");
    auto work = datastore::Memory::page(std::move(query));
    TrialPage result = co_await std::move(work);
    co_return result;
  }
  awaitable<void> close() {
    auto work = datastore::Memory::close();
    co_await std::move(work);
    if (where_ == Where::close) throw Error(Errc::storage_failed, "the disk is gone");
  }

 private:
  Where where_;
};

}  // namespace

TEST_CASE("experiment: gives no summary of what its store could not keep to the end", "[experiment][faults]") {
  const auto where = GENERATE(Failing::Where::page, Failing::Where::close);
  Experiment experiment{
      ExperimentOptions{.max_trials = 3, .handle_signals = false},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, Failing{where}};

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("the disk is gone"));
}

TEST_CASE("experiment: a full disk pauses it with the reason, and it goes on when there is space",
          "[experiment][faults]") {
  nni_test::TemporaryDirectory place;
  RecordingVfs disk;
  std::atomic<int> begun = 0;
  std::atomic<bool> is_full = false;
  std::atomic<int> begun_while_full = 0;
  Experiment experiment{
      options(place), platforms::InProcess{[&](TrialHandle& trial) {
        ++begun;
        if (is_full) ++begun_while_full;
        trial.report_intermediate_result(0.25);
        trial.report_final_result(trial.parameter<double>("x"));
      }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)},
      datastore::Sqlite{{.directory = place.path(), .vfs = disk.name()}}};
  std::set<std::string> reasons;
  int ended = 0;
  int seen_full = 0;
  experiment.observe(
      {.on_trial_ended =
           [&](const TrialJobDetail&) {
             if (++ended == 10) fill(disk);
           },
       .on_progress =
           [&](const Progress& now) {
             if (now.waiting_reason.find("the disk is full") == std::string::npos) return;
             reasons.insert(now.waiting_reason);
             is_full = true;  // what was started before may still begin
             if (++seen_full < 3) return;
             is_full = false;
             disk.change({});
           }});

  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::succeeded) == 30);
  CHECK(begun == 30);
  CHECK(begun_while_full <= 3);
  REQUIRE(reasons.size() == 1);
  CHECK_THAT(*reasons.begin(), Catch::Contains("nni.sqlite") && Catch::Contains("free space"));
}

TEST_CASE("experiment: one that waits for space can be stopped, and be resumed later", "[experiment][faults]") {
  nni_test::TemporaryDirectory place;
  RecordingVfs disk;
  std::set<std::uint64_t> told;
  {
    Experiment experiment{
        options(place), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
        tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)},
        datastore::Sqlite{{.directory = place.path(), .vfs = disk.name()}}};
    experiment.observe(
        {.on_trial_ended =
             [&](const TrialJobDetail& trial) {
               told.insert(trial.trial.number);
               if (told.size() == 10) fill(disk);
             },
         .on_progress =
             [&](const Progress& now) {
               if (now.waiting_reason.find("the disk is full") != std::string::npos) experiment.request_stop();
             }});
    const Summary summary = experiment.run();
    CHECK(summary.status == ExperimentStatus::stopped);
  }

  disk.change({});
  Experiment again{
      options(place, Resume::always), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)},
      datastore::Sqlite{{.directory = place.path(), .vfs = disk.name()}}};
  const Summary summary = again.run();
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 30);
}

TEST_CASE("experiment: a directory that is deleted while it runs ends it with a reason", "[experiment][faults]") {
  nni_test::TemporaryDirectory place;
  Experiment experiment{
      options(place), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, datastore::Sqlite{{.directory = place.path()}}};
  int ended = 0;
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail&) {
    if (++ended == 5) std::filesystem::remove_all(place.path() / "abc");
  }});

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("was removed or replaced while the experiment ran"));
}
