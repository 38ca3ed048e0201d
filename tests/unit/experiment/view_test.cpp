// An experiment that is looked at: the store is read, nothing else happens.
#include "support/catch.hpp"

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nni/datastore/memory.hpp>
#include <nni/experiment/view.hpp>

namespace {

/// A store that holds one experiment of three trials and notes what is asked of it.
class OneExperiment {
 public:
  using role = nni::role::data_store;

  explicit OneExperiment(std::shared_ptr<std::vector<std::string>> calls) : calls_(std::move(calls)) {}

  nni::awaitable<nni::ExperimentSnapshot> open(nni::Context&, nni::ExperimentId id) {
    calls_->push_back("open " + id.value);
    nni::ExperimentSnapshot snapshot;
    snapshot.exists = id.value == "known";
    snapshot.profile.id = id;
    snapshot.profile.name = "digits";
    snapshot.profile.status = nni::ExperimentStatus::stopped;
    snapshot.profile.exec_duration = std::chrono::seconds(72);
    snapshot.profile.params = R"({"tuner":{"classArgs":{"optimize_mode":"maximize"}}})";
    snapshot.trials = 4;
    snapshot.by_status[static_cast<std::size_t>(nni::TrialJobStatus::succeeded)] = 2;
    snapshot.by_status[static_cast<std::size_t>(nni::TrialJobStatus::failed)] = 1;
    co_return snapshot;
  }
  nni::StorePosition append(std::span<const nni::StoreEvent>) {
    calls_->push_back("append");
    return {};
  }
  nni::awaitable<void> written(nni::StorePosition) { co_return; }
  nni::awaitable<void> synced(nni::StorePosition) { co_return; }
  nni::awaitable<std::optional<nni::TrialJobDetail>> load(nni::TrialId) { co_return std::nullopt; }
  nni::awaitable<nni::TrialPage> page(nni::TrialQuery query) {
    // One trial per page, so that reading on is part of what is tested.
    nni::TrialPage page;
    const std::uint64_t number = query.after.number + 1;
    nni::TrialJobDetail& trial = page.trials.emplace_back();
    trial.trial = nni::TrialId{number};
    trial.status =
        number == 2   ? nni::TrialJobStatus::failed
        : number == 4 ? nni::TrialJobStatus::running
                      : nni::TrialJobStatus::succeeded;
    if (number != 2) trial.final_value = "0." + std::to_string(number);
    page.more = number < 4;
    co_return page;
  }
  nni::awaitable<std::vector<nni::Metric>> metrics(nni::TrialId) { co_return std::vector<nni::Metric>{}; }
  nni::awaitable<void> close() {
    calls_->push_back("close");
    co_return;
  }

 private:
  std::shared_ptr<std::vector<std::string>> calls_;
};
static_assert(nni::DataStore<OneExperiment>);

}  // namespace

TEST_CASE("view: a summary is read from the store, with the recorded direction and status", "[view]") {
  const auto calls = std::make_shared<std::vector<std::string>>();

  const nni::Summary summary = nni::view(OneExperiment(calls), nni::ExperimentId("known"), "runs/known");

  CHECK(*calls == std::vector<std::string>{"open known", "close"});
  CHECK(summary.name == "digits");
  CHECK(summary.directory == "runs/known");
  CHECK(summary.status == nni::ExperimentStatus::stopped);
  CHECK(summary.direction == nni::maximize);
  CHECK(summary.duration == std::chrono::seconds(72));
  CHECK(summary.ordered == 4);
  CHECK(summary.finished == 3);
  REQUIRE(summary.top.size() == 2);
  CHECK(summary.best()->trial == nni::TrialId{3});  // not the running one, whatever it has reported
  REQUIRE(summary.failures.size() == 1);
  CHECK(summary.failures[0].trial == nni::TrialId{2});
  CHECK(summary.trials.size() == 4);
}

TEST_CASE("view: the list of trials is limited, the ranking is not", "[view]") {
  const auto calls = std::make_shared<std::vector<std::string>>();

  const nni::Summary summary = nni::view(OneExperiment(calls), nni::ExperimentId("known"), {}, 1);

  CHECK(summary.trials.size() == 1);
  CHECK(summary.best()->trial == nni::TrialId{3});
}

TEST_CASE("view: an experiment that does not exist is an error that names it", "[view]") {
  const auto calls = std::make_shared<std::vector<std::string>>();
  CHECK_THROWS_WITH(nni::view(OneExperiment(calls), nni::ExperimentId("missing")), Catch::Contains("\"missing\""));
}
