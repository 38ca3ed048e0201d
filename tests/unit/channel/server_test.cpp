#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/channel/server.hpp>
#include <nni/core/error.hpp>
#include <nni/net/url.hpp>

#include "channel_fixture.hpp"

using namespace nni;
using namespace nni::channel;
using namespace nni_test;

CO_TEST_CASE("channel: an address with another token, environment or trial is refused, and no token is logged",
             "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  fixture.server->admit(second_run, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  const std::string token = fixture.server->token(first_run);
  const std::string trial = to_string(first_run.trial);
  const std::string good = "/" + token + "/env/local-env/" + trial;
  CHECK(fixture.target(first_run) == good);
  CHECK(token.size() == 32);
  CHECK(token != fixture.server->token(second_run));

  std::string flipped = token;
  flipped[7] = flipped[7] == '0' ? '1' : '0';
  const std::vector<std::string> wrong = {
      "/",
      "/" + token,
      "/" + flipped + "/env/local-env/" + trial,
      "/env/local-env/" + trial,
      "/" + token + "/env/local-env/" + to_string(second_run.trial),
      "/" + token + "/env/other-env/" + trial,
      "/" + token + "/env/" + trial,
      good + "/x",
      good + "x",
      "/" + token.substr(0, 31) + "/env/local-env/" + trial,
      "//env/local-env/" + trial};
  for (const std::string& target : wrong) {
    INFO(target);
    const RawAnswer put = co_await client.exchange("PUT", target, metric_command(MetricKind::final, 0, "1"));
    const RawAnswer get = co_await client.exchange("GET", target);
    CHECK(put.status == 404);
    CHECK(get.status == 404);
    CHECK(put.body.find(token) == std::string::npos);
  }
  const RawAnswer method = co_await client.exchange("DELETE", good);
  CHECK(method.status == 405);
  CHECK(fixture.messages.empty());
  REQUIRE_FALSE(fixture.log.empty());
  for (const std::string& line : fixture.log) CHECK(line.find(token) == std::string::npos);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a run that was dismissed is gone, also for a question that waits", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "");
  const std::string target = fixture.target(first_run);
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(fixture.server->port());
  co_await waiting.request("GET", target);
  RawHttp reporting(ctx.executor());
  co_await reporting.connect(fixture.server->port());
  co_await reporting.request("PUT", target, metric_command(MetricKind::intermediate, 0, "1"));
  co_await turns(ctx);
  REQUIRE(fixture.messages.size() == 1);

  fixture.server->dismiss(first_run);
  fixture.server->dismiss(first_run);
  const RawAnswer gone = co_await waiting.receive();
  const RawAnswer later = co_await waiting.exchange("PUT", target, metric_command(MetricKind::intermediate, 1, "1"));
  fixture.messages[0].acknowledge();  // received in time, so it is answered
  const RawAnswer in_time = co_await reporting.receive();

  CHECK(gone.status == 410);
  CHECK(later.status == 410);
  CHECK(in_time.status == 200);
  CHECK(fixture.server->runs() == 0);
  CHECK(fixture.server->token(first_run).empty());
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: the next attempt of a trial has an address of its own", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  const std::string before = fixture.server->admit(RunId{TrialId{3}, 0}, "record");
  const std::string again = fixture.server->admit(RunId{TrialId{3}, 0}, "record");
  const std::string next = fixture.server->admit(RunId{TrialId{3}, 1}, "record");

  CHECK(before == again);
  CHECK(before != next);
  const std::string start = "http://localhost:" + std::to_string(fixture.server->port()) + "/";
  CHECK(before.substr(0, start.size()) == start);
  co_await fixture.server->close();
}

CO_TEST_CASE("channel: a server in the place of an earlier one serves trials that live on", "[trial][channel]") {
  ServerOptions options;
  std::string url, token;
  {
    Fixture before(ctx);
    before.server->open();
    url = before.server->admit(first_run, "record");
    token = before.server->token(first_run);
    options.port = before.server->port();
    co_await before.server->close();
  }
  Fixture after(ctx, options);
  after.server->open();
  after.server->restore(first_run, token, "record");
  RawHttp client(ctx.executor());
  co_await client.connect(after.server->port());
  const std::string target = net::parse_url(url).value().path;
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);

  CHECK(after.server->url(first_run) == url);
  CHECK(record_in(answer) == "record");
  CHECK_THROWS_AS(after.server->restore(second_run, "short", "record"), Error);
  co_await after.server->close();
}

CO_TEST_CASE("channel: closing answers who waits for parameters", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "");
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(fixture.server->port());
  co_await waiting.request("GET", fixture.target(first_run));
  co_await turns(ctx);

  co_await fixture.server->close();
  const RawAnswer answer = co_await waiting.receive();

  CHECK(answer.status == 410);
  CHECK(answer.body == "Gone");
}

CO_TEST_CASE("channel: random bytes on the channel harm nobody", "[trial][channel]") {
  Fixture fixture(ctx);
  fixture.server->open();
  fixture.server->admit(first_run, "record");
  const std::string target = fixture.target(first_run);
  std::uint64_t state = 20260905;
  const auto next = [&state] { return state = state * 6364136223846793005ULL + 1442695040888963407ULL, state >> 33; };
  for (int round = 0; round < 200; ++round) {
    RawHttp client(ctx.executor());
    co_await client.connect(fixture.server->port());
    std::string body;
    for (std::uint64_t left = next() % 200; left > 0; --left) body += static_cast<char>(next() & 0xff);
    std::string headers;
    if (round % 3 == 0) headers = "Content-Type: " + std::string(batch_media_type) + "\r\n";
    if (round % 2 == 0) {
      co_await client.send(body + "\r\n\r\n");
    } else {
      co_await client.request("PUT", target, body + "x", headers);
    }
    client.finish_sending();
    co_await turns(ctx, 4);
    for (Message& message : fixture.messages) CHECK(message.metrics.empty());
    fixture.messages.clear();
  }
  RawHttp client(ctx.executor());
  co_await client.connect(fixture.server->port());
  co_await client.exchange("PUT", target, request_parameter);
  const RawAnswer answer = co_await client.exchange("GET", target);
  CHECK(record_in(answer) == "record");
  co_await fixture.server->close();
}
