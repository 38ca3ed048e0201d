#pragma once

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/net/http.hpp>
#include <nni/net/server.hpp>

#if NNI_WITH_HTTP

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace nni::net::detail {

using boost::asio::ip::tcp;
using boost::system::error_code;

// Joins an answer that may come late to a connection that may be gone. One per connection, used again for each
// of its requests, so that a late answer costs no allocation.
struct ReplySlot {
  Connection* connection = nullptr;
  std::uint64_t serial = 0;   // of the request that is owed an answer; 0: none
  bool client_left = false;
};

// Which limit on time holds for a connection; each group is a list in the order of `since`.
enum class Group : std::uint8_t { idle, busy, waiting, lingering };
inline constexpr std::size_t group_count = 4;

using Connections = std::list<std::shared_ptr<Connection>>;

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log);

  void route(std::string method, std::string prefix, Handler handler);
  void open();
  unsigned short port() const noexcept { return port_; }
  std::size_t connections() const noexcept { return count_; }
  void stop();
  awaitable<void> close();

  const ServerOptions& options() const noexcept { return options_; }
  boost::asio::any_io_executor executor() const { return executor_; }
  const Handler* find(std::string_view method, std::string_view path, bool& known_path) const noexcept;
  std::array<char, 64 * 1024>& scratch() noexcept { return scratch_; }
  std::string& answer_buffer() noexcept { return answer_buffer_; }
  void move_to(Connection& connection, Group group);
  void remove(Connection& connection);
  void begin_operation() noexcept { ++operations_; }
  void end_operation() { if (--operations_ == 0) idle_.notify(); }
  void complain(std::string_view text) const { log_.warning("http", text); }

 private:
  struct Route {
    std::string method;
    std::string prefix;
    Handler handler;
  };

  unsigned short bind(const tcp::endpoint& endpoint, bool dual);
  void open_loopback();
  void accept(std::size_t index);
  void accepted(std::size_t index, error_code failure, tcp::socket socket);
  bool make_room();
  void resume_accepting();
  std::optional<SteadyPoint> next_limit() const;
  Duration limit_of(Group group) const noexcept;
  void arm();
  void expire();

  boost::asio::any_io_executor executor_;
  ServerOptions options_;
  Log log_;
  std::vector<Route> routes_;
  std::list<tcp::acceptor> acceptors_;
  std::vector<bool> accepting_;
  unsigned short port_ = 0;
  std::array<Connections, group_count> groups_;
  std::size_t count_ = 0;
  std::size_t operations_ = 0;
  async::event idle_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
  bool open_ = false;
  bool accept_trouble_told_ = false;
  std::array<char, 64 * 1024> scratch_;   // bytes are read here first: an idle connection holds no buffer
  std::string answer_buffer_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerCore> server, tcp::socket socket);
  ~Connection();

  void start();
  void answer(unsigned status, std::string_view body, std::string_view content_type);
  void drop();

  Group group = Group::idle;
  SteadyPoint since{};
  Connections::iterator place;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void wait_readable();
  void readable(error_code failure);
  std::size_t feed(const char* data, std::size_t size);
  void dispatch();
  void refuse(unsigned status, std::string_view why);
  void refuse(error_code failure);
  void write(std::string_view bytes);
  void wait_writable();
  void writable(error_code failure);
  void answered();
  void go_on();
  void end();

  std::shared_ptr<ServerCore> server_;
  tcp::socket socket_;
  std::optional<Parser> parser_;
  std::string body_;            // its capacity is used again by the next request
  std::string unread_;          // bytes behind the request that is being answered
  std::string unsent_;
  std::shared_ptr<ReplySlot> slot_;
  std::uint64_t serial_ = 0;
  bool reading_ = false;
  bool writing_ = false;
  bool dispatching_ = false;
  bool close_after_ = false;
  bool head_request_ = false;
  bool asked_to_continue_ = false;
  bool discarding_ = false;     // an error was answered: what comes is read only so that the client sees the answer
  bool ended_ = false;
};

