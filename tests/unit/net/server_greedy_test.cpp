#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <memory>
#include <string>
#include <vector>

#include <nni/net/server.hpp>

using namespace nni;
using nni_test::RawAnswer;
using nni_test::RawHttp;
using nni_test::turns;

CO_TEST_CASE("server: a client that fills all connections with half-sent requests makes room for another",
             "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 20;
  const auto server = net::Server::create(ctx.executor(), options);
  server->screen([](const net::Request& request) {
    net::Screening verdict;
    verdict.known = true;
    verdict.client = request.path == "/greedy" ? 1 : 2;
    return verdict;
  });
  server->route("", "/", [](const net::Request& request, net::Responder reply) { reply.send(200, request.body); });
  server->open();
  std::vector<std::unique_ptr<RawHttp>> greedy;
  for (int index = 0; index < 20; ++index) {
    greedy.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await greedy.back()->connect(server->port());
    co_await greedy.back()->send("PUT /greedy HTTP/1.1\r\nContent-Length: 10\r\n\r\n{");
    co_await turns(ctx);
  }
  REQUIRE(server->busy() == 20);

  RawHttp other(ctx.executor());
  co_await other.connect(server->port());
  const RawAnswer answer = co_await other.exchange("PUT", "/other", "hello");

  CHECK(answer.body == "hello");
  const bool oldest_ended = co_await greedy.front()->ended();
  CHECK(oldest_ended);
  CHECK(server->busy() == 19);
  co_await server->close();
}
