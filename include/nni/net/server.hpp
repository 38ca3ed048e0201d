#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/event.hpp>
#include <nni/core/log.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/time.hpp>
#include <nni/net/detail/request_budget.hpp>

namespace nni::net {

namespace detail {
class Connection;
struct ReplySlot;

/// The limit on time that holds for a connection; each group is a list in the order of `Connection::since`.
enum class Group : std::uint8_t {
  idle,       ///< between two requests
  busy,       ///< in the middle of a request or of an answer
  loading,    ///< in the middle of a large body, or waiting for its turn to send one
  waiting,    ///< owed an answer
  lingering,  ///< answered for the last time
  unproven    ///< not authenticated yet, in whatever state
};
inline constexpr std::size_t group_count = 6;

using Connections = std::list<std::shared_ptr<Connection>>;
}  // namespace detail

/// Settings of `Server`.
struct ServerOptions {
  /// Address to listen on: `localhost` (both loopback addresses where the machine has them), or an IPv4 or IPv6 address;
  /// `0.0.0.0` and `::` are every address of the machine, `::` with both protocols.
  std::string listen = "localhost";
  unsigned short port = 0;                       ///< 0: a free one, see `Server::port`
  std::size_t max_head_bytes = 16 * 1024;        ///< request line and header fields; more is answered 431
  std::size_t max_body_bytes = 8 * 1024 * 1024;  ///< more is answered 413
  /// Beyond it the oldest unauthenticated one (see `Screening::known`) is closed, else the longest idle one, else new
  /// ones wait. At most three quarters of the files that the process may have open, so that some are left for its work.
  std::size_t max_connections = 20'000;
  /// Bytes of large bodies (over 64 KiB) that are received or owed an answer, all connections together, by the lengths that
  /// they announce; further ones wait for their turn. One body of `max_body_bytes` is always let in.
  std::size_t max_large_bytes = 64 * 1024 * 1024;
  /// Bytes of everything else that is received or owed an answer, all connections together. Beyond it unauthenticated
  /// connections are closed, the others are not read, and a half-sent request is given one second.
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
  std::string_view query;         ///< after the question mark
  std::string_view body;          ///< as it came
  std::string_view content_type;  ///< empty when the client gave none

  /// Returns the value of a header field, any case; empty when there is none.
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
/// answers 503, so that no client waits forever.
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
///
/// A route belongs to whoever serves what lies below its prefix: the trial channel (`channel::Server`) has one for the
/// addresses of its trials. Something else that answers requests, such as a status page, adds its own with `route` to the
/// server that it creates or is given; a longer prefix takes precedence.
class Server : public std::enable_shared_from_this<Server> {
 public:
  /// Creates a server that does not listen yet. When the last copy of the result goes, it stops at once.
  /// @param executor  single-threaded
  /// @param options   limits and address
  /// @param log       receives failures of the server, never contents
  NNI_NEEDS_HTTP([[nodiscard]] static std::shared_ptr<Server> create(
      boost::asio::any_io_executor executor, ServerOptions options = {}, Log log = {}));
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Adds a route; the longest matching prefix wins, a route of the request's method before one of any method.
  /// @param method   for instance `PUT`; empty: any
  /// @param prefix   start of the path, for instance `/env/`
  /// @param handler  called for each request that matches; without a match the client gets 404
  void route(std::string method, std::string prefix, Handler handler);

  /// Sets the decision about requests that have a route, made before the body is read. Call it before `open`; without a
  /// screen all clients count as known.
  void screen(Screen screen) { screen_ = std::move(screen); }

  /// Starts to listen. Plain, because binding does not wait.
  /// @throws Error  `Errc::in_use` when the port is taken, `Errc::config_invalid` for an address that is none of ours
  void open();

  /// Returns the port, once open.
  [[nodiscard]] unsigned short port() const noexcept { return port_; }

