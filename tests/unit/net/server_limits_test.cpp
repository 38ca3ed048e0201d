#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nni/net/server.hpp>

#include "echo_server.hpp"

using namespace nni;
using nni_test::echo_server;
using nni_test::RawAnswer;
using nni_test::RawHttp;
using nni_test::turns;

CO_TEST_CASE("server: a body over the limit is answered 413 and the connection ended", "[net][server]") {
  net::ServerOptions options;
  options.max_body_bytes = 1000;
  net::Server server = echo_server(ctx, options);
  RawHttp fits(ctx.executor());
  co_await fits.connect(server.port());
  const RawAnswer good = co_await fits.exchange("PUT", "/", std::string(1000, 'x'));
  CHECK(good.status == 200);

  RawHttp announced(ctx.executor());
  co_await announced.connect(server.port());
  const RawAnswer large = co_await announced.exchange("PUT", "/", std::string(200'000, 'x'));
  CHECK(large.status == 413);
  CHECK(large.body.find("1000") != std::string::npos);
  CHECK_FALSE(large.head.keep_alive);
  const bool ended = co_await announced.ended();
  CHECK(ended);

  RawHttp chunked(ctx.executor());
  co_await chunked.connect(server.port());
  co_await chunked.send(
      "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" + std::string(0x800, 'y') + "\r\n0\r\n\r\n");
  const RawAnswer unannounced = co_await chunked.receive();
  CHECK(unannounced.status == 413);
  co_await server.close();
}

CO_TEST_CASE("server: a header over the limit is answered 431", "[net][server]") {
  net::ServerOptions options;
  options.max_head_bytes = 1024;
  net::Server server = echo_server(ctx, options);
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  const RawAnswer answer = co_await client.exchange("GET", "/", "", "X-Long: " + std::string(2000, 'x') + "\r\n");

  CHECK(answer.status == 431);
  co_await server.close();
}

CO_TEST_CASE("server: what is not HTTP is answered 400, and other clients notice nothing", "[net][server]") {
  net::Server server = echo_server(ctx);
  RawHttp good(ctx.executor());
  co_await good.connect(server.port());
  for (const char* wrong : {"GARBAGE\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                            "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"}) {
    INFO(wrong);
    RawHttp bad(ctx.executor());
    co_await bad.connect(server.port());
    co_await bad.send(wrong);
    const RawAnswer answer = co_await bad.receive();
    CHECK(answer.status == 400);
  }
  const RawAnswer answer = co_await good.exchange("GET", "/still");
  CHECK(answer.status == 200);
  co_await server.close();
}

CO_TEST_CASE("server: a connection that is idle or half sent for too long is ended", "[net][server]") {
  net::ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(20);
  options.request_timeout = std::chrono::milliseconds(20);
  net::Server server = echo_server(ctx, options);
  RawHttp silent(ctx.executor());
  co_await silent.connect(server.port());
  RawHttp slow(ctx.executor());
  co_await slow.connect(server.port());
  co_await slow.send("PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");

  const bool silent_ended = co_await silent.ended();
  const bool slow_ended = co_await slow.ended();

  CHECK(silent_ended);
  CHECK(slow_ended);
  CHECK(server.connections() == 0);
  co_await server.close();
}

CO_TEST_CASE("server: an answer that is awaited has no limit on time", "[net][server]") {
  net::ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(10);
  options.request_timeout = std::chrono::milliseconds(10);
  std::vector<net::Responder> kept;
  net::Server server(ctx.executor(), options);
  server.route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server.open();
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(server.port());
  co_await waiting.send("GET / HTTP/1.1\r\n\r\n");
  RawHttp idle(ctx.executor());
  co_await idle.connect(server.port());
  const bool idle_ended = co_await idle.ended();  // at least one limit has passed now

  CHECK(idle_ended);
  REQUIRE(kept.size() == 1);
  kept[0].send(200, "late");
  const RawAnswer answer = co_await waiting.receive();
  CHECK(answer.body == "late");
  co_await server.close();
}

CO_TEST_CASE("server: beyond the limit on connections the longest idle one makes room", "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 3;
  net::Server server = echo_server(ctx, options);
  std::vector<std::unique_ptr<RawHttp>> clients;
  for (int index = 0; index < 6; ++index) {
    clients.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await clients.back()->connect(server.port());
    const RawAnswer answer = co_await clients.back()->exchange("GET", "/" + std::to_string(index));
    CHECK(answer.status == 200);
    CHECK(server.connections() <= 3);
  }
  const bool first_ended = co_await clients[0]->ended();
  CHECK(first_ended);
  co_await server.close();
}

CO_TEST_CASE("server: clients wait while all connections are busy", "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 1;
  std::vector<net::Responder> kept;
  net::Server server(ctx.executor(), options);
  server.route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server.open();
  RawHttp first(ctx.executor());
  co_await first.connect(server.port());
  co_await first.send("GET / HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  RawHttp second(ctx.executor());
  co_await second.connect(server.port());  // in the queue of the system
  co_await second.send("GET / HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  REQUIRE(kept.size() == 1);

  kept[0].send(200, "first");
  first.close();
  while (kept.size() < 2) co_await turns(ctx, 1);
  kept[1].send(200, "second");
  const RawAnswer answer = co_await second.receive();

  CHECK(answer.body == "second");
  co_await server.close();
}
