#pragma once

#include <nni/core/error.hpp>
#include <nni/net/http.hpp>
#include <nni/net/impl/server_types.ipp>

#if NNI_WITH_HTTP

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/fields.hpp>

namespace nni::net::detail {

// A larger body gives its memory back when it was handled: connections of trials may be idle for hours.
inline constexpr std::size_t most_kept = 64 * 1024;

// A client that sends more while it is owed an answer has to wait with it.
inline constexpr std::size_t most_unread = 64 * 1024;

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
  if (!dispatching_) parser_.reset();  // the running handler still looks at the request
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
    const auto value =
        (*static_cast<const boost::beast::http::fields*>(fields))[boost::beast::string_view(name.data(), name.size())];
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
  if (body_.capacity() > most_kept) std::string().swap(body_);
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
    server_->move_to(*this, Group::busy);  // there is progress: the limit begins anew
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

}  // namespace nni::net::detail

#endif  // NNI_WITH_HTTP
