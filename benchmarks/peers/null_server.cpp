// The counterpart of `metrics_per_request`: an HTTP server that answers and does nothing.
//
//   null_server [PORT]
//
// One thread, Boost.Beast, 127.0.0.1. A PUT is read to its end and answered 200 with an empty body; a GET gets a parameter
// record, so that NNI's Python SDK can begin its trial. Prints the port it listens on as the first line, and ends when
// its standard input is closed.
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

namespace {

constexpr char parameter_command[] =
    R"({"type":"parameter","parameter":"{\"parameter_id\": 0, \"parameter_source\": \"algorithm\", \"parameters\": {\"x\": 0.5}, \"parameter_index\": 0}"})";

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    http::async_read(stream_, buffer_, request_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (!error) self->answer();
    });
  }

 private:
  void answer() {
    response_ = {http::status::ok, request_.version()};
    response_.keep_alive(request_.keep_alive());
    if (request_.method() == http::verb::get) {
      response_.set(http::field::content_type, "application/json");
      response_.body() = parameter_command;
    }
    response_.prepare_payload();
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code error, std::size_t) {
      if (error || !self->response_.keep_alive()) return self->close();
      self->read();
    });
  }

  void close() {
    beast::error_code ignored;
    stream_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  tcp::socket stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](beast::error_code error, tcp::socket socket) {
    if (error) return;
    socket.set_option(tcp::no_delay(true));
    std::make_shared<Connection>(std::move(socket))->read();
    accept(acceptor);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  asio::io_context context{1};
  const auto port = static_cast<unsigned short>(argc > 1 ? std::atoi(argv[1]) : 0);
  tcp::acceptor acceptor{context, tcp::endpoint{asio::ip::address_v4::loopback(), port}};
  acceptor.listen(1024);
  std::cout << acceptor.local_endpoint().port() << std::endl;
  accept(acceptor);

  asio::posix::stream_descriptor input{context, 0};
  std::array<char, 64> ignored{};
  input.async_read_some(asio::buffer(ignored), [&context](beast::error_code, std::size_t) { context.stop(); });
  context.run();
} catch (const std::exception& error) {
  std::cerr << "null_server: " << error.what() << '\n';
  return 1;
}
