#include "support/co_test.hpp"
#include "support/raw_http.hpp"

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <nni/core/error.hpp>
#include <nni/net/server.hpp>

using namespace nni;
using nni_test::RawAnswer;
using nni_test::RawHttp;

namespace {

net::Server echo_server(Context& ctx, net::ServerOptions options = {}) {
  net::Server server(ctx.executor(), std::move(options));
  server.route("", "/", [](const net::Request& request, net::Responder reply) {
    std::string text(request.method);
    text += " ";
    text += request.path;
    text += " ";
    text += request.query;
    text += " ";
    text += request.header("x-thing");
    text += " ";
    text += request.body;
    reply.send(200, text);
  });
  server.open();
  return server;
}

// Lets the server handle what it can without waiting.
awaitable<void> turns(Context& ctx, int count = 8) {
  for (int turn = 0; turn < count; ++turn) {
    auto work = boost::asio::post(ctx.executor(), boost::asio::use_awaitable);
    co_await std::move(work);
  }
}

}  // namespace

CO_TEST_CASE("server: a request reaches its handler and the answer its client", "[net][server]") {
  net::Server server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  const RawAnswer answer = co_await client.exchange("PUT", "/a/b?c=d", "the body", "X-Thing: thing\r\n");

  CHECK(answer.status == 200);
  CHECK(answer.body == "PUT /a/b c=d thing the body");
  co_await server.close();
}

CO_TEST_CASE("server: both loopback addresses answer on one port", "[net][server]") {
  net::Server server = echo_server(ctx);
  RawHttp four(ctx.executor());
  co_await four.connect(server.port());
  const RawAnswer by_four = co_await four.exchange("GET", "/");
  CHECK(by_four.status == 200);

  RawHttp six(ctx.executor());
  bool has_six = true;
  try {
    co_await six.connect(server.port(), "::1");
  } catch (const boost::system::system_error&) {
    has_six = false;
  }
  if (!has_six) NNI_CO_SKIP_OR_FAIL("IPv6 on the loopback interface");
  const RawAnswer by_six = co_await six.exchange("GET", "/");
  CHECK(by_six.status == 200);
  co_await server.close();
}

CO_TEST_CASE("server: a connection is used again, and pipelined requests are answered in order", "[net][server]") {
  net::Server server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

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
  CHECK(server.connections() == 1);
  co_await server.close();
}

CO_TEST_CASE("server: an answer may come later, and requests behind it wait for their turn", "[net][server]") {
  std::vector<std::pair<std::string, net::Responder>> kept;
  net::Server server(ctx.executor());
  server.route("GET", "/", [&kept](const net::Request& request, net::Responder reply) {
    kept.emplace_back(std::string(request.path), std::move(reply));
  });
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());
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
  co_await server.close();
}

CO_TEST_CASE("server: a responder that is dropped answers 503", "[net][server]") {
  net::Server server(ctx.executor());
  server.route("GET", "/", [](const net::Request&, net::Responder) {});
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  const RawAnswer answer = co_await client.exchange("GET", "/");

  CHECK(answer.status == 503);
  co_await server.close();
}

CO_TEST_CASE("server: a handler that throws costs its client a 500 and nobody else anything", "[net][server]") {
  std::vector<std::string> lines;
  const Log log([&lines](LogLevel, std::string_view, std::string_view text) { lines.emplace_back(text); });
  net::Server server(ctx.executor(), {}, log);
  server.route(
      "GET", "/", [](const net::Request&, net::Responder) -> void { throw Error(Errc::internal, "broken handler"); });
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  const RawAnswer first = co_await client.exchange("GET", "/");
  const RawAnswer second = co_await client.exchange("GET", "/");

  // The responder was given away and died with the exception.
  CHECK(first.status >= 500);
  CHECK(second.status >= 500);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("broken handler") != std::string::npos);
  co_await server.close();
}

CO_TEST_CASE("server: the longest route wins, and a method that no route takes is told so", "[net][server]") {
  net::Server server(ctx.executor());
  const auto say = [](std::string what) {
    return [what](const net::Request&, net::Responder reply) { reply.send(200, what); };
  };
  server.route("", "/api/", say("any"));
  server.route("PUT", "/api/", say("put"));
  server.route("GET", "/api/long/", say("long"));
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

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
  co_await server.close();

  net::Server narrow(ctx.executor());
  narrow.route("PUT", "/", say("put"));
  narrow.open();
  RawHttp other(ctx.executor());
  co_await other.connect(narrow.port());
  const RawAnswer refused = co_await other.exchange("GET", "/");
  CHECK(refused.status == 405);
  co_await narrow.close();
}

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

