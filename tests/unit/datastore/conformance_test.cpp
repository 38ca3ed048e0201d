#include "support/catch.hpp"

#include <cerrno>
#include <fstream>
#include <memory>

#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/data_store_conformance.hpp>

#include "support/failing_files.hpp"
#include "support/recording_vfs.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

// Runs the suite over one kind of store, with the ways to damage and to break it.
template <class Store>
testing::ConformanceReport check_store();

template <>
testing::ConformanceReport check_store<datastore::Memory>() {
  testing::StoreSetup setup;
  setup.persistent = false;
  return testing::check_data_store<datastore::Memory>([] { return datastore::Memory(); }, setup);
}

template <>
testing::ConformanceReport check_store<datastore::Journal>() {
  const nni_test::TemporaryDirectory place;
  const auto files = std::make_shared<nni_test::FailingFiles>();
  testing::StoreSetup setup;
  setup.damage = [&place](const ExperimentId& id) {
    std::fstream file(place.path() / id.value / "db" / "nni.journal");
    file.seekp(200);
    file.put('~');
  };
  setup.break_writing = [&files] { files->fail_all(nni_test::Call::write, ENOSPC); };
  setup.mend_writing = [&files] { files->mend(); };
  return testing::check_data_store<datastore::Journal>(
      [&place, &files] { return datastore::Journal{{.directory = place.path(), .system = files}}; }, setup);
}

template <>
testing::ConformanceReport check_store<datastore::Sqlite>() {
  const nni_test::TemporaryDirectory place;
  nni_test::RecordingVfs disk;
  testing::StoreSetup setup;
  setup.damage = [&place](const ExperimentId& id) {
    std::ofstream(place.path() / id.value / "db" / "nni.sqlite", std::ios::trunc)
        << "this is no database, whatever its name says";
  };
  setup.break_writing = [&disk] {
    disk.change([](const nni_test::RecordingVfs::Asked& asked) {
      const bool fails = asked.call == nni_test::RecordingVfs::Call::write;
      return nni_test::RecordingVfs::Fault{fails ? SQLITE_FULL : SQLITE_OK, 0, false};
    });
  };
  setup.mend_writing = [&disk] { disk.change({}); };
  return testing::check_data_store<datastore::Sqlite>(
      [&] { return datastore::Sqlite{{.directory = place.path(), .vfs = disk.name()}}; }, setup);
}

}  // namespace

TEMPLATE_TEST_CASE("every data store keeps the promises of a data store", "[datastore]", datastore::Memory,
                   datastore::Journal, datastore::Sqlite) {
  const testing::ConformanceReport report = check_store<TestType>();

  INFO(report.to_string());
  CHECK(report.passed());
  CHECK(report.checks().size() > 25);
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
