#include "support/catch.hpp"

#include <chrono>
#include <cstddef>
#include <vector>

#include "ledger_table.hpp"

using namespace nni;
using namespace nni_test;

TEST_CASE("ledger: when runs cannot start nothing starts any more, until a live one shows that they can",
          "[ledger][start]") {
  Table table({.concurrency = 2, .max_failed_starts = 2});
  const JobEnd failure =
      GENERATE(JobEnd(EndKind::not_started, 0, "no such program"), JobEnd(EndKind::exited, 127, "no such program"));
  const RunId first = table.running();
  table.end(table.running(), failure);
  CHECK(table.ledger.wanted() == 1);
  table.end(table.running(), failure);

  CHECK(table.ledger.wanted() == 0);
  CHECK(table.ledger.cannot_start().empty());  // one of them still runs
  CHECK_FALSE(table.ledger.finished());

  SECTION("it says something") {
    table.report(first, MetricKind::intermediate, 0, "1");
    CHECK(table.ledger.wanted() == 1);
  }
  SECTION("it ends by itself") {
    table.end(first, JobEnd{EndKind::exited, 1});
    CHECK(table.ledger.wanted() != 0);
    for (int more = 0; more < 5; ++more) table.end(table.running(), failure);
    CHECK(table.ledger.wanted() != 0);
  }
  SECTION("it is stopped, or lost") {
    const EndKind how = GENERATE(EndKind::killed, EndKind::lost);
    table.end(first, JobEnd{how});
    CHECK(table.ledger.wanted() == 0);
    CHECK_THAT(table.ledger.cannot_start(), Catch::StartsWith("no such program"));
  }
  SECTION("it could not start either") {
    table.end(first, failure);
    CHECK_THAT(table.ledger.cannot_start(), Catch::StartsWith("no such program"));
  }
  SECTION("it could not start either, and nobody knows why") {
    table.end(first, JobEnd{EndKind::not_started});
    CHECK_THAT(table.ledger.cannot_start(), Catch::Contains("no reason"));
  }
}
