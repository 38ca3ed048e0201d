#pragma once

#include <nni/core/error.hpp>
#include <nni/core/owner.hpp>
#include <nni/net/detail/connection_inl.hpp>
#include <nni/net/detail/server_types_inl.hpp>
#include <nni/net/server.hpp>

#if NNI_WITH_HTTP

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <new>
#include <unordered_map>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>

namespace nni::net {

// ---- Responder

NNI_INLINE Responder& Responder::operator=(Responder&& other) noexcept {
  if (this != &other) {
    send(503, "the request was dropped");
    slot_ = std::move(other.slot_);
    serial_ = other.serial_;
    share_ = std::move(other.share_);
  }
  return *this;
}

NNI_INLINE Responder::~Responder() { send(503, "the request was dropped"); }

NNI_INLINE void Responder::send(unsigned status, std::string_view body, std::string_view content_type) {
  if (!slot_) return;
  const std::shared_ptr<detail::ReplySlot> slot = std::move(slot_);
  const detail::BudgetShare share = std::move(share_);
  if (!slot->connection || slot->serial != serial_) return;
  const std::shared_ptr<detail::Connection> connection = slot->connection->shared_from_this();
  try {
    connection->answer(status, body, content_type);
  } catch (const std::exception& error) {
    connection->shed(error.what());
  }
}

NNI_INLINE bool Responder::wanted() const noexcept {
  return slot_ && slot_->connection && slot_->serial == serial_ && !slot_->client_left;
}

// ---- Server

// Processes that are started while the server runs must not keep its sockets open.
template <class Socket>
void close_on_exec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

NNI_INLINE Server::Server(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      log_(std::move(log)),
      budget_(std::make_shared<detail::RequestBudget>()),
      timer_(executor_) {
  budget_->server = this;
}

NNI_INLINE Server::~Server() { budget_->server = nullptr; }

NNI_INLINE std::shared_ptr<Server> Server::create(
    boost::asio::any_io_executor executor, ServerOptions options, Log log) {
  return make_owner(std::shared_ptr<Server>(new Server(std::move(executor), std::move(options), std::move(log))));
}

NNI_INLINE void Server::route(std::string method, std::string prefix, Handler handler) {
  routes_.push_back({std::move(method), std::move(prefix), std::move(handler)});
}

NNI_INLINE const Handler* Server::find(
    std::string_view method, std::string_view path, bool& known_path) const noexcept {
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

NNI_INLINE unsigned short Server::bind(const tcp::endpoint& endpoint, bool dual) {
  tcp::acceptor acceptor(executor_);
  acceptor.open(endpoint.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  if (endpoint.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(!dual));
  // Accepted sockets inherit these two.
  acceptor.set_option(tcp::no_delay(true));
  acceptor.set_option(tcp::socket::keep_alive(true));
  acceptor.bind(endpoint);
  acceptor.non_blocking(true);
  acceptor.listen(4096);
  close_on_exec(acceptor);
  const unsigned short bound = acceptor.local_endpoint().port();
  listeners_.emplace_back(std::move(acceptor));
  return bound;
}

// Clients resolve `localhost` to either address, so both must listen on one port where both exist.
NNI_INLINE void Server::open_loopback() {
  constexpr int attempts = 16;
  for (int attempt = 1;; ++attempt) {
    port_ = bind(tcp::endpoint(boost::asio::ip::address_v4::loopback(), options_.port), false);
    try {
      bind(tcp::endpoint(boost::asio::ip::address_v6::loopback(), port_), false);
      return;
    } catch (const boost::system::system_error& error) {
      if (error.code() != boost::asio::error::address_in_use) return;  // no IPv6 on this machine
      if (options_.port != 0 || attempt == attempts) throw;
      listeners_.clear();
    }
  }
}

NNI_INLINE void Server::open() {
  if (open_) throw Error(Errc::internal, "the HTTP server is open already");
  const std::string where = options_.listen + " port " + std::to_string(options_.port);
  try {
    if (options_.listen == "localhost") {
      open_loopback();
    } else {
      boost::system::error_code failure;
      const auto address = boost::asio::ip::make_address(options_.listen, failure);
      if (failure)
        throw config_error(
            "listen", "\"" + options_.listen +
                          "\" is not an address; write localhost, 0.0.0.0, :: or an address of this machine");
      port_ = bind(tcp::endpoint(address, options_.port), address.is_unspecified());
    }
  } catch (const Error&) {
    throw;
  } catch (const boost::system::system_error& error) {
    listeners_.clear();
    if (error.code() == boost::asio::error::address_in_use)
      throw Error(Errc::in_use, where + " is in use by another program; choose another port, or 0 for a free one");
    if (error.code() == boost::system::errc::address_not_available)
      throw config_error("listen", "\"" + options_.listen + "\" is not an address of this machine");
    throw Error(error.code(), "cannot listen on " + where);
  }
  rlimit files{};
  const bool limited = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
  most_ = limited ? detail::connections_within(options_.max_connections, static_cast<std::size_t>(files.rlim_cur))
                  : options_.max_connections;
  open_ = true;
  for (Listener& listener : listeners_) accept(listener);
}

NNI_INLINE void Server::accept(Listener& listener) {
  if (!open_ || listener.accepting || listener.parked) return;
  listener.accepting = true;
  begin_operation();
  try {
    listener.acceptor.async_wait(
        tcp::acceptor::wait_read, [self = shared_from_this(), &listener](boost::system::error_code failure) {
          if (self->open_) {
            listener.accepting = false;
            if (!failure) self->accept_waiting(listener);
            self->accept(listener);
          }
          self->end_operation();
        });
  } catch (const std::exception& error) {
    --operations_;
    complain_of_memory(error.what());
    listener.refused = true;  // tried again when a connection ends, or soon
  }
}

// Accepts who has connected by now.
NNI_INLINE void Server::accept_waiting(Listener& listener) {
  // Then the others have their turn: a connection is read before so many newer ones come that it makes room for them.
  const std::size_t most = std::clamp<std::size_t>(most_ / 4, 1, 256);
  for (std::size_t count = 0; count < most && open_; ++count) {
    tcp::socket socket(executor_);
    boost::system::error_code failure;
    listener.acceptor.accept(socket, failure);
    if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) return;
    if (failure == boost::asio::error::connection_aborted) continue;
    if (failure) {
      if (!std::exchange(accept_trouble_told_, true))
        complain("a connection could not be accepted (" + failure.message() +
                 "); perhaps the limit on open files, ulimit -n, is too low");
      if (make_room()) continue;
      listener.accepting = true;  // tried again when a connection ends, or soon
      listener.refused = true;
      arm();
      return;
    }
    close_on_exec(socket);
    if (count_ >= most_ && !make_room()) {
      listener.parked = std::move(socket);  // it waits, and with it those in the system's queue, until one ends
      arm();
      return;
    }
    admit(std::move(socket));
  }
}

NNI_INLINE void Server::admit(tcp::socket socket) {
  std::shared_ptr<detail::Connection> connection;
  try {
    connection = std::make_shared<detail::Connection>(shared_from_this(), std::move(socket));
    connection->proven = !screen_;
    connection->group = connection->proven ? detail::Group::idle : detail::Group::unproven;
    connection->since = std::chrono::steady_clock::now();
    connection->place = members(connection->group).insert(members(connection->group).end(), connection);
  } catch (const std::bad_alloc& error) {
    return complain_of_memory(error.what());  // its socket is closed
  }
  ++count_;
  if (!timer_armed_ || connection->since + limit_of(connection->group) < timer_.expiry()) arm();
  connection->start();
}

// Closes a connection that is needed least: one that is not authenticated, one that was answered for the last time, or the one
// that has been idle longest, whose client connects again when it has something to send. A connection that was not read yet
// stays for a moment: what it sends may authenticate it. If all connections are in the middle of a request, the client that
// has most of them gives one up.
NNI_INLINE bool Server::make_room() {
  for (const detail::Group group : {detail::Group::unproven, detail::Group::lingering, detail::Group::idle}) {
    if (members(group).empty()) continue;
    const std::shared_ptr<detail::Connection> oldest = members(group).front();
    const Duration age = std::chrono::steady_clock::now() - oldest->since;
    if (group == detail::Group::unproven && !oldest->was_read && age < std::chrono::milliseconds(50)) continue;
    oldest->drop();
    return true;
  }
  const std::shared_ptr<detail::Connection> greedy = oldest_of_greediest();
  if (greedy) greedy->drop();
  return greedy != nullptr;
}

// Of the client with most half-sent requests; null while no client has more than its share.
NNI_INLINE std::shared_ptr<detail::Connection> Server::oldest_of_greediest() {
  std::unordered_map<std::uint64_t, std::size_t> counts;
  std::pair<std::uint64_t, std::size_t> most{0, std::max<std::size_t>(8, most_ / 4)};
  for (const std::shared_ptr<detail::Connection>& one : members(detail::Group::busy))
    if (one->client != 0 && ++counts[one->client] > most.second) most = {one->client, counts[one->client]};
  if (most.first == 0) return nullptr;
  const auto found = std::find_if(
      members(detail::Group::busy).begin(), members(detail::Group::busy).end(),
      [&most](const std::shared_ptr<detail::Connection>& one) { return one->client == most.first; });
  return *found;
}

NNI_INLINE void Server::resume_accepting() {
  for (Listener& listener : listeners_) {
    if (std::exchange(listener.refused, false)) listener.accepting = false;
    if (listener.parked && count_ < most_) {
      tcp::socket socket = std::move(*listener.parked);
      listener.parked.reset();
      admit(std::move(socket));
    }
    accept(listener);
  }
}

NNI_INLINE void Server::move_to(detail::Connection& connection, detail::Group group) {
  // What a connection that has shown nothing does makes no difference: its time runs from when it was accepted.
  if (!connection.proven &&
      (group == detail::Group::idle || group == detail::Group::busy || group == detail::Group::loading)) {
    if (connection.group == detail::Group::unproven) return;
    group = detail::Group::unproven;
  }
  auto& target = members(group);
  target.splice(target.end(), members(connection.group), connection.place);
  connection.group = group;
  if (group == detail::Group::waiting) return;
  connection.since = std::chrono::steady_clock::now();
  if (!timer_armed_ || connection.since + limit_of(group) < timer_.expiry()) arm();
}

NNI_INLINE void Server::remove(detail::Connection& connection) {
  members(connection.group).erase(connection.place);
  --count_;
  if (!open_) return;
  try {
    resume_accepting();
  } catch (const std::exception& error) {
    complain_of_memory(error.what());
  }
}

// ---- memory

NNI_INLINE void Server::complain_of_memory(const char* reason) noexcept {
  if (std::exchange(memory_trouble_told_, true)) return;
  try {
    complain("a connection was closed because there is no memory for it (" + std::string(reason) + ")");
  } catch (...) {
  }
}

NNI_INLINE bool Server::has_memory(const detail::Connection& reader) {
  auto& strangers = members(detail::Group::unproven);
  for (auto next = strangers.begin(); next != strangers.end() && budget_->small >= options_.max_small_bytes;) {
    const std::shared_ptr<detail::Connection> oldest = *next++;
    if (oldest.get() != &reader && oldest->holds_bytes()) oldest->drop();
  }
  return budget_->small < options_.max_small_bytes;
}

NNI_INLINE void Server::starve(detail::Connection& connection) {
  starved_.push_back(connection.weak_from_this());
  arm();
}

NNI_INLINE bool Server::claim(detail::Connection& connection, std::size_t bytes) {
  const bool fits = budget_->large == 0 || budget_->large + bytes <= options_.max_large_bytes;
  if (claims_.empty() && fits) {
    connection.granted(detail::BudgetShare(budget_, true, bytes));
    return true;
  }
  claims_.push_back(&connection);
  return false;
}

NNI_INLINE void Server::withdraw(detail::Connection& connection) noexcept {
  claims_.remove(&connection);
  freed();
}

NNI_INLINE void Server::freed() noexcept {
  if (!open_ || granting_ || (claims_.empty() && starved_.empty())) return;
  granting_ = true;
  ++operations_;
  try {
    boost::asio::post(executor_, [self = shared_from_this()] {
      self->grant();
      self->end_operation();
    });
  } catch (...) {
    granting_ = false;  // the next one that gives something back tries again, and so does the timer
    --operations_;
  }
}

// Resumes connections that wait for memory, as far as there is some.
NNI_INLINE void Server::grant() {
  granting_ = false;
  if (!open_) return;
  while (!claims_.empty()) {
    const std::shared_ptr<detail::Connection> next = claims_.front()->shared_from_this();
    const std::size_t bytes = next->announced();
    if (budget_->large != 0 && budget_->large + bytes > options_.max_large_bytes) break;
    claims_.pop_front();
    next->granted(detail::BudgetShare(budget_, true, bytes));
  }
  if (budget_->small >= options_.max_small_bytes) return;
  for (const std::weak_ptr<detail::Connection>& waiting : std::exchange(starved_, {}))
    if (const std::shared_ptr<detail::Connection> connection = waiting.lock()) connection->fed();
}

NNI_INLINE void detail::RequestBudget::give_back(bool of_large, std::size_t bytes) noexcept {
  (of_large ? large : small) -= bytes;
  if (server) server->freed();
}

// ---- time

// Whether clients wait for connections or memory. Half-sent requests are given less time then.
NNI_INLINE bool Server::pressed() const noexcept {
  return !starved_.empty() ||
         std::any_of(listeners_.begin(), listeners_.end(), [](const Listener& one) { return one.parked.has_value(); });
}

NNI_INLINE Duration Server::limit_of(detail::Group group) const noexcept {
  if (group == detail::Group::idle) return options_.idle_timeout;
  if (group == detail::Group::lingering) return std::min<Duration>(options_.request_timeout, std::chrono::seconds(2));
  if (group == detail::Group::busy && pressed())
    return std::min<Duration>(options_.request_timeout, std::chrono::seconds(1));
  return options_.request_timeout;
}

inline constexpr std::array<detail::Group, 5> limited_groups{
    detail::Group::idle, detail::Group::busy, detail::Group::loading, detail::Group::lingering,
    detail::Group::unproven};

NNI_INLINE std::optional<SteadyPoint> Server::next_limit() const {
  std::optional<SteadyPoint> next;
  for (const detail::Group group : limited_groups) {
    if (members(group).empty()) continue;
    const SteadyPoint limit = members(group).front()->since + limit_of(group);
    if (!next || limit < *next) next = limit;
  }
  for (const Listener& listener : listeners_) {
    if (!listener.refused && !listener.parked) continue;
    const SteadyPoint soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(listener.parked ? 20 : 250);
    if (!next || soon < *next) next = soon;
  }
  return next;
}

// One timer for all connections. It is set for the earliest limit and never moved: most limits are overtaken by a
// next request, and when it fires too early it is set again.
NNI_INLINE void Server::arm() {
  if (!open_) return;
  const std::optional<SteadyPoint> next = next_limit();
  if (!next || (timer_armed_ && timer_.expiry() <= *next)) return;
  timer_.expires_at(*next);
  timer_armed_ = true;
  begin_operation();
  try {
    timer_.async_wait([self = shared_from_this()](boost::system::error_code failure) {
      if (failure != boost::asio::error::operation_aborted) self->expire();
      self->end_operation();
    });
  } catch (const std::exception& error) {
    timer_armed_ = false;  // the next request arms it
    --operations_;
    complain_of_memory(error.what());
  }
}

NNI_INLINE void Server::expire() {
  timer_armed_ = false;
  if (!open_) return;
  const SteadyPoint now = std::chrono::steady_clock::now();
  for (const detail::Group group : limited_groups) {
    auto& group_members = members(group);
    while (!group_members.empty() && group_members.front()->since + limit_of(group) <= now) {
      const std::shared_ptr<detail::Connection> late = group_members.front();
      late->drop();
    }
  }
  for (const Listener& listener : listeners_)
    if (listener.parked && count_ >= most_) make_room();
  resume_accepting();
  freed();
  arm();
}

NNI_INLINE void Server::stop() {
  if (!std::exchange(open_, false)) return;
  boost::system::error_code ignored;
  for (Listener& listener : listeners_) {
    listener.acceptor.close(ignored);
    listener.parked.reset();
  }
  timer_.cancel();
  for (auto& group_members : groups_)
    while (!group_members.empty()) {
      const std::shared_ptr<detail::Connection> connection = group_members.front();
      connection->drop();
    }
}

NNI_INLINE awaitable<void> Server::close() {
  const std::shared_ptr<Server> keep = shared_from_this();
  stop();
  while (operations_ != 0) co_await idle_.wait();
  listeners_.clear();
}

}  // namespace nni::net

#endif  // NNI_WITH_HTTP