inline constexpr std::size_t most_unread = 64 * 1024;

// Processes that are started while the server runs must not keep its sockets open.
template <class Socket>
void close_on_exec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

// ---- Connection

NNI_INLINE Connection::Connection(std::shared_ptr<ServerCore> server, tcp::socket socket)
    : server_(std::move(server)), socket_(std::move(socket)), slot_(std::make_shared<ReplySlot>()) {
  slot_->connection = this;
}

NNI_INLINE Connection::~Connection() { slot_->connection = nullptr; }

NNI_INLINE void Connection::start() {
  error_code failure;
  socket_.non_blocking(true, failure);
  if (failure) return drop();
  wait_readable();
}

NNI_INLINE void Connection::drop() {
  if (ended_) return;
  ended_ = true;
  slot_->serial = 0;
  slot_->connection = nullptr;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
  if (!dispatching_) parser_.reset();   // the running handler still looks at the request
  server_->remove(*this);
}

NNI_INLINE void Connection::wait_readable() {
  if (ended_ || reading_) return;
  reading_ = true;
  server_->begin_operation();
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code failure) {
    self->reading_ = false;
    self->readable(failure);
    self->server_->end_operation();
  });
}

NNI_INLINE void Connection::readable(error_code failure) {
  if (ended_) return;
  if (failure) return drop();
  auto& scratch = server_->scratch();
  const std::size_t size = socket_.read_some(boost::asio::buffer(scratch), failure);
  if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) return wait_readable();
  if (failure) {
    // The client has no more to say. An answer that is owed is still delivered: it may have closed one direction only.
    if (slot_->serial == 0 && !writing_) return drop();
    slot_->client_left = true;
    close_after_ = true;
    return;
  }
  if (discarding_) return wait_readable();
  if (slot_->serial != 0 || writing_) {
    // Requests are answered in order, so this one has to wait; its sender too, if it sends much.
    unread_.append(scratch.data(), size);
    if (unread_.size() < most_unread) wait_readable();
    return;
  }
  if (unread_.empty()) {
    const std::size_t used = feed(scratch.data(), size);
    if (ended_) return;
    unread_.append(scratch.data() + used, size - used);
  } else {
    unread_.append(scratch.data(), size);
    const std::size_t used = feed(unread_.data(), unread_.size());
    if (ended_) return;
    unread_.erase(0, used);
  }
  wait_readable();
}

// Gives bytes to the parser and requests to their handlers, until an answer is owed or the bytes are used up.
NNI_INLINE std::size_t Connection::feed(const char* data, std::size_t size) {
  std::size_t used = 0;
  while (used < size && !ended_ && !discarding_ && !close_after_ && slot_->serial == 0 && !writing_) {
    if (!parser_) {
      server_->move_to(*this, Group::busy);
      parser_.emplace();
      parser_->eager(true);
      parser_->header_limit(static_cast<std::uint32_t>(server_->options().max_head_bytes));
      parser_->body_limit(server_->options().max_body_bytes);
      body_.clear();
      parser_->get().body() = std::move(body_);
      asked_to_continue_ = false;
    }
    error_code failure;
    const std::size_t taken = parser_->put(boost::asio::const_buffer(data + used, size - used), failure);
    used += taken;
    if (failure && failure != boost::beast::http::error::need_more) {
      refuse(failure);
      return size;
    }
    if (parser_->is_done()) {
      dispatch();
      continue;
    }
    if (parser_->is_header_done() && !asked_to_continue_) {
      asked_to_continue_ = true;
      if (equal_ignoring_case(parser_->get()[boost::beast::http::field::expect], "100-continue"))
        write("HTTP/1.1 100 Continue\r\n\r\n");
    }
    if (taken == 0) break;
  }
  return used;
}

