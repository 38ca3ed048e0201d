#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <utility>

#include <nni/core/error.hpp>
#include <nni/trial/http_connection.hpp>

namespace nni::trial {

namespace detail {

NNI_INLINE Error connection_lost(const std::string& problem) {
  return Error(Errc::connection_lost, "the channel to the manager: " + problem);
}

NNI_INLINE Error connection_lost(const std::string& problem, int code) {
  return connection_lost(
      problem + " (" + boost::system::error_code(code, boost::system::system_category()).message() + ")");
}

// Connects with a limit on time. Returns 0 or the error.
NNI_INLINE int connect_within(int socket, const sockaddr* address, socklen_t size, Duration limit) {
  if (::connect(socket, address, size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  const SteadyPoint until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return ETIMEDOUT;
    pollfd waiting{socket, POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1'000'000)) + 1);
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int code = 0;
    socklen_t length = sizeof code;
    if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) != 0) return errno;
    return code;
  }
}

}  // namespace detail

NNI_INLINE HttpConnection::HttpConnection(std::string_view url, Duration connect_timeout, Duration answer_limit)
    : connect_timeout_(connect_timeout), answer_limit_(answer_limit) {
  Result<net::Url> parsed = net::parse_url(url);
  if (!parsed) throw config_error("NNI_TRIAL_COMMAND_CHANNEL", parsed.error().message());
  url_ = std::move(*parsed);
  if (url_.scheme != "http") throw config_error("NNI_TRIAL_COMMAND_CHANNEL", "its scheme is not http");
}

NNI_INLINE HttpConnection::~HttpConnection() { disconnect(); }

NNI_INLINE void HttpConnection::disconnect() noexcept {
  const std::lock_guard lock(mutex_);
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  input_.clear();
}

NNI_INLINE void HttpConnection::abort() noexcept {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  if (socket_ >= 0) ::shutdown(socket_, SHUT_RDWR);
}

NNI_INLINE void HttpConnection::connect() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(url_.host.c_str(), std::to_string(url_.port).c_str(), &hints, &found); code != 0)
    throw detail::connection_lost("host " + url_.host + " is unknown (" + ::gai_strerror(code) + ")");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);

  int failure = EHOSTUNREACH;
  for (const addrinfo* address = found; address; address = address->ai_next) {
    if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
    const int fresh = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fresh < 0) {
      failure = errno;
      continue;
    }
    failure = detail::connect_within(fresh, address->ai_addr, address->ai_addrlen, connect_timeout_);
    if (failure != 0) {
      ::close(fresh);
      continue;
    }
    const int on = 1;
    ::setsockopt(fresh, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fresh, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // a manager's machine that vanished is noticed
    const std::lock_guard lock(mutex_);
    socket_ = fresh;
    if (aborted_) ::shutdown(socket_, SHUT_RDWR);
    return;
  }
  throw detail::connection_lost("cannot connect to " + url_.authority(), failure);
}

// Waits until the socket is ready or was shut down by `abort`.
NNI_INLINE void HttpConnection::wait(short events) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until_ - std::chrono::steady_clock::now()).count();
  if (left <= 0)
    throw Error(Errc::timed_out, "the channel to the manager: no complete answer within " + to_string(answer_limit_));
  pollfd waiting{socket_, events, 0};
  ::poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1'000'000)) + 1);
}

NNI_INLINE void HttpConnection::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait(POLLOUT);
    } else if (errno != EINTR) {
      throw detail::connection_lost("sending failed", errno);
    }
  }
}

NNI_INLINE void HttpConnection::receive_more() {
  std::array<char, 16 * 1024> bytes;
  if (std::chrono::steady_clock::now() >= until_) wait(POLLIN);  // also of a server that never pauses
  while (true) {
    const ssize_t size = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (size > 0) {
      input_.append(bytes.data(), static_cast<std::size_t>(size));
      return;
    }
    if (size == 0) throw detail::connection_lost("the manager closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait(POLLIN);
    } else if (errno != EINTR) {
      throw detail::connection_lost("receiving failed", errno);
    }
  }
}

NNI_INLINE HttpAnswer HttpConnection::receive() {
  constexpr std::size_t most_bytes = 64 * 1024 * 1024;
  const auto check = [](std::size_t bytes) {
    if (bytes > most_bytes) throw Error(Errc::protocol, "the channel to the manager: an answer has more than 64 MiB");
  };
  constexpr int most_interim = 16;  // answers that only say that there will be one
  int interim = 0;
  HttpAnswer answer;
  net::ResponseHead head;
  do {
    if (interim++ > most_interim)
      throw Error(Errc::protocol, "the channel to the manager: interim answers without end");
    while (true) {
      std::optional<net::ResponseHead> complete = net::parse_response_head(input_).value();
      if (complete) {
        head = std::move(*complete);
        break;
      }
      receive_more();
    }
    input_.erase(0, head.size);
  } while (head.status < 200);
  answer.status = head.status;

  if (head.framing == net::BodyFraming::length) {
    check(head.content_length);
    while (input_.size() < head.content_length) receive_more();
    answer.body = input_.substr(0, head.content_length);
    input_.erase(0, head.content_length);
  } else if (head.framing == net::BodyFraming::chunked) {
    net::ChunkDecoder decoder;
    while (!decoder.feed(input_, answer.body).value()) {
      check(answer.body.size());
      receive_more();
    }
  } else if (head.framing == net::BodyFraming::until_close) {
    try {
      while (true) {
        receive_more();
        check(input_.size());
      }
    } catch (const Error& error) {
      if (error.code() != Errc::connection_lost) throw;
    }
    answer.body = std::exchange(input_, {});
  }
  if (!head.keep_alive) disconnect();
  return answer;
}

NNI_INLINE HttpAnswer HttpConnection::exchange_once() {
  if (socket_ < 0) connect();
  until_ = std::chrono::steady_clock::now() + answer_limit_;
  send_all(request_);
  return receive();
}

NNI_INLINE HttpAnswer
HttpConnection::exchange(std::string_view method, std::string_view body, std::string_view content_type) {
  if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
  request_.assign(method);
  request_ += ' ';
  request_ += url_.target();
  request_ += " HTTP/1.1\r\nHost: ";
  request_ += url_.authority();
  if (method != "GET") {
    request_ += "\r\nContent-Type: ";
    request_ += content_type;
    request_ += "\r\nContent-Length: ";
    request_ += std::to_string(body.size());
  }
  request_ += "\r\n\r\n";
  request_ += body;

  const bool used_before = socket_ >= 0;
  try {
    try {
      return exchange_once();
    } catch (const Error& error) {
      // A server may end an idle connection at any time; the first request after that is what finds it out.
      if (!used_before || error.code() != Errc::connection_lost || !input_.empty() || aborted_) throw;
      disconnect();
      return exchange_once();
    }
  } catch (const Error& error) {
    disconnect();
    if (aborted_) throw Error(Errc::closed, "the channel to the manager was closed");
    throw;
  }
}

}  // namespace nni::trial
