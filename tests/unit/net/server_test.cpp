#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/net/server.hpp>

#include "echo_server.hpp"

using namespace nni;
using nni_test::echo_server;
using nni_test::RawAnswer;
using nni_test::RawHttp;
using nni_test::turns;

CO_TEST_CASE("server: a request reaches its handler and the answer its client", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer answer = co_await client.exchange("PUT", "/a/b?c=d", "the body", "X-Thing: thing\r\n");

  CHECK(answer.status == 200);
  CHECK(answer.body == "PUT /a/b c=d thing the body");
  co_await server->close();
}

CO_TEST_CASE("server: both loopback addresses answer on one port", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp four(ctx.executor());
  co_await four.connect(server->port());
  const RawAnswer by_four = co_await four.exchange("GET", "/");
  CHECK(by_four.status == 200);

  RawHttp six(ctx.executor());
  bool has_six = true;
  try {
    co_await six.connect(server->port(), "::1");
  } catch (const boost::system::system_error&) {
    has_six = false;
  }
  if (!has_six) NNI_CO_SKIP_OR_FAIL("IPv6 on the loopback interface");
  const RawAnswer by_six = co_await six.exchange("GET", "/");
  CHECK(by_six.status == 200);
  co_await server->close();
}

CO_TEST_CASE("server: a connection is used again, and pipelined requests are answered in order", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  co_await client.send(
      "GET /1 HTTP/1.1\r\n\r\nPUT /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\n\r\nGET /4 HT");
  const RawAnswer first = co_await client.receive();
  const RawAnswer second = co_await client.receive();
  const RawAnswer third = co_await client.receive();
  co_await client.send("TP/1.1\r\n\r\n");
  const RawAnswer fourth = co_await client.receive();

  CHECK(first.body == "GET /1   ");
  CHECK(second.body == "PUT /2   abc");
  CHECK(third.body == "GET /3   ");
  CHECK(fourth.body == "GET /4   ");
  CHECK(server->connections() == 1);
  co_await server->close();
}

CO_TEST_CASE("server: an answer may come later, and requests behind it wait for their turn", "[net][server]") {
  std::vector<std::pair<std::string, net::Responder>> kept;
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [&kept](const net::Request& request, net::Responder reply) {
    kept.emplace_back(std::string(request.path), std::move(reply));
  });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());
  co_await client.send("GET /first HTTP/1.1\r\n\r\nGET /second HTTP/1.1\r\n\r\n");
  co_await turns(ctx);

  REQUIRE(kept.size() == 1);
  CHECK(kept[0].first == "/first");
  CHECK(kept[0].second.wanted());
  kept[0].second.send(200, "one");
  CHECK(kept.size() == 1);  // not handled inside the call that answered
  CHECK_FALSE(kept[0].second.wanted());
  kept[0].second.send(200, "again");
  const RawAnswer first = co_await client.receive();
  co_await turns(ctx);
  REQUIRE(kept.size() == 2);
  kept[1].second.send(201, "two");
  const RawAnswer second = co_await client.receive();

  CHECK(first.body == "one");
  CHECK(second.status == 201);
  CHECK(second.body == "two");
  co_await server->close();
}

CO_TEST_CASE("server: a responder that is dropped answers 503", "[net][server]") {
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [](const net::Request&, net::Responder) {});
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer answer = co_await client.exchange("GET", "/");

  CHECK(answer.status == 503);
  co_await server->close();
}

CO_TEST_CASE("server: a handler that throws costs its client a 500 and nobody else anything", "[net][server]") {
  std::vector<std::string> lines;
  const Log log([&lines](LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  const auto server = net::Server::create(ctx.executor(), {}, log);
  server->route(
      "GET", "/", [](const net::Request&, net::Responder) -> void { throw Error(Errc::internal, "broken handler"); });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer first = co_await client.exchange("GET", "/");
  const RawAnswer second = co_await client.exchange("GET", "/");

  // The responder was given away and died with the exception.
  CHECK(first.status >= 500);
  CHECK(second.status >= 500);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("broken handler") != std::string::npos);
  co_await server->close();
}

CO_TEST_CASE("server: the longest route wins, and a method that no route takes is told so", "[net][server]") {
  const auto server = net::Server::create(ctx.executor());
  const auto say = [](std::string what) {
    return [what](const net::Request&, net::Responder reply) { reply.send(200, what); };
  };
  server->route("", "/api/", say("any"));
  server->route("PUT", "/api/", say("put"));
  server->route("GET", "/api/long/", say("long"));
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer get = co_await client.exchange("GET", "/api/x");
  const RawAnswer put = co_await client.exchange("PUT", "/api/x");
  const RawAnswer longest = co_await client.exchange("GET", "/api/long/x");
  const RawAnswer fallback = co_await client.exchange("DELETE", "/api/long/x");
  const RawAnswer none = co_await client.exchange("GET", "/other");

  CHECK(get.body == "any");
  CHECK(put.body == "put");
  CHECK(longest.body == "long");
  CHECK(fallback.body == "any");
  CHECK(none.status == 404);
  co_await server->close();

  const auto narrow = net::Server::create(ctx.executor());
  narrow->route("PUT", "/", say("put"));
  narrow->open();
  RawHttp other(ctx.executor());
  co_await other.connect(narrow->port());
  const RawAnswer refused = co_await other.exchange("GET", "/");
  CHECK(refused.status == 405);
  co_await narrow->close();
}

CO_TEST_CASE("server: a client that asks before it sends its body is told to go on", "[net][server]") {
  const auto server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  co_await client.send("PUT /x HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const RawAnswer go_on = co_await client.receive();
  co_await client.send("body");
  const RawAnswer answer = co_await client.receive();

  CHECK(go_on.status == 100);
  CHECK(answer.body == "PUT /x   body");
  co_await server->close();
}

CO_TEST_CASE("server: a client that asks to close gets its answer first", "[net][server]") {
  const auto server = echo_server(ctx);
  for (const char* request : {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawHttp client(ctx.executor());
    co_await client.connect(server->port());
    co_await client.send(request);
    const RawAnswer answer = co_await client.receive();
    CHECK(answer.status == 200);
    CHECK(answer.head.header("connection") == "close");
    const bool ended = co_await client.ended();
    CHECK(ended);
  }
  co_await server->close();
}

CO_TEST_CASE("server: a client that closes its sending direction still gets the answer", "[net][server]") {
  std::vector<net::Responder> kept;
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());
  co_await client.send("GET / HTTP/1.1\r\n\r\n");
  client.finish_sending();
  co_await turns(ctx);

  REQUIRE(kept.size() == 1);
  CHECK_FALSE(kept[0].wanted());  // as far as the server can tell it has left
  kept[0].send(200, "all the same");
  const RawAnswer answer = co_await client.receive();

  CHECK(answer.body == "all the same");
  co_await server->close();
}

CO_TEST_CASE("server: a large answer reaches a client that reads slowly", "[net][server]") {
  const std::string large(20'000'000, 'z');
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [&large](const net::Request&, net::Responder reply) { reply.send(200, large); });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  co_await client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  CHECK(server->busy() == 1);
  const RawAnswer first = co_await client.receive();
  const RawAnswer second = co_await client.receive();

  CHECK(first.body.size() == large.size());
  CHECK(second.body == large);
  co_await server->close();
}