NNI_INLINE void Connection::dispatch() {
  auto& message = parser_->get();
  close_after_ = close_after_ || !message.keep_alive() || message.version() < 11;
  head_request_ = message.method() == boost::beast::http::verb::head;
  server_->move_to(*this, Group::waiting);
  slot_->serial = ++serial_;
  slot_->client_left = false;

  const auto view = [](auto text) { return std::string_view(text.data(), text.size()); };
  Request request;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.body = message.body();
  request.content_type = view(message[boost::beast::http::field::content_type]);
  request.fields_ = &static_cast<const boost::beast::http::fields&>(message.base());
  request.find_ = [](const void* fields, std::string_view name) {
    const auto value = (*static_cast<const boost::beast::http::fields*>(fields))[boost::beast::string_view(name.data(), name.size())];
    return std::string_view(value.data(), value.size());
  };

  dispatching_ = true;
  Responder responder(slot_, serial_);
  bool known_path = false;
  if (const Handler* handler = server_->find(request.method, request.path, known_path)) {
    try {
      (*handler)(request, std::move(responder));
    } catch (...) {
      server_->complain("a request handler failed: " + describe(std::current_exception()));
      if (!ended_ && slot_->serial == serial_) answer(500, "internal error", "text/plain");
    }
  } else {
    responder.send(known_path ? 405 : 404, reason_phrase(known_path ? 405 : 404));
  }
  dispatching_ = false;
  if (ended_) return;
  body_ = std::move(parser_->get().body());
  parser_.reset();
}

NNI_INLINE void Connection::answer(unsigned status, std::string_view body, std::string_view content_type) {
  std::string& text = server_->answer_buffer();
  text.assign("HTTP/1.1 ");
  text += std::to_string(status);
  text += ' ';
  text += reason_phrase(status);
  text += "\r\nContent-Length: ";
  text += std::to_string(body.size());
  if (!body.empty()) {
    text += "\r\nContent-Type: ";
    text += content_type;
  }
  if (close_after_) text += "\r\nConnection: close";
  text += "\r\n\r\n";
  if (!head_request_) text += body;
  slot_->serial = 0;
  write(text);
  if (!ended_ && !writing_) answered();
}

// The parser's complaints, in the terms of HTTP.
NNI_INLINE void Connection::refuse(error_code failure) {
  using boost::beast::http::error;
  if (failure == error::body_limit)
    return refuse(413, "the body may have " + std::to_string(server_->options().max_body_bytes) + " bytes");
  if (failure == error::header_limit)
    return refuse(431, "the header may have " + std::to_string(server_->options().max_head_bytes) + " bytes");
  refuse(400, failure.message());
}

NNI_INLINE void Connection::refuse(unsigned status, std::string_view why) {
  close_after_ = true;
  discarding_ = true;
  head_request_ = false;
  parser_.reset();
  answer(status, why, "text/plain");
}

NNI_INLINE void Connection::write(std::string_view bytes) {
  if (writing_) {
    unsent_ += bytes;
    return;
  }
  while (!bytes.empty()) {
    error_code failure;
    const std::size_t sent = socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), failure);
    bytes.remove_prefix(sent);
    if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) {
      unsent_.assign(bytes);
      server_->move_to(*this, Group::busy);
      return wait_writable();
    }
    if (failure) return drop();
  }
}

NNI_INLINE void Connection::wait_writable() {
  writing_ = true;
  server_->begin_operation();
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code failure) {
    self->writable(failure);
    self->server_->end_operation();
  });
}

NNI_INLINE void Connection::writable(error_code failure) {
  if (ended_) return;
  if (failure) return drop();
  const std::size_t sent = socket_.write_some(boost::asio::buffer(unsent_), failure);
  if (failure && failure != boost::asio::error::would_block && failure != boost::asio::error::try_again) return drop();
  unsent_.erase(0, sent);
  if (!unsent_.empty()) {
    server_->move_to(*this, Group::busy);   // there is progress: the limit begins anew
    return wait_writable();
  }
  writing_ = false;
  if (slot_->serial == 0 && !parser_) answered();
  if (!ended_ && !discarding_) go_on();
}