CO_TEST_CASE("server: a client that asks before it sends its body is told to go on", "[net][server]") {
  net::Server server = echo_server(ctx);
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  co_await client.send("PUT /x HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  const RawAnswer go_on = co_await client.receive();
  co_await client.send("body");
  const RawAnswer answer = co_await client.receive();

  CHECK(go_on.status == 100);
  CHECK(answer.body == "PUT /x   body");
  co_await server.close();
}

CO_TEST_CASE("server: a client that asks to close gets its answer first", "[net][server]") {
  net::Server server = echo_server(ctx);
  for (const char* request : {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    RawHttp client(ctx.executor());
    co_await client.connect(server.port());
    co_await client.send(request);
    const RawAnswer answer = co_await client.receive();
    CHECK(answer.status == 200);
    CHECK(answer.head.header("connection") == "close");
    const bool ended = co_await client.ended();
    CHECK(ended);
  }
  co_await server.close();
}

CO_TEST_CASE("server: a client that closes its sending direction still gets the answer", "[net][server]") {
  std::vector<net::Responder> kept;
  net::Server server(ctx.executor());
  server.route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());
  co_await client.send("GET / HTTP/1.1\r\n\r\n");
  client.finish_sending();
  co_await turns(ctx);

  REQUIRE(kept.size() == 1);
  CHECK_FALSE(kept[0].wanted());  // as far as the server can tell it has left
  kept[0].send(200, "all the same");
  const RawAnswer answer = co_await client.receive();

  CHECK(answer.body == "all the same");
  co_await server.close();
}

CO_TEST_CASE("server: a large answer reaches a client that reads slowly", "[net][server]") {
  const std::string large(20'000'000, 'z');
  net::Server server(ctx.executor());
  server.route("GET", "/", [&large](const net::Request&, net::Responder reply) { reply.send(200, large); });
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  co_await client.send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\n");
  co_await turns(ctx);
  CHECK(server.busy() == 1);
  const RawAnswer first = co_await client.receive();
  const RawAnswer second = co_await client.receive();

  CHECK(first.body.size() == large.size());
  CHECK(second.body == large);
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

CO_TEST_CASE("server: a port in use is an error that says what to do", "[net][server]") {
  net::Server first = echo_server(ctx);
  net::ServerOptions options;
  options.port = first.port();
  net::Server second(ctx.executor(), options);

  try {
    second.open();
    FAIL("the port was taken twice");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::in_use);
    CHECK(error.message().find(std::to_string(first.port())) != std::string::npos);
    CHECK(error.message().find("another port") != std::string::npos);
  }
  co_await first.close();
  second.open();  // free again at once
  CHECK(second.port() == options.port);
  co_await second.close();
}

TEST_CASE("server: an address that is none, or none of this machine, is refused", "[net][server]") {
  boost::asio::io_context io(1);
  for (const char* wrong : {"nonsense", "300.1.1.1", "192.0.2.77"}) {
    INFO(wrong);
    net::ServerOptions options;
    options.listen = wrong;
    net::Server server(io.get_executor(), options);
    CHECK_THROWS_AS(server.open(), Error);
    try {
      server.open();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::config_invalid);
    }
  }
}

CO_TEST_CASE("server: closing ends all connections, and late answers go nowhere", "[net][server]") {
  std::vector<net::Responder> kept;
  net::Server server(ctx.executor());
  server.route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server.open();
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(server.port());
  co_await waiting.send("GET / HTTP/1.1\r\n\r\n");
  RawHttp idle(ctx.executor());
  co_await idle.connect(server.port());
  co_await turns(ctx);
  REQUIRE(kept.size() == 1);
  CHECK(server.connections() == 2);

  co_await server.close();

  CHECK(server.connections() == 0);
  CHECK_FALSE(kept[0].wanted());
  kept[0].send(200, "too late");
  const bool waiting_ended = co_await waiting.ended();
  const bool idle_ended = co_await idle.ended();
  CHECK(waiting_ended);
  CHECK(idle_ended);
}

TEST_CASE("server: it may die with its connections, its context and a kept responder in any order", "[net][server]") {
  net::Responder kept;
  {
    boost::asio::io_context io(1);
    {
      net::Server server(io.get_executor());
      server.route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept = std::move(reply); });
      server.open();
      boost::asio::ip::tcp::socket socket(io);
      socket.connect({boost::asio::ip::address_v4::loopback(), server.port()});
      boost::asio::write(socket, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n", 18));
      while (!kept.wanted()) io.run_one();
    }
    CHECK_FALSE(kept.wanted());
  }
  kept.send(200, "nobody is there");
}

CO_TEST_CASE("server: a handler may close the server", "[net][server]") {
  net::Server server(ctx.executor());
  server.route("GET", "/", [&server](const net::Request& request, net::Responder reply) {
    reply.send(200, "bye");
    server.stop();
    CHECK(request.path == "/stop");
  });
  server.open();
  RawHttp client(ctx.executor());
  co_await client.connect(server.port());

  const RawAnswer answer = co_await client.exchange("GET", "/stop");

  CHECK(answer.body == "bye");
  co_await server.close();
}
