// An experiment whose records cannot be kept for a while, or never again.

#include "support/catch.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/co_spawn.hpp>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/nni.hpp>
#include <nni/testing/manual_clock.hpp>

#include "support/failing_files.hpp"
#include "support/recording_vfs.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;
using nni_test::RecordingVfs;

namespace {

// A disk that can be filled, under a store of each kind.
class SqliteDisk {
 public:
  static constexpr const char* file = "nni.sqlite";

  datastore::Sqlite store(const nni_test::TemporaryDirectory& place) const {
    return datastore::Sqlite{{.directory = place.path(), .vfs = disk_.name()}};
  }
  void fill() {
    disk_.change([](const RecordingVfs::Asked& asked) {
      return RecordingVfs::Fault{asked.call == RecordingVfs::Call::write ? SQLITE_FULL : SQLITE_OK, 0, false};
    });
  }
  void free() { disk_.change({}); }

 private:
  RecordingVfs disk_;
};

class JournalDisk {
 public:
  static constexpr const char* file = "nni.journal";

  datastore::Journal store(const nni_test::TemporaryDirectory& place) const {
    return datastore::Journal{{.directory = place.path(), .system = files_}};
  }
  void fill() { files_->fail_all(nni_test::Call::write, ENOSPC); }
  void free() { files_->mend(); }

 private:
  std::shared_ptr<nni_test::FailingFiles> files_ = std::make_shared<nni_test::FailingFiles>();
};

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

// Fails at its end: it can hand out nothing any more, cannot be closed, or has everything and does not come to an end.
class Failing : public datastore::Memory {
 public:
  enum class Where { page, close, end_of_close };
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
    if (where_ != Where::end_of_close) co_return;
    async::event never;  // tidying up for readers, as long as one lets it
    auto tidying = never.wait();
    co_await std::move(tidying);
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

TEST_CASE("experiment: a store that is only slow to close costs no summary", "[experiment][faults]") {
  Experiment experiment{
      ExperimentOptions{.max_trials = 3, .handle_signals = false, .shutdown_limit = std::chrono::milliseconds(1)},
      platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, Failing{Failing::Where::end_of_close}};

  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 3);
}

TEMPLATE_TEST_CASE("experiment: a full disk pauses it with the reason, and it goes on when there is space",
                   "[experiment][faults]", SqliteDisk, JournalDisk) {
  nni_test::TemporaryDirectory place;
  TestType disk;
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
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, disk.store(place)};
  std::set<std::string> reasons;
  int ended = 0;
  int seen_full = 0;
  experiment.observe(
      {.on_trial_ended =
           [&](const TrialJobDetail&) {
             if (++ended == 10) disk.fill();
           },
       .on_progress =
           [&](const Progress& now) {
             if (now.waiting_reason.find("the disk is full") == std::string::npos) return;
             reasons.insert(now.waiting_reason);
             is_full = true;  // what was started before may still begin
             if (++seen_full < 3) return;
             is_full = false;
             disk.free();
           }});

  const Summary summary = experiment.run();

  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.count(TrialJobStatus::succeeded) == 30);
  CHECK(begun == 30);
  CHECK(begun_while_full <= 3);
  REQUIRE(reasons.size() == 1);
  CHECK_THAT(*reasons.begin(), Catch::Contains(TestType::file) && Catch::Contains("free space"));
}

TEMPLATE_TEST_CASE("experiment: time in which nothing can be recorded is no active time, and the status says why",
                   "[experiment][faults][limits]", SqliteDisk, JournalDisk) {
  nni_test::TemporaryDirectory place;
  TestType disk;
  testing::ManualClock clock;
  Runtime runtime(RuntimeOptions{.clock = clock});
  clock.attach(runtime.io());
  ExperimentOptions settings = options(place);
  settings.concurrency = 1;
  settings.max_trials = 3;
  settings.max_duration = std::chrono::minutes(1);
  Experiment experiment{settings, platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                        tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, disk.store(place)};
  const Control control = experiment.control();
  Progress latest;
  int ended = 0;
  experiment.observe(
      {.on_trial_ended =
           [&](const TrialJobDetail&) {
             if (++ended == 1) disk.fill();
           },
       .on_progress = [&](const Progress& now) { latest = now; }});
  bool done = false;
  boost::asio::co_spawn(
      runtime.io(), experiment.async_run(runtime.context()), [&](std::exception_ptr failure, Summary summary) {
        done = true;
        CHECK_FALSE(failure);
        CHECK(summary.count(TrialJobStatus::succeeded) == 3);
        CHECK(summary.duration < std::chrono::minutes(1));
      });
  const auto step = [&runtime] {
    runtime.io().restart();
    runtime.io().run_one();
  };
  const auto is_full = [&latest] { return latest.waiting_reason.find("the disk is full") != std::string::npos; };
  while (!done && !is_full()) step();

  clock.advance(std::chrono::minutes(5));
  CHECK_FALSE(done);
  CHECK(is_full());
  CHECK(latest.paused);
  CHECK(control.status().paused);
  CHECK_THAT(control.status().waiting_reason, Catch::Contains("the disk is full"));
  CHECK(latest.elapsed < std::chrono::minutes(1));

  disk.free();
  while (!done) {
    // The next try waits for the time, or is under way. Nothing else may come, so there is nothing to block for.
    if (latest.paused)
      clock.advance(std::chrono::seconds(10));
    else
      step();
  }
  CHECK_FALSE(latest.paused);
}

TEMPLATE_TEST_CASE("experiment: one that waits for space can be stopped, and be resumed later", "[experiment][faults]",
                   SqliteDisk, JournalDisk) {
  nni_test::TemporaryDirectory place;
  TestType disk;
  std::set<std::uint64_t> told;
  {
    ExperimentOptions settings = options(place);
    settings.shutdown_limit = std::chrono::seconds(60);
    Experiment experiment{settings, platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
                          tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, disk.store(place)};
    experiment.observe(
        {.on_trial_ended =
             [&](const TrialJobDetail& trial) {
               told.insert(trial.trial.number);
               if (told.size() == 10) disk.fill();
             },
         .on_progress =
             [&](const Progress& now) {
               if (now.waiting_reason.find("the disk is full") != std::string::npos) experiment.request_stop();
             }});
    const auto begin = std::chrono::steady_clock::now();
    // A summary would list ends that no resume finds.
    CHECK_THROWS_WITH(experiment.run(), Catch::Contains("the disk is full"));
    CHECK(std::chrono::steady_clock::now() - begin <
          settings.shutdown_limit / 2);  // what waits for records ends at once
  }

  disk.free();
  Experiment again{
      options(place, Resume::always), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, disk.store(place)};
  const Summary summary = again.run();
  CHECK(summary.status == ExperimentStatus::done);
  CHECK(summary.finished == 30);
}

TEMPLATE_TEST_CASE("experiment: a directory that is deleted while it runs ends it with a reason",
                   "[experiment][faults]", SqliteDisk, JournalDisk) {
  nni_test::TemporaryDirectory place;
  TestType disk;
  Experiment experiment{
      options(place), platforms::InProcess{[](TrialHandle& trial) { trial.report_final_result(1.0); }},
      tuning::Random{SearchSpace{uniform("x", -1.0, 1.0)}, seed(3)}, disk.store(place)};
  int ended = 0;
  experiment.observe({.on_trial_ended = [&](const TrialJobDetail&) {
    if (++ended == 5) std::filesystem::remove_all(place.path() / "abc");
  }});

  CHECK_THROWS_WITH(experiment.run(), Catch::Contains("was removed or replaced while the experiment ran"));
}