// An answer has left. Decides what becomes of the connection.
NNI_INLINE void Connection::answered() {
  if (!close_after_) {
    server_->move_to(*this, Group::idle);
    // Inside a handler `feed` goes on by itself; later, a waiting request must not be handled inside the call of
    // whoever gave the answer.
    if (!dispatching_ && !unread_.empty()) {
      server_->begin_operation();
      boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->go_on();
        self->server_->end_operation();
      });
    } else if (!dispatching_ && !discarding_) {
      wait_readable();
    }
    return;
  }
  end();
}

NNI_INLINE void Connection::go_on() {
  if (ended_ || dispatching_ || slot_->serial != 0 || writing_) return;
  std::string bytes = std::exchange(unread_, {});
  const std::size_t used = feed(bytes.data(), bytes.size());
  if (ended_) return;
  bytes.erase(0, used);
  bytes += unread_;
  unread_ = std::move(bytes);
  wait_readable();
}

// Closing with unread bytes would reset the connection and could take the answer from the client, so the rest is
// read away for a while.
NNI_INLINE void Connection::end() {
  if (slot_->client_left) return drop();
  discarding_ = true;
  unread_.clear();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  server_->move_to(*this, Group::lingering);
  wait_readable();
}

// ---- ServerCore

NNI_INLINE ServerCore::ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : executor_(std::move(executor)), options_(std::move(options)), log_(std::move(log)), timer_(executor_) {}

NNI_INLINE void ServerCore::route(std::string method, std::string prefix, Handler handler) {
  routes_.push_back({std::move(method), std::move(prefix), std::move(handler)});
}

NNI_INLINE const Handler* ServerCore::find(std::string_view method, std::string_view path, bool& known_path) const noexcept {
  const Route* best = nullptr;
  for (const Route& route : routes_) {
    if (path.substr(0, route.prefix.size()) != route.prefix) continue;
    known_path = true;
    if (!route.method.empty() && route.method != method) continue;
    const bool longer = !best || route.prefix.size() > best->prefix.size();
    const bool closer = best && route.prefix.size() == best->prefix.size() && best->method.empty();
    if (longer || closer) best = &route;
  }
  return best ? &best->handler : nullptr;
}

NNI_INLINE unsigned short ServerCore::bind(const tcp::endpoint& endpoint, bool dual) {
  tcp::acceptor acceptor(executor_);
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  if (endpoint.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(!dual));
  // Accepted sockets inherit these two.
  acceptor.set_option(tcp::no_delay(true));
  acceptor.set_option(tcp::socket::keep_alive(true));
  acceptor.bind(endpoint);
  acceptor.listen(4096);
  close_on_exec(acceptor);
  const unsigned short bound = acceptor.local_endpoint().port();
  acceptors_.push_back(std::move(acceptor));
  accepting_.push_back(false);
  return bound;
}

// Clients resolve `localhost` to either address, so both must listen on one port where both exist.
NNI_INLINE void ServerCore::open_loopback() {
  constexpr int attempts = 16;
  for (int attempt = 1;; ++attempt) {
    port_ = bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), options_.port), false);
    try {
      bind(tcp::endpoint(boost::asio::ip::address_v6::loopback(), port_), false);
      return;
    } catch (const boost::system::system_error& error) {
      if (error.code() != boost::asio::error::address_in_use) return;   // no IPv6 on this machine
      if (options_.port != 0 || attempt == attempts) throw;
      acceptors_.clear();
      accepting_.clear();
    }
  }
}

