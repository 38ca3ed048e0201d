#include "support/catch.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <nni/keeper/wire/byte_stream.hpp>

using namespace nni;

namespace {

using Socket = boost::asio::local::stream_protocol::socket;

}  // namespace

TEST_CASE("byte stream: a program that is started meanwhile does not hold the connection", "[keeper][byte_stream]") {
  boost::asio::io_context io(1);
  Socket near(io);
  Socket far(io);
  boost::asio::local::connect_pair(near, far);
  const std::array<int, 2> files{near.native_handle(), far.native_handle()};

  const auto first = keeper::make_socket_stream(std::move(near));
  const auto second = keeper::make_socket_stream(std::move(far));

  for (const int file : files) CHECK((::fcntl(file, F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("byte stream: what was sent before the end arrives before it", "[keeper][byte_stream]") {
  boost::asio::io_context io(1);
  Socket near(io);
  Socket far(io);
  boost::asio::local::connect_pair(near, far);
  const auto first = keeper::make_socket_stream(std::move(near));
  const auto second = keeper::make_socket_stream(std::move(far));
  std::string received;
  bool closed = false;
  keeper::ByteStream::Events events;
  events.bytes = [&received](std::string_view bytes) { received += bytes; };
  events.closed = [&closed] { closed = true; };
  second->start(std::move(events));

  first->out() = "the last word";
  first->flush();
  first->close();
  io.run();

  CHECK(received == "the last word");
  CHECK(closed);
}
