#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <algorithm>
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
  const auto server = echo_server(ctx, options);
  RawHttp fits(ctx.executor());
  co_await fits.connect(server->port());
  const RawAnswer good = co_await fits.exchange("PUT", "/", std::string(1000, 'x'));
  CHECK(good.status == 200);

  RawHttp announced(ctx.executor());
  co_await announced.connect(server->port());
  const RawAnswer large = co_await announced.exchange("PUT", "/", std::string(200'000, 'x'));
  CHECK(large.status == 413);
  CHECK(large.body.find("1000") != std::string::npos);
  CHECK_FALSE(large.head.keep_alive);
  const bool ended = co_await announced.ended();
  CHECK(ended);

  co_await server->close();
}

CO_TEST_CASE("server: a request with a transfer encoding is answered 411 before anything of its body is read",
             "[net][server]") {
  const auto server = echo_server(ctx);
  for (const char* coding : {"chunked", "Chunked", "gzip, chunked", "identity", "chunked\r\nContent-Length: 3"}) {
    INFO(coding);
    RawHttp client(ctx.executor());
    co_await client.connect(server->port());
    co_await client.send("PUT / HTTP/1.1\r\nTransfer-Encoding: " + std::string(coding) + "\r\n\r\n");
    const RawAnswer answer = co_await client.receive();
    // 400 where the header contradicts itself
    CHECK((answer.status == 411 || answer.status == 400));
    CHECK_FALSE(answer.head.keep_alive);
    co_await client.send("0\r\n");
    co_await client.send("\r");  // a last chunk in pieces
    client.finish_sending();
    const bool ended = co_await client.ended();
    CHECK(ended);
  }
  co_await server->close();
}

CO_TEST_CASE("server: a request that no route takes is answered before its body, which is passed over",
             "[net][server]") {
  const auto server = net::Server::create(ctx.executor());
  std::vector<std::string> bodies;
  server->route("PUT", "/here", [&bodies](const net::Request& request, net::Responder reply) {
    bodies.emplace_back(request.body);
    reply.send(200);
  });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  co_await client.send("PUT /elsewhere HTTP/1.1\r\nContent-Length: 300000\r\n\r\n");
  const RawAnswer refused = co_await client.receive();
  co_await client.send(std::string(300'000, 'x'));
  const RawAnswer taken = co_await client.exchange("PUT", "/here", "body");

  CHECK(refused.status == 404);
  CHECK(taken.status == 200);
  CHECK(bodies == std::vector<std::string>{"body"});
  co_await server->close();
}

CO_TEST_CASE("server: a request arrives whole in whatever pieces it is sent", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());
  const std::string request = "PUT /a?b HTTP/1.1\r\nX-Thing: c\r\nContent-Length: 5\r\n\r\nhello";
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 64U}) {
    for (std::size_t at = 0; at < request.size(); at += piece) {
      co_await client.send(request.substr(at, piece));
      co_await turns(ctx, 2);
    }
    const RawAnswer answer = co_await client.receive();
    CHECK(answer.body == "PUT /a b c hello");
  }
  const std::string large(400'000, 'y');
  const RawAnswer answer = co_await client.exchange("PUT", "/", large);
  CHECK(answer.body == "PUT /   " + large);
  co_await server->close();
}

namespace {

// Knows the clients that ask for `/known`, and answers them with the size of the body.
std::shared_ptr<net::Server> screened_server(Context& ctx, net::ServerOptions options) {
  auto server = net::Server::create(ctx.executor(), std::move(options));
  server->screen([](const net::Request& request) {
    net::Screening verdict;
    verdict.known = request.path == "/known";
    verdict.status = verdict.known ? 0 : 403;
    verdict.reason = "not known";
    return verdict;
  });
  server->route("", "/", [](const net::Request& request, net::Responder reply) {
    reply.send(200, std::to_string(request.body.size()));
  });
  server->open();
  return server;
}

}  // namespace

CO_TEST_CASE("server: beyond the limit on connections those that have shown nothing are closed first",
             "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 4;
  const auto server = screened_server(ctx, options);
  RawHttp known(ctx.executor());
  co_await known.connect(server->port());
  const RawAnswer first = co_await known.exchange("PUT", "/known", "x");
  CHECK(first.status == 200);

  std::vector<std::unique_ptr<RawHttp>> strangers;
  for (int index = 0; index < 12; ++index) {
    strangers.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await strangers.back()->connect(server->port());
    co_await strangers.back()->send("PUT /known HTTP/1.1\r\nHost: ");  // half sent
    co_await turns(ctx);
    CHECK(server->connections() <= 4);
  }
  RawHttp late(ctx.executor());
  co_await late.connect(server->port());
  const RawAnswer newcomer = co_await late.exchange("PUT", "/known", "yy");
  const RawAnswer again = co_await known.exchange("PUT", "/known", "zzz");

  CHECK(newcomer.body == "2");
  CHECK(again.body == "3");
  const bool oldest_ended = co_await strangers.front()->ended();
  CHECK(oldest_ended);
  co_await server->close();
}

CO_TEST_CASE("server: a client that is refused by its header has its answer before it sends a body", "[net][server]") {
  const auto server = screened_server(ctx, {});
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  co_await client.send("PUT /other HTTP/1.1\r\nContent-Length: 1000\r\n\r\n");
  const RawAnswer plain = co_await client.receive();
  co_await client.send(std::string(1000, 'x'));
  co_await client.send("PUT /other HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  const RawAnswer expecting = co_await client.receive();

  CHECK(plain.status == 403);
  CHECK(plain.body == "not known");
  CHECK(plain.head.keep_alive);
  CHECK(expecting.status == 403);
  CHECK_FALSE(expecting.head.keep_alive);  // it may send its body or not
  co_await server->close();
}

CO_TEST_CASE("server: a client that sends many requests at once lets others have their turn", "[net][server]") {
  const auto server = net::Server::create(ctx.executor());
  std::vector<char> order;
  server->route("GET", "/", [&order](const net::Request& request, net::Responder reply) {
    order.push_back(request.path[1]);
    reply.send(200);
  });
  server->open();
  RawHttp greedy(ctx.executor());
  co_await greedy.connect(server->port());
  RawHttp modest(ctx.executor());
  co_await modest.connect(server->port());
  std::string many;
  for (int count = 0; count < 500; ++count) many += "GET /greedy HTTP/1.1\r\n\r\n";

  co_await greedy.send(many);
  const RawAnswer answer = co_await modest.exchange("GET", "/modest");
  const auto place = std::find(order.begin(), order.end(), 'm') - order.begin();
  for (int count = 0; count < 500; ++count) {
    const RawAnswer one = co_await greedy.receive();
    CHECK(one.status == 200);
  }

  CHECK(answer.status == 200);
  CHECK(place < 200);
  CHECK(order.size() == 501);
  co_await server->close();
}

CO_TEST_CASE("server: what all connections hold together is limited, and clients that are known are served meanwhile",
             "[net][server]") {
  net::ServerOptions options;
  options.max_small_bytes = 64 * 1024;
  const auto server = screened_server(ctx, options);
  std::vector<std::unique_ptr<RawHttp>> strangers;
  for (int index = 0; index < 20; ++index) {
    strangers.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await strangers.back()->connect(server->port());
    co_await strangers.back()->send("PUT /known HTTP/1.1\r\nX-Long: " + std::string(10'000, 'x'));
    co_await turns(ctx);
  }
  CHECK(server->connections() < 10);

  // Known ones that stop in the middle have a second as soon as others want to be read.
  std::vector<std::unique_ptr<RawHttp>> halves;
  for (int index = 0; index < 3; ++index) {
    halves.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await halves.back()->connect(server->port());
    co_await halves.back()->send("PUT /known HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" + std::string(40'000, 'x'));
    co_await turns(ctx);
  }
  RawHttp honest(ctx.executor());
  co_await honest.connect(server->port());
  const RawAnswer answer = co_await honest.exchange("PUT", "/known", "body");
  const bool half_ended = co_await halves.front()->ended();

  CHECK(answer.body == "4");
  CHECK(half_ended);
  co_await server->close();
}

CO_TEST_CASE("server: large bodies take turns, and small ones do not wait for them", "[net][server]") {
  net::ServerOptions options;
  options.max_large_bytes = 100'000;
  const auto server = screened_server(ctx, options);
  const std::string head = "PUT /known HTTP/1.1\r\nContent-Length: 80000\r\n\r\n";
  RawHttp first(ctx.executor());
  co_await first.connect(server->port());
  co_await first.send(head + std::string(40'000, 'x'));
  co_await turns(ctx);
  RawHttp second(ctx.executor());
  co_await second.connect(server->port());
  co_await second.send(head + std::string(80'000, 'y'));
  co_await turns(ctx, 50);
  RawHttp small(ctx.executor());
  co_await small.connect(server->port());
  const RawAnswer at_once = co_await small.exchange("PUT", "/known", "body");
  CHECK(at_once.body == "4");
  CHECK(second.socket().available() == 0);

  co_await first.send(std::string(40'000, 'x'));
  const RawAnswer one = co_await first.receive();
  const RawAnswer two = co_await second.receive();

  CHECK(one.body == "80000");
  CHECK(two.body == "80000");
  co_await server->close();
}

CO_TEST_CASE("server: a client of a large body that goes away lets the next one have its turn", "[net][server]") {
  net::ServerOptions options;
  options.max_large_bytes = 100'000;
  const auto server = screened_server(ctx, options);
  const std::string head = "PUT /known HTTP/1.1\r\nContent-Length: 80000\r\n\r\n";
  RawHttp first(ctx.executor());
  co_await first.connect(server->port());
  co_await first.send(head + std::string(40'000, 'x'));
  co_await turns(ctx);
  RawHttp second(ctx.executor());
  co_await second.connect(server->port());
  co_await second.send(head + std::string(80'000, 'y'));
  co_await turns(ctx);

  first.close();
  const RawAnswer answer = co_await second.receive();

  CHECK(answer.body == "80000");
  co_await server->close();
}

CO_TEST_CASE("server: a header over the limit is answered 431", "[net][server]") {
  net::ServerOptions options;
  options.max_head_bytes = 1024;
  const auto server = echo_server(ctx, options);
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer answer = co_await client.exchange("GET", "/", "", "X-Long: " + std::string(2000, 'x') + "\r\n");

  CHECK(answer.status == 431);
  co_await server->close();
}

CO_TEST_CASE("server: what is not HTTP is answered 400, and other clients notice nothing", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp good(ctx.executor());
  co_await good.connect(server->port());
  for (const char* wrong : {"GARBAGE\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                            "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\r\n\r\n"}) {
    INFO(wrong);
    RawHttp bad(ctx.executor());
    co_await bad.connect(server->port());
    co_await bad.send(wrong);
    const RawAnswer answer = co_await bad.receive();
    CHECK(answer.status == 400);
  }
  const RawAnswer answer = co_await good.exchange("GET", "/still");
  CHECK(answer.status == 200);
  co_await server->close();
}

CO_TEST_CASE("server: a connection that is idle or half sent for too long is ended", "[net][server]") {
  net::ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(20);
  options.request_timeout = std::chrono::milliseconds(20);
  const auto server = echo_server(ctx, options);
  RawHttp silent(ctx.executor());
  co_await silent.connect(server->port());
  RawHttp slow(ctx.executor());
  co_await slow.connect(server->port());
  co_await slow.send("PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab");

  const bool silent_ended = co_await silent.ended();
  const bool slow_ended = co_await slow.ended();

  CHECK(silent_ended);
  CHECK(slow_ended);
  CHECK(server->connections() == 0);
  co_await server->close();
}

CO_TEST_CASE("server: an answer that is awaited has no limit on time", "[net][server]") {
  net::ServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(10);
  options.request_timeout = std::chrono::milliseconds(10);
  std::vector<net::Responder> kept;
  const auto server = net::Server::create(ctx.executor(), options);
  server->route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server->open();
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(server->port());
  co_await waiting.send("GET / HTTP/1.1\r\n\r\n");
  RawHttp idle(ctx.executor());
  co_await idle.connect(server->port());
  const bool idle_ended = co_await idle.ended();  // at least one limit has passed now

  CHECK(idle_ended);
  REQUIRE(kept.size() == 1);
  kept[0].send(200, "late");
  const RawAnswer answer = co_await waiting.receive();
  CHECK(answer.body == "late");
  co_await server->close();
}

CO_TEST_CASE("server: beyond the limit on connections the longest idle one makes room", "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 3;
  const auto server = echo_server(ctx, options);
  std::vector<std::unique_ptr<RawHttp>> clients;
  for (int index = 0; index < 6; ++index) {
    clients.push_back(std::make_unique<RawHttp>(ctx.executor()));
    co_await clients.back()->connect(server->port());
    const RawAnswer answer = co_await clients.back()->exchange("GET", "/" + std::to_string(index));
    CHECK(answer.status == 200);
    CHECK(server->connections() <= 3);
  }
  const bool first_ended = co_await clients[0]->ended();
  CHECK(first_ended);
  co_await server->close();
}

CO_TEST_CASE("server: clients wait while all connections are busy", "[net][server]") {
  net::ServerOptions options;
  options.max_connections = 1;
  std::vector<net::Responder> kept;
  const auto server = net::Server::create(ctx.executor(), options);
  server->route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server->open();
  RawHttp first(ctx.executor());
  co_await first.connect(server->port());
  co_await first.send("GET / HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  RawHttp second(ctx.executor());
  co_await second.connect(server->port());  // in the queue of the system
  co_await second.send("GET / HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  REQUIRE(kept.size() == 1);

  kept[0].send(200, "first");
  first.close();
  while (kept.size() < 2) co_await turns(ctx, 1);
  kept[1].send(200, "second");
  const RawAnswer answer = co_await second.receive();

  CHECK(answer.body == "second");
  co_await server->close();
}