NNI_INLINE void ServerCore::open() {
  if (open_) throw Error(Errc::internal, "the HTTP server is open already");
  const std::string where = options_.listen + " port " + std::to_string(options_.port);
  try {
    if (options_.listen == "localhost") {
      open_loopback();
    } else {
      error_code failure;
      const auto address = boost::asio::ip::make_address(options_.listen, failure);
      if (failure)
        throw config_error("listen", "\"" + options_.listen + "\" is not an address; write localhost, 0.0.0.0, :: or an address of this machine");
      port_ = bind(tcp::endpoint(address, options_.port), address.is_unspecified());
    }
  } catch (const Error&) {
    throw;
  } catch (const boost::system::system_error& error) {
    acceptors_.clear();
    accepting_.clear();
    if (error.code() == boost::asio::error::address_in_use)
      throw Error(Errc::in_use, where + " is in use by another program; choose another port, or 0 for a free one");
    if (error.code() == boost::system::errc::address_not_available)
      throw config_error("listen", "\"" + options_.listen + "\" is not an address of this machine");
    throw Error(error.code(), "cannot listen on " + where);
  }
  open_ = true;
  for (std::size_t index = 0; index < acceptors_.size(); ++index) accept(index);
}

NNI_INLINE void ServerCore::accept(std::size_t index) {
  if (!open_ || accepting_[index]) return;
  if (count_ >= options_.max_connections) {
    make_room();
    if (count_ >= options_.max_connections || accepting_[index]) return;   // until a connection ends
  }
  accepting_[index] = true;
  begin_operation();
  std::next(acceptors_.begin(), static_cast<std::ptrdiff_t>(index))
      ->async_accept([self = shared_from_this(), index](error_code failure, tcp::socket socket) {
        self->accepting_[index] = false;
        self->accepted(index, failure, std::move(socket));
        self->end_operation();
      });
}

NNI_INLINE void ServerCore::accepted(std::size_t index, error_code failure, tcp::socket socket) {
  if (!open_) return;
  if (failure == boost::asio::error::connection_aborted) return accept(index);   // the client gave up meanwhile
  if (failure) {
    if (!std::exchange(accept_trouble_told_, true))
      complain("a connection could not be accepted (" + failure.message() + "); perhaps the limit on open files, ulimit -n, is too low");
    if (make_room()) return accept(index);
    arm();   // tried again when a connection ends, or soon
    return;
  }
  close_on_exec(socket);
  auto connection = std::make_shared<Connection>(shared_from_this(), std::move(socket));
  auto& idle = groups_[static_cast<std::size_t>(Group::idle)];
  connection->since = std::chrono::steady_clock::now();
  connection->place = idle.insert(idle.end(), connection);
  ++count_;
  arm();
  connection->start();
  accept(index);
}

// Closes the connection that has been idle longest; its client connects again when it has something to say.
NNI_INLINE bool ServerCore::make_room() {
  auto& idle = groups_[static_cast<std::size_t>(Group::idle)];
  if (idle.empty()) return false;
  const std::shared_ptr<Connection> oldest = idle.front();
  oldest->drop();
  return true;
}

NNI_INLINE void ServerCore::resume_accepting() {
  for (std::size_t index = 0; index < accepting_.size(); ++index) accept(index);
}

NNI_INLINE void ServerCore::move_to(Connection& connection, Group group) {
  auto& target = groups_[static_cast<std::size_t>(group)];
  target.splice(target.end(), groups_[static_cast<std::size_t>(connection.group)], connection.place);
  connection.group = group;
  if (group == Group::waiting) return;
  connection.since = std::chrono::steady_clock::now();
  if (!timer_armed_ || connection.since + limit_of(group) < timer_.expiry()) arm();
}

NNI_INLINE void ServerCore::remove(Connection& connection) {
  groups_[static_cast<std::size_t>(connection.group)].erase(connection.place);
  --count_;
  if (open_) resume_accepting();
}

NNI_INLINE Duration ServerCore::limit_of(Group group) const noexcept {
  if (group == Group::idle) return options_.idle_timeout;
  if (group == Group::lingering) return std::min<Duration>(options_.request_timeout, std::chrono::seconds(2));
  return options_.request_timeout;
}

