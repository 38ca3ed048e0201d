#pragma once

#include <nni/net/detail/connection_inl.hpp>
#include <nni/net/detail/server_core_inl.hpp>
#include <nni/net/detail/server_types_inl.hpp>
#include <nni/net/server.hpp>

#if NNI_WITH_HTTP

#include <utility>

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

NNI_INLINE void Server::screen(Screen screen) { core_->screen(std::move(screen)); }
NNI_INLINE void Server::open() { core_->open(); }
NNI_INLINE unsigned short Server::port() const noexcept { return core_->port(); }
NNI_INLINE std::size_t Server::connections() const noexcept { return core_->connections(); }
NNI_INLINE std::size_t Server::busy() const noexcept { return core_->busy(); }
NNI_INLINE void Server::stop() { core_->stop(); }
NNI_INLINE awaitable<void> Server::close() { return core_->close(); }

}  // namespace nni::net

#endif  // NNI_WITH_HTTP
