#include "support/catch.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/testing/data_store_conformance.hpp>

#include "support/failing_files.hpp"
#include "support/recording_vfs.hpp"
#include "support/temporary_directory.hpp"

using namespace nni;

namespace {

// Counts trials through a store that only looks, as another process would.
template <class Reader>
std::size_t count_with(Reader reader, const ExperimentId& id) {
  std::size_t trials = 0;
  Runtime runtime;
  const auto look = [&]() -> awaitable<void> {
    auto opening = reader.open(runtime.context(), id);
    const ExperimentSnapshot found = co_await std::move(opening);
    trials = found.trials;
    auto closing = reader.close();
    co_await std::move(closing);
  };
  runtime.run(look());
  return trials;
}

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
  setup.count_beside = [&place](const ExperimentId& id) {
    return count_with(datastore::Journal{{.directory = place.path(), .read_only = true}}, id);
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
  setup.count_beside = [&](const ExperimentId& id) {
    return count_with(datastore::Sqlite{{.directory = place.path(), .read_only = true, .vfs = disk.name()}}, id);
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

// Takes a value whose sequence is not above the last one for a repetition.
class CountsSequences {
 public:
  using role = role::data_store;

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id) { return real_.open(context, std::move(id)); }
  StorePosition append(std::span<const StoreEvent> events) {
    std::vector<StoreEvent> kept;
    for (const StoreEvent& event : events) {
      const auto* received = std::get_if<MetricReceived>(&event);
      if (received == nullptr || received->metric.kind == MetricKind::final || is_next(received->metric))
        kept.push_back(event);
    }
    return real_.append(kept);
  }
  awaitable<void> written(StorePosition at) { return real_.written(at); }
  awaitable<void> synced(StorePosition at) { return real_.synced(at); }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) { return real_.load(trial); }
  awaitable<TrialPage> page(TrialQuery query) { return real_.page(query); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) { return real_.metrics(trial); }
  awaitable<void> close() { return real_.close(); }

 private:
  bool is_next(const Metric& metric) {
    std::uint32_t& next = next_[metric.run];
    if (metric.sequence < next) return false;
    next = metric.sequence + 1;
    return true;
  }

  datastore::Memory real_;
  std::map<RunId, std::uint32_t> next_;
};

// Says at once that everything is kept: it writes when somebody looks, or forgets every second batch.
class Hasty {
 public:
  using role = role::data_store;
  enum class Fault { writes_late, forgets };

  Hasty(std::filesystem::path directory, Fault fault) : real_({.directory = std::move(directory)}), fault_(fault) {}

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id) { return real_.open(context, std::move(id)); }
  StorePosition append(std::span<const StoreEvent> events) {
    at_.value += events.size();
    if (fault_ != Fault::forgets || ++calls_ % 2 == 1) late_.insert(late_.end(), events.begin(), events.end());
    return at_;
  }
  awaitable<void> written(StorePosition) { co_return; }
  awaitable<void> synced(StorePosition) { co_return; }
  awaitable<std::optional<TrialJobDetail>> load(TrialId trial) { return complete().load(trial); }
  awaitable<TrialPage> page(TrialQuery query) { return complete().page(query); }
  awaitable<std::vector<Metric>> metrics(TrialId trial) { return complete().metrics(trial); }
  awaitable<void> close() { return complete().close(); }

 private:
  datastore::Journal& complete() {
    if (!late_.empty()) real_.append(std::exchange(late_, {}));
    return real_;
  }

  datastore::Journal real_;
  Fault fault_;
  std::vector<StoreEvent> late_;
  StorePosition at_{};
  int calls_ = 0;
};

std::string seen_of(Hasty::Fault fault) {
  const nni_test::TemporaryDirectory place;
  testing::StoreSetup setup;
  setup.count_beside = [&place](const ExperimentId& id) {
    return count_with(datastore::Journal{{.directory = place.path(), .read_only = true}}, id);
  };
  return testing::check_data_store<Hasty>([&] { return Hasty(place.path(), fault); }, setup).to_string();
}

}  // namespace

TEST_CASE("the suite notices a store that says too early that something is kept", "[datastore]") {
  CHECK_THAT(seen_of(Hasty::Fault::writes_late), Catch::Contains("promise 2 broken: when written or synced returns"));
  CHECK_THAT(seen_of(Hasty::Fault::forgets), Catch::Contains("promise 2 broken: what was written or synced is there"));
}

TEST_CASE("the suite names the promise that a store breaks", "[datastore]") {
  testing::StoreSetup setup;
  setup.persistent = false;

  const testing::ConformanceReport report = testing::check_data_store<Forgetful>([] { return Forgetful(); }, setup);

  CHECK_FALSE(report.passed());
  CHECK_THAT(report.to_string(), Catch::Contains("promise 4 broken"));

  const testing::ConformanceReport counts =
      testing::check_data_store<CountsSequences>([] { return CountsSequences(); }, setup);
  CHECK_THAT(counts.to_string(), Catch::Contains("promise 4 broken: values are kept in the order of arrival"));
}
