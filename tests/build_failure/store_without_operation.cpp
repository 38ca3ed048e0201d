// expect: the data store policy does not model nni::DataStore [(]promise 2[)]: it has no operation .awaitable<void> synced[(]StorePosition[)]
// A store that cannot say when a record is safe.

#include "build_failure/parts/policies.hpp"

struct Careless : parts::Store {
  void synced() = delete;
};

parts::Composed<parts::Service, Careless> scheduler;
