#pragma once

#include <nni/core/error.hpp>
#include <nni/net/impl/server_types.ipp>

#if NNI_WITH_HTTP

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace nni::net::detail {

// Processes that are started while the server runs must not keep its sockets open.
template <class Socket>
void close_on_exec(Socket& socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

NNI_INLINE ServerCore::ServerCore(boost::asio::any_io_executor executor, ServerOptions options, Log log)
    : executor_(std::move(executor)), options_(std::move(options)), log_(std::move(log)), timer_(executor_) {}

NNI_INLINE void ServerCore::route(std::string method, std::string prefix, Handler handler) {
  routes_.push_back({std::move(method), std::move(prefix), std::move(handler)});
}

NNI_INLINE const Handler* ServerCore::find(
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

NNI_INLINE unsigned short ServerCore::bind(const tcp::endpoint& endpoint, bool dual) {
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
NNI_INLINE void ServerCore::open_loopback() {
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
  open_ = true;
  for (Listener& listener : listeners_) accept(listener);
}

NNI_INLINE void ServerCore::accept(Listener& listener) {
  if (!open_ || listener.accepting || listener.parked) return;
  listener.accepting = true;
  begin_operation();
  listener.acceptor.async_wait(tcp::acceptor::wait_read, [self = shared_from_this(), &listener](error_code failure) {
    if (self->open_) {
      listener.accepting = false;
      if (!failure) self->accept_waiting(listener);
      self->accept(listener);
    }
    self->end_operation();
  });
}

// Accepts who has connected by now.
NNI_INLINE void ServerCore::accept_waiting(Listener& listener) {
  constexpr int most = 256;  // then the others have their turn
  for (int count = 0; count < most && open_; ++count) {
    tcp::socket socket(executor_);
    error_code failure;
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
    if (count_ >= options_.max_connections && !make_room()) {
      listener.parked = std::move(socket);  // it waits, and with it those in the system's queue, until one ends
      return;
    }
    admit(std::move(socket));
  }
}

NNI_INLINE void ServerCore::admit(tcp::socket socket) {
  auto connection = std::make_shared<Connection>(shared_from_this(), std::move(socket));
  auto& idle = groups_[static_cast<std::size_t>(Group::idle)];
  connection->since = std::chrono::steady_clock::now();
  connection->place = idle.insert(idle.end(), connection);
  ++count_;
  if (!timer_armed_ || connection->since + limit_of(Group::idle) < timer_.expiry()) arm();
  connection->start();
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
  for (Listener& listener : listeners_) {
    if (std::exchange(listener.refused, false)) listener.accepting = false;
    if (listener.parked && count_ < options_.max_connections) {
      tcp::socket socket = std::move(*listener.parked);
      listener.parked.reset();
      admit(std::move(socket));
    }
    accept(listener);
  }
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
  for (const Listener& listener : listeners_) {
    if (!listener.refused) continue;
    const SteadyPoint soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    if (!next || soon < *next) next = soon;
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
  for (Listener& listener : listeners_) {
    listener.acceptor.close(ignored);
    listener.parked.reset();
  }
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
  listeners_.clear();
}

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP
