#include "support/catch.hpp"

#include <string>

#include <nni/async/runtime.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/testing/store_script.hpp>

using namespace nni;
using testing::StoreScript;

TEST_CASE("memory: a store that is not open says so", "[datastore][memory]") {
  Runtime runtime;
  datastore::Memory store;

  CHECK_THROWS_WITH(store.append({}), "the data store is not open");
  CHECK_THROWS_WITH(runtime.run(store.written(StorePosition{})), "the data store is not open");
  CHECK_THROWS_WITH(runtime.run(store.load(TrialId{1})), "the data store is not open");
}

TEST_CASE("memory: another id begins anew, the same id goes on", "[datastore][memory]") {
  Runtime runtime;
  datastore::Memory store;
  runtime.run(store.open(runtime.context(), ExperimentId("first")));
  CHECK_THROWS_AS(runtime.run(store.open(runtime.context(), ExperimentId("first"))), Error);
  store.append(StoreScript().succeeded(1, "0.5").events());
  runtime.run(store.close());

  CHECK(runtime.run(store.open(runtime.context(), ExperimentId("first"))).trials == 1);
  runtime.run(store.close());
  CHECK(runtime.run(store.open(runtime.context(), ExperimentId("second"))).trials == 0);
}

TEST_CASE("memory: a finished trial comes back whole from its packed form", "[datastore][memory]") {
  Runtime runtime;
  datastore::Memory store;
  runtime.run(store.open(runtime.context(), ExperimentId("abc")));
  const std::string large(300'000, 'x');  // larger than a chunk
  store.append(
      StoreScript()
          .succeeded(1, "0.5")
          .ordered(2)
          .intended(2, 0, "alpha")
          .started(2)
          .intermediate(2, 0, "0.25")
          .intermediate(2, 1, "\"" + large + "\"")
          .final_value(2, "{\"default\": 0.75}")
          .final_value(2, "0.125")
          .end(2, 0, JobEnd(EndKind::signalled, 11, "segmentation fault"), TrialJobStatus::failed, true)
          .succeeded(3, "-1e300")
          .events());

  const TrialJobDetail trial = runtime.run(store.load(TrialId{2})).value();
  CHECK(trial.parameters == StoreScript::parameters_of(2));
  CHECK(trial.parameter.value == 1);
  CHECK(trial.status == TrialJobStatus::failed);
  CHECK(trial.submit_time == StoreScript::time_of(2, 0));
  CHECK(trial.start_time == StoreScript::time_of(2, 2));
  CHECK(trial.end_time == StoreScript::time_of(2, 9));
  CHECK(trial.final_value == "{\"default\": 0.75}");
  CHECK(trial.url == "http://example.invalid/" + to_string(TrialId{2}));
  CHECK(trial.working_directory == "/trials/" + to_string(TrialId{2}));
  CHECK(trial.tags == StoreScript::tags_of(RunId{TrialId{2}, 0}));
  CHECK(trial.environment == "alpha");
  CHECK(trial.message == "segmentation fault");
  CHECK(trial.signal == 11);
  CHECK_FALSE(trial.exit_code);

  const std::vector<Metric> values = runtime.run(store.metrics(TrialId{2}));
  REQUIRE(values.size() == 4);
  CHECK(values[1].value.size() == large.size() + 2);
  CHECK(values[1].sequence == 1);
  CHECK(values[1].at == StoreScript::time_of(2, 4));
  CHECK(values[3].value == "0.125");
  CHECK(values[3].kind == MetricKind::final);

  CHECK(runtime.run(store.load(TrialId{3}))->final_value == "-1e300");
  CHECK(runtime.run(store.load(TrialId{1}))->final_value == "0.5");
}

TEST_CASE("memory: a record of a trial that was never ordered is refused", "[datastore][memory]") {
  Runtime runtime;
  datastore::Memory store;
  runtime.run(store.open(runtime.context(), ExperimentId("abc")));

  CHECK_THROWS_WITH(store.append(StoreScript().started(7).events()), Catch::Contains("never ordered"));
  CHECK_THROWS_WITH(store.append(StoreScript().intermediate(7, 0, "1").events()), Catch::Contains("never ordered"));
}
