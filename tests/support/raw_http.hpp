#pragma once

/// @file
/// An HTTP client for tests that says exactly what it is told to, byte for byte.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/net/http_parser.hpp>

namespace nni_test {

/// What the server answered.
class RawAnswer {
 public:
  RawAnswer() = default;
  nni::net::ResponseHead head;
  std::string body;
  unsigned status = 0;  ///< 0: the connection ended without an answer
};

/// One connection to a server on this machine.
class RawHttp {
 public:
  explicit RawHttp(boost::asio::any_io_executor executor) : socket_(std::move(executor)) {}

  nni::awaitable<void> connect(unsigned short port, std::string host = "127.0.0.1") {
    const boost::asio::ip::tcp::endpoint to(boost::asio::ip::make_address(host), port);
    auto work = socket_.async_connect(to, boost::asio::use_awaitable);
    co_await std::move(work);
  }

  /// Sends bytes as they are.
  nni::awaitable<void> send(std::string bytes) {
    auto work = boost::asio::async_write(socket_, boost::asio::buffer(bytes), boost::asio::use_awaitable);
    co_await std::move(work);
  }

  /// Sends a request with a body.
  nni::awaitable<void> request(std::string method, std::string target, std::string body = {},
                               std::string headers = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: test\r\n" + headers;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    auto work = send(text + "\r\n" + body);
    co_await std::move(work);
  }

  /// The next answer.
  nni::awaitable<RawAnswer> receive() {
    RawAnswer answer;
    while (true) {
      auto head = nni::net::parse_response_head(input_).value();
      if (head && input_.size() >= head->size + head->content_length) {
        answer.status = head->status;
        answer.body = input_.substr(head->size, head->content_length);
        input_.erase(0, head->size + head->content_length);
        answer.head = std::move(*head);
        co_return answer;
      }
      auto more = read_some();
      const bool open = co_await std::move(more);
      if (!open) co_return answer;
    }
  }

  /// A request and its answer.
  nni::awaitable<RawAnswer> exchange(std::string method, std::string target, std::string body = {},
                                     std::string headers = {}) {
    auto sent = request(std::move(method), std::move(target), std::move(body), std::move(headers));
    co_await std::move(sent);
    auto received = receive();
    co_return co_await std::move(received);
  }

  /// Waits until the server ends the connection; false when it says something before.
  nni::awaitable<bool> ended() {
    if (!input_.empty()) co_return false;
    auto more = read_some();
    co_return !(co_await std::move(more));
  }

  /// Ends our direction only.
  void finish_sending() { socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send); }

  void close() { socket_.close(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  nni::awaitable<bool> read_some() {
    char bytes[16 * 1024];
    boost::system::error_code failure;
    auto work = socket_.async_read_some(
        boost::asio::buffer(bytes), boost::asio::redirect_error(boost::asio::use_awaitable, failure));
    const std::size_t size = co_await std::move(work);
    input_.append(bytes, size);
    co_return !failure;
  }

  boost::asio::ip::tcp::socket socket_;
  std::string input_;
};

}  // namespace nni_test
