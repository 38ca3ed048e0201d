#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/net/detail/request_budget.hpp>

namespace nni::net {

namespace detail {
class Connection;
struct ReplySlot;
}  // namespace detail

/// Settings of `Server`.
struct ServerOptions {
  /// Where to listen: `localhost` (both loopback addresses where the machine has them), or an IPv4 or IPv6 address;
  /// `0.0.0.0` and `::` are every address of the machine, `::` with both protocols.
  std::string listen = "localhost";
  unsigned short port = 0;                       ///< 0: a free one, see `Server::port`
  std::size_t max_head_bytes = 16 * 1024;        ///< request line and header fields; more is answered 431
  std::size_t max_body_bytes = 8 * 1024 * 1024;  ///< more is answered 413
  /// Beyond it the oldest one that showed nothing (see `Screening::known`) is closed, else the longest idle one, else new
  /// ones wait. At most three quarters of the files that the process may have open, so that some are left for its work.
  std::size_t max_connections = 20'000;
  /// Bytes of large bodies (over 64 KiB) that are received or owed an answer, all connections together, by the lengths that
  /// they announce; further ones wait for their turn. One body of `max_body_bytes` is always let in.
  std::size_t max_large_bytes = 64 * 1024 * 1024;
  /// Bytes of everything else that is received or owed an answer, all connections together. Beyond it connections that showed
  /// nothing are closed, the others are not read, and a half-sent request is given one second.
  std::size_t max_small_bytes = 32 * 1024 * 1024;
  Duration request_timeout =
      std::chrono::seconds(60);                      ///< from the first byte of a request to its last; also for a reply
  Duration idle_timeout = std::chrono::minutes(30);  ///< between two requests of a connection
};

/// A request. Views are valid during the call of the handler only.
class Request {
 public:
  std::string_view method;        ///< upper case, as it came
  std::string_view path;          ///< without the query, not decoded
  std::string_view query;         ///< behind the question mark
  std::string_view body;          ///< as it came
  std::string_view content_type;  ///< empty when the client gave none

  /// The value of a header field, any case; empty when there is none.
  [[nodiscard]] std::string_view header(std::string_view name) const { return find_(fields_, name); }

  /// Returns the body for keeps, without a copy where the server has it in a string of its own. Call it once; `body` is not
  /// valid after it.
  [[nodiscard]] std::string take_body() const {
    if (!own_body_ || own_body_->data() != body.data()) return std::string(body);
    return std::move(*std::exchange(own_body_, nullptr));
  }

 private:
  friend class detail::Connection;
  using Find = std::string_view (*)(const void* fields, std::string_view name);
  const void* fields_ = nullptr;
  Find find_ = nullptr;
  mutable std::string* own_body_ = nullptr;
};

/// Answers one request, now or later. Belongs to the executor of the server.
///
/// It may outlive connection, server and executor; then it does nothing. One that is dropped without an answer
/// answers 503, so that no client waits for ever.
class Responder {
 public:
  Responder() = default;
  Responder(Responder&& other) noexcept
      : slot_(std::move(other.slot_)), serial_(other.serial_), share_(std::move(other.share_)) {}
  Responder& operator=(Responder&& other) noexcept;
  ~Responder();

  /// Sends the answer; a second call does nothing.
  /// @param status        HTTP status, 200 to 599
  /// @param body          copied or written before the call returns
  /// @param content_type  ignored for an empty body
  void send(unsigned status, std::string_view body = {}, std::string_view content_type = "text/plain");

  /// True while an answer is owed and the client is still there, as far as is known.
  [[nodiscard]] bool wanted() const noexcept;

 private:
  friend class detail::Connection;
  Responder(std::shared_ptr<detail::ReplySlot> slot, std::uint64_t serial, detail::BudgetShare share) noexcept
      : slot_(std::move(slot)), serial_(serial), share_(std::move(share)) {}

  std::shared_ptr<detail::ReplySlot> slot_;
  std::uint64_t serial_ = 0;
  detail::BudgetShare share_;  // of the body, which the owner of the answer keeps in some form
};

/// Takes a request, and its answer by the responder: at once, or kept for later. It must not throw; a handler that
/// does is logged, and the client gets 500.
using Handler = std::function<void(const Request&, Responder)>;

/// A decision about a request whose header is there and whose body is not read yet.
class Screening {
 public:
  unsigned status = 0;  ///< 0: the body is read and the handler called; else the answer, and the body is passed over
  std::string_view reason;  ///< text of that answer; static
  bool known = false;       ///< the client is authenticated: its connection is among the last to be closed
  /// Names the client, 0 for none. When connections run out, a client that has taken many of them loses its oldest first.
  std::uint64_t client = 0;
};

/// Decides about a request by its header; `body` is empty. It must not throw: a request that it throws for is answered 500.
using Screen = std::function<Screening(const Request&)>;

/// An HTTP/1.1 server on one executor: keep-alive, pipelined requests answered in order, answers that may come later.
///
/// It holds no thread. Clients are limited in size of header and body, in number and in time, and all of them together in
/// memory; a client that breaks a limit or the protocol gets an answer that says so and is disconnected, others notice
/// nothing. A body needs a `Content-Length`: a request with a `Transfer-Encoding` is answered 411. Memory is taken for bytes
/// that have come, never for those that are announced, and a connection for which there is no memory is closed. Source:
/// RFC 9112. All members are called on the executor, which must be single-threaded.
class Server {
 public:
  /// @param executor  single-threaded
  /// @param options   limits and address
  /// @param log       is told about failures of the server, never about contents
  NNI_NEEDS_HTTP(explicit Server(boost::asio::any_io_executor executor, ServerOptions options = {}, Log log = {}));
  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;

  /// Stops at once: connections are cut, nothing more is called.
  ~Server();

  /// Adds a route; the longest matching prefix wins, a route of the request's method before one of any method.
  /// @param method   for instance `PUT`; empty: any
  /// @param prefix   start of the path, for instance `/env/`
  /// @param handler  called for each request that matches; without a match the client gets 404
  void route(std::string method, std::string prefix, Handler handler);

  /// Sets the decision about requests that have a route, made before the body is read. Call it before `open`; without a
  /// screen all clients count as known.
  void screen(Screen screen);

  /// Starts to listen. Plain, because binding does not wait.
  /// @throws Error  `Errc::in_use` when the port is taken, `Errc::config_invalid` for an address that is none of ours
  void open();

  /// The port, once open.
  [[nodiscard]] unsigned short port() const noexcept;

  /// Connections at this moment.
  [[nodiscard]] std::size_t connections() const noexcept;

  /// Connections in the middle of a request or of an answer.
  [[nodiscard]] std::size_t busy() const noexcept;

  /// Accepts no more and cuts all connections, without waiting for their last operations.
  void stop();

  /// Accepts no more, ends all connections and returns when no operation of them is left.
  ///
  /// Answers that were handed over before are sent, as far as the client takes them without waiting.
  [[nodiscard]] awaitable<void> close();

 private:
  std::shared_ptr<detail::ServerCore> core_;
};

}  // namespace nni::net

#if NNI_HEADER_ONLY
#include <nni/net/server_inl.hpp>
#endif