  /// Returns the number of connections at this moment.
  [[nodiscard]] std::size_t connections() const noexcept { return count_; }

  /// Returns the number of connections in the middle of a request or of an answer.
  [[nodiscard]] std::size_t busy() const noexcept {
    return members(detail::Group::busy).size() + members(detail::Group::loading).size();
  }

  /// Accepts no more and cuts all connections, without waiting for their last operations. Nothing is called afterwards.
  void stop();

  /// Accepts no more, ends all connections and returns when no operation of them is left.
  ///
  /// Answers that were handed over before are sent, as far as the client takes them without waiting.
  [[nodiscard]] awaitable<void> close();

 private:
  friend class detail::Connection;
  friend struct detail::RequestBudget;

  using tcp = boost::asio::ip::tcp;

  struct Listener {
    explicit Listener(tcp::acceptor listening) : acceptor(std::move(listening)) {}
    tcp::acceptor acceptor;
    bool accepting = false;
    bool refused = false;               // the system had no room for the last one
    std::optional<tcp::socket> parked;  // accepted while there was no room
  };

  struct Route {
    std::string method;
    std::string prefix;
    Handler handler;
  };

  Server(boost::asio::any_io_executor executor, ServerOptions options, Log log);

  // ---- for connections
  const Handler* find(std::string_view method, std::string_view path, bool& known_path) const noexcept;
  void move_to(detail::Connection& connection, detail::Group group);
  void remove(detail::Connection& connection);
  void begin_operation() noexcept { ++operations_; }
  void end_operation() {
    if (--operations_ == 0) idle_.notify();
  }
  void complain(std::string_view text) const { log_.warning("http", text); }
  void complain_of_memory(const char* reason) noexcept;

  // True when more bytes may be read; makes room by closing connections that have shown nothing.
  bool has_memory(const detail::Connection& reader);
  // Reads no more from the connection until bytes were given back.
  void starve(detail::Connection& connection);
  // Takes the length of a large body from the budget; false: its turn comes later, see `Connection::granted`.
  bool claim(detail::Connection& connection, std::size_t bytes);
  void withdraw(detail::Connection& connection) noexcept;
  // Bytes were given back to the budget.
  void freed() noexcept;

  // ---- listening
  unsigned short bind(const tcp::endpoint& endpoint, bool dual);
  void open_loopback();
  void accept(Listener& listener);
  void accept_waiting(Listener& listener);
  void admit(tcp::socket socket);
  bool make_room();
  std::shared_ptr<detail::Connection> oldest_of_greediest();
  void resume_accepting();

  // ---- limits
  void grant();
  bool pressed() const noexcept;
  detail::Connections& members(detail::Group group) noexcept { return groups_[static_cast<std::size_t>(group)]; }
  const detail::Connections& members(detail::Group group) const noexcept {
    return groups_[static_cast<std::size_t>(group)];
  }
  std::optional<SteadyPoint> next_limit() const;
  Duration limit_of(detail::Group group) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Log log_;
  std::vector<Route> routes_;
  Screen screen_;
  std::list<Listener> listeners_;
  unsigned short port_ = 0;
  std::array<detail::Connections, detail::group_count> groups_;
  std::size_t count_ = 0;
  std::size_t most_ = 0;  // connections
  std::shared_ptr<detail::RequestBudget> budget_;
  std::vector<std::weak_ptr<detail::Connection>> starved_;
  std::list<detail::Connection*> claims_;  // in the order of their turns
  bool granting_ = false;
  std::size_t operations_ = 0;
  async::event idle_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  bool open_ = false;
  bool accept_trouble_told_ = false;
  bool memory_trouble_told_ = false;
  std::array<char, 64 * 1024> scratch_;  // bytes are read here first: an idle connection holds no buffer
  std::string answer_buffer_;
};

}  // namespace nni::net

#if NNI_HEADER_ONLY
#include <nni/net/server_inl.hpp>
#endif
