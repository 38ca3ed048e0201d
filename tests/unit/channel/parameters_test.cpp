#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>

#include "channel_fixture.hpp"

using namespace nni;
using namespace nni::channel;
using namespace nni_test;

CO_TEST_CASE("channel: a trial gets the parameters that were bound to its run, as often as it asks",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record one");
  fixture.server->admit(second_run, "record two");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());

  for (int round = 0; round < 2; ++round) {
    const RawAnswer asked_two = co_await client.exchange("PUT", fixture.target(second_run), request_parameter);
    const RawAnswer asked_one = co_await client.exchange("PUT", fixture.target(first_run), request_parameter);
    CHECK(asked_one.status == 200);
    CHECK(asked_one.body.empty());
    CHECK(asked_two.status == 200);
    const RawAnswer one = co_await client.exchange("GET", fixture.target(first_run));
    const RawAnswer two = co_await client.exchange("GET", fixture.target(second_run));
    CHECK(one.head.header("content-type") == "application/json");
    CHECK(record_in(one) == "record one");
    CHECK(record_in(two) == "record two");
  }
  CHECK(fixture.messages.empty());
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: two questions for parameters before an answer are one", "[trial][channel]") {
  ServerOptions options;
  options.poll_window = std::chrono::milliseconds(10);
  Fixture fixture(ctx, options);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  const std::string target = fixture.target(first_run);
  co_await client.exchange("PUT", target, request_parameter);
  co_await client.exchange("PUT", target, request_parameter);

  const RawAnswer first = co_await client.exchange("GET", target);
  const RawAnswer second = co_await client.exchange("GET", target);

  CHECK(first.status == 200);
  CHECK(second.status == 408);
  CHECK(second.body == "Request Timeout");
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a question is held until there are parameters", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "");
  RawHttp asking(ctx.executor());
  co_await asking.connect(fixture.server->port());
  co_await asking.exchange("PUT", fixture.target(first_run), request_parameter);
  co_await asking.request("GET", fixture.target(first_run));
  co_await turns(ctx);

  fixture.server->send(first_run, "now");
  const RawAnswer answer = co_await asking.receive();

  CHECK(record_in(answer) == "now");
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: further parameters come one by one, and the last is repeated", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "zero");
  const std::string target = fixture.target(first_run);
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  fixture.server->send(first_run, "one");
  fixture.server->send(first_run, "two");
  fixture.server->send(second_run, "nobody");

  for (const char* expected : {"zero", "one", "two", "two"}) {
    co_await client.exchange("PUT", target, request_parameter);
    const RawAnswer answer = co_await client.exchange("GET", target);
    CHECK(record_in(answer) == expected);
  }
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a run of several phases gets each record once, and waits for the next", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "zero");
  fixture.server->expect_phases(first_run);
  fixture.server->expect_phases(second_run);  // not admitted
  const std::string target = fixture.target(first_run);
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer first = co_await client.exchange("GET", target);
  CHECK(record_in(first) == "zero");

  co_await client.exchange("PUT", target, request_parameter);
  co_await client.request("GET", target);
  co_await turns(ctx);
  CHECK(client.socket().available() == 0);
  fixture.server->send(first_run, "one");
  const RawAnswer second = co_await client.receive();
  CHECK(record_in(second) == "one");

  fixture.server->send(first_run, "two");
  RawHttp early(ctx.executor());
  co_await early.connect(fixture.server->port());
  co_await early.request("GET", target);  // it did not ask for another one yet
  co_await turns(ctx);
  CHECK(early.socket().available() == 0);
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer third = co_await early.receive();
  CHECK(record_in(third) == "two");
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a client that left while it waited takes no parameters with it", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "");
  const std::string target = fixture.target(first_run);
  RawHttp gone(ctx.executor());
  co_await gone.connect(fixture.server->port());
  co_await gone.exchange("PUT", target, request_parameter);
  co_await gone.request("GET", target);
  co_await turns(ctx);
  gone.close();
  co_await turns(ctx);

  fixture.server->send(first_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  const RawAnswer answer = co_await client.exchange("GET", target);

  CHECK(record_in(answer) == "record");
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: of many held questions of one run the oldest is let go", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "");
  RawHttp first(ctx.executor());
  co_await first.connect(fixture.server->port());
  co_await first.request("GET", fixture.target(first_run));
  co_await turns(ctx);
  std::vector<std::unique_ptr<RawHttp>> others;
  for (int index = 0; index < 8; ++index) {
    others.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await others.back()->connect(fixture.server->port());
    co_await others.back()->request("GET", fixture.target(first_run));
  }
  const RawAnswer answer = co_await first.receive();

  CHECK(answer.status == 408);
  co_await fixture.server->close();
}