NNI_INLINE std::optional<SteadyPoint> ServerCore::next_limit() const {
  std::optional<SteadyPoint> next;
  for (const Group group : {Group::idle, Group::busy, Group::lingering}) {
    const auto& members = groups_[static_cast<std::size_t>(group)];
    if (members.empty()) continue;
    const SteadyPoint limit = members.front()->since + limit_of(group);
    if (!next || limit < *next) next = limit;
  }
  for (std::size_t index = 0; index < accepting_.size(); ++index) {
    const SteadyPoint soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    if (!accepting_[index] && count_ < options_.max_connections && (!next || soon < *next)) next = soon;
  }
  return next;
}

// One timer for all connections. It is set for the earliest limit and never moved: most limits are overtaken by a
// next request, and when it fires too early it is set again.
NNI_INLINE void ServerCore::arm() {
  if (!open_) return;
  const std::optional<SteadyPoint> next = next_limit();
  if (!next || (timer_armed_ && timer_.expiry() <= *next)) return;
  timer_.expires_at(*next);
  timer_armed_ = true;
  begin_operation();
  timer_.async_wait([self = shared_from_this()](error_code failure) {
    if (failure != boost::asio::error::operation_aborted) self->expire();
    self->end_operation();
  });
}

NNI_INLINE void ServerCore::expire() {
  timer_armed_ = false;
  if (!open_) return;
  const SteadyPoint now = std::chrono::steady_clock::now();
  for (const Group group : {Group::idle, Group::busy, Group::lingering}) {
    auto& members = groups_[static_cast<std::size_t>(group)];
    while (!members.empty() && members.front()->since + limit_of(group) <= now) {
      const std::shared_ptr<Connection> late = members.front();
      late->drop();
    }
  }
  resume_accepting();
  arm();
}

NNI_INLINE void ServerCore::stop() {
  if (!std::exchange(open_, false)) return;
  error_code ignored;
  for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  timer_.cancel();
  for (auto& members : groups_)
    while (!members.empty()) {
      const std::shared_ptr<Connection> connection = members.front();
      connection->drop();
    }
}

NNI_INLINE awaitable<void> ServerCore::close() {
  const std::shared_ptr<ServerCore> keep = shared_from_this();
  stop();
  while (operations_ != 0) co_await idle_.wait();
  acceptors_.clear();
  accepting_.clear();
}

}  // namespace nni::net::detail

namespace nni::net {

// ---- Responder

NNI_INLINE Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    send(503, "the request was dropped");
    slot_ = std::move(other.slot_);
    serial_ = other.serial_;
  }
  return *this;
}

NNI_INLINE Responder::~Responder() { send(503, "the request was dropped"); }

NNI_INLINE void Responder::send(unsigned status, std::string_view body, std::string_view content_type) {
  if (!slot_) return;
  const std::shared_ptr<detail::ReplySlot> slot = std::move(slot_);
  if (!slot->connection || slot->serial != serial_) return;
  slot->connection->shared_from_this()->answer(status, body, content_type);
}

NNI_INLINE bool Responder::wanted() const noexcept {
  return slot_ && slot_->connection && slot_->serial == serial_ && !slot_->client_left;
}

// ---- Server

NNI_INLINE Server::Server(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : core_(std::make_shared<detail::ServerCore>(std::move(executor), std::move(options), std::move(log))) {}

NNI_INLINE Server::Server(Server&&) noexcept = default;

NNI_INLINE Server& Server::operator=(Server&& other) noexcept {
  if (this != &other) {
    if (core_) core_->stop();
    core_ = std::move(other.core_);
  }
  return *this;
}

NNI_INLINE Server::~Server() {
  if (core_) core_->stop();
}

NNI_INLINE void Server::route(std::string method, std::string prefix, Handler handler) {
  core_->route(std::move(method), std::move(prefix), std::move(handler));
}

NNI_INLINE void Server::open() { core_->open(); }
NNI_INLINE unsigned short Server::port() const noexcept { return core_->port(); }
NNI_INLINE std::size_t Server::connections() const noexcept { return core_->connections(); }
NNI_INLINE awaitable<void> Server::close() { return core_->close(); }

}  // namespace nni::net

#endif  // NNI_WITH_HTTP
