// The smallest data store models the concept; without any one of its obligations it does not.

#include <nni/concepts/data_store.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::data_store;
  awaitable<ExperimentSnapshot> open(Context&, ExperimentId);
  StorePosition append(std::span<const StoreEvent>);
  awaitable<void> written(StorePosition);
  awaitable<void> synced(StorePosition);
  awaitable<std::optional<TrialJobDetail>> load(TrialId);
  awaitable<TrialPage> page(TrialQuery);
  awaitable<std::vector<Metric>> metrics(TrialId);
  awaitable<void> close();
};
static_assert(DataStore<Smallest>);
static_assert(DataStore<datastore::Memory>);
#if NNI_WITH_SQLITE
static_assert(DataStore<datastore::Sqlite>);
#endif

struct NoRole : Smallest {
  using role = void;
};
struct CannotBeMoved : Smallest {
  CannotBeMoved(CannotBeMoved&&) = delete;
};
struct CannotOpen : Smallest {
  void open() = delete;
};
struct TellsNothingAtOpen : Smallest {
  awaitable<void> open(Context&, ExperimentId);
};
struct CannotAppend : Smallest {
  void append() = delete;
};
struct AppendTakesTime : Smallest {
  awaitable<StorePosition> append(std::span<const StoreEvent>);
};
struct KnowsNoWritten : Smallest {
  void written() = delete;
};
struct KnowsNoSynced : Smallest {
  void synced() = delete;
};
struct SyncedBlocks : Smallest {
  void synced(StorePosition);
};
struct CannotLoad : Smallest {
  void load() = delete;
};
struct LoadsAlways : Smallest {
  awaitable<TrialJobDetail> load(TrialId);
};
struct CannotPage : Smallest {
  void page() = delete;
};
struct HoldsEverything : Smallest {
  awaitable<std::vector<TrialJobDetail>> page(TrialQuery);
};
struct KnowsNoMetrics : Smallest {
  void metrics() = delete;
};
struct CannotClose : Smallest {
  void close() = delete;
};
static_assert(!DataStore<NoRole>);
static_assert(!DataStore<CannotBeMoved>);
static_assert(!DataStore<CannotOpen>);
static_assert(!DataStore<TellsNothingAtOpen>);
static_assert(!DataStore<CannotAppend>);
static_assert(!DataStore<AppendTakesTime>);
static_assert(!DataStore<KnowsNoWritten>);
static_assert(!DataStore<KnowsNoSynced>);
static_assert(!DataStore<SyncedBlocks>);
static_assert(!DataStore<CannotLoad>);
static_assert(!DataStore<LoadsAlways>);
static_assert(!DataStore<CannotPage>);
static_assert(!DataStore<HoldsEverything>);
static_assert(!DataStore<KnowsNoMetrics>);
static_assert(!DataStore<CannotClose>);

// What crosses coroutines survives a statement that breaks rule R1.
static_assert(CoroutineSafe<ExperimentSnapshot>);
static_assert(CoroutineSafe<StoreEvent>);
static_assert(CoroutineSafe<StorePosition>);
static_assert(CoroutineSafe<TrialQuery>);
static_assert(CoroutineSafe<TrialPage>);

}  // namespace
