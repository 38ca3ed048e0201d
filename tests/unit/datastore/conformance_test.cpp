#include "support/catch.hpp"

#include <fstream>

#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/data_store_conformance.hpp>

#include "sqlite_files.hpp"
#include "temporary_directory.hpp"

using namespace nni;

TEST_CASE("the store in memory keeps the promises of a data store", "[datastore][memory]") {
  testing::StoreSetup setup;
  setup.persistent = false;

  const testing::ConformanceReport report =
      testing::check_data_store<datastore::Memory>([] { return datastore::Memory(); }, setup);

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("the SQLite store keeps the promises of a data store", "[datastore][sqlite]") {
  const nni_test::TemporaryDirectory place;
  const nni_test::FaultyFiles files;
  testing::StoreSetup setup;
  setup.damage = [&place](const ExperimentId& id) {
    std::ofstream(place.path() / id.value / "db" / "nni.sqlite", std::ios::trunc)
        << "this is no database, whatever its name says";
  };
  setup.break_writing = [] { nni_test::FaultyFiles::full = true; };
  setup.mend_writing = [] { nni_test::FaultyFiles::full = false; };

  const testing::ConformanceReport report = testing::check_data_store<datastore::Sqlite>(
      [&place] { return datastore::Sqlite{{.directory = place.path()}}; }, setup);

  INFO(report.to_string());
  CHECK(report.passed());
  CHECK(report.checks().size() > 30);
}

namespace {

// Forgets that it has seen a metric before: the suite has to notice.
class Forgetful {
 public:
  using role = role::data_store;

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id) { return real_.open(context, std::move(id)); }
  StorePosition append(std::span<const StoreEvent> events) {
    std::vector<StoreEvent> changed(events.begin(), events.end());
    for (StoreEvent& event : changed)
      if (auto* received = std::get_if<MetricReceived>(&event)) received->metric.sequence = ++next_;
    return real_.append(changed);
  }
  awaitable<void> written(StorePosition at) { return real_.written(at); }
  awaitable<void> synced(StorePosition at) { return real_.synced(at); }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) { return real_.load(trial); }
  awaitable<TrialPage> page(TrialQuery query) { return real_.page(query); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) { return real_.metrics(trial); }
  awaitable<void> close() { return real_.close(); }

 private:
  datastore::Memory real_;
  std::uint32_t next_ = 100;
};

}  // namespace

TEST_CASE("the suite names the promise that a store breaks", "[datastore]") {
  testing::StoreSetup setup;
  setup.persistent = false;

  const testing::ConformanceReport report = testing::check_data_store<Forgetful>([] { return Forgetful(); }, setup);

  CHECK_FALSE(report.passed());
  CHECK_THAT(report.to_string(), Catch::Contains("promise 4 broken"));
}
