#include "support/co_test.hpp"
#include "support/raw_http.hpp"
#include "support/turns.hpp"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <nni/core/error.hpp>
#include <nni/net/server.hpp>

#include "echo_server.hpp"

using namespace nni;
using nni_test::echo_server;
using nni_test::RawAnswer;
using nni_test::RawHttp;
using nni_test::turns;

CO_TEST_CASE("server: a port in use is an error that says what to do", "[net][server]") {
  const auto first = echo_server(ctx);
  net::ServerOptions options;
  options.port = first->port();
  const auto second = net::Server::create(ctx.executor(), options);

  try {
    second->open();
    FAIL("the port was taken twice");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::in_use);
    CHECK(error.message().find(std::to_string(first->port())) != std::string::npos);
    CHECK(error.message().find("another port") != std::string::npos);
  }
  co_await first->close();
  second->open();  // free again at once
  CHECK(second->port() == options.port);
  co_await second->close();
}

TEST_CASE("server: an address that is none, or none of this machine, is refused", "[net][server]") {
  boost::asio::io_context io(1);
  for (const char* wrong : {"nonsense", "300.1.1.1", "192.0.2.77"}) {
    INFO(wrong);
    net::ServerOptions options;
    options.listen = wrong;
    const auto server = net::Server::create(io.get_executor(), options);
    CHECK_THROWS_AS(server->open(), Error);
    try {
      server->open();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::config_invalid);
    }
  }
}

CO_TEST_CASE("server: closing ends all connections, and late answers go nowhere", "[net][server]") {
  std::vector<net::Responder> kept;
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept.push_back(std::move(reply)); });
  server->open();
  RawHttp waiting(ctx.executor());
  co_await waiting.connect(server->port());
  co_await waiting.send("GET / HTTP/1.1\r\n\r\n");
  RawHttp idle(ctx.executor());
  co_await idle.connect(server->port());
  co_await turns(ctx);
  REQUIRE(kept.size() == 1);
  CHECK(server->connections() == 2);

  co_await server->close();

  CHECK(server->connections() == 0);
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
      const auto server = net::Server::create(io.get_executor());
      server->route("GET", "/", [&kept](const net::Request&, net::Responder reply) { kept = std::move(reply); });
      server->open();
      boost::asio::ip::tcp::socket socket(io);
      socket.connect({boost::asio::ip::address_v4::loopback(), server->port()});
      boost::asio::write(socket, boost::asio::buffer("GET / HTTP/1.1\r\n\r\n", 18));
      while (!kept.wanted()) io.run_one();
    }
    CHECK_FALSE(kept.wanted());
  }
  kept.send(200, "nobody is there");
}

CO_TEST_CASE("server: a handler may close the server", "[net][server]") {
  const auto server = net::Server::create(ctx.executor());
  server->route("GET", "/", [&server](const net::Request& request, net::Responder reply) {
    reply.send(200, "bye");
    server->stop();
    CHECK(request.path == "/stop");
  });
  server->open();
  RawHttp client(ctx.executor());
  co_await client.connect(server->port());

  const RawAnswer answer = co_await client.exchange("GET", "/stop");

  CHECK(answer.body == "bye");
  co_await server->close();
}
