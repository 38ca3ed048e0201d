#pragma once

#include <nni/core/error.hpp>
#include <nni/net/detail/server_types_inl.hpp>
#include <nni/net/http_parser.hpp>

#if NNI_WITH_HTTP

#include <algorithm>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/none.hpp>

namespace nni::net::detail {

// A client that sends more while it is owed an answer has to wait with it.
inline constexpr std::size_t most_unread = 16 * 1024;

// Pipelined requests that are handled before other connections have their turn.
inline constexpr int most_at_once = 16;

NNI_INLINE Connection::Connection(std::shared_ptr<Server> server, tcp::socket socket)
    : server_(std::move(server)), socket_(std::move(socket)), slot_(std::make_shared<ReplySlot>()) {
  slot_->connection = this;
}

NNI_INLINE Connection::~Connection() { slot_->connection = nullptr; }

NNI_INLINE void Connection::start() {
  guarded([this] {
    error_code failure;
    socket_.non_blocking(true, failure);
    if (failure) return drop();
    wait_readable();
  });
}

NNI_INLINE void Connection::drop() {
  if (ended_) return;
  ended_ = true;
  slot_->serial = 0;
  slot_->connection = nullptr;
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  socket_.close(ignored);
  if (!dispatching_) head_.reset();  // the running handler still looks at the request
  const std::shared_ptr<Server> server = server_;
  if (std::exchange(claiming_, false)) server->withdraw(*this);
  share_.release();
  if (const std::size_t bytes = std::exchange(counted_, 0)) server->budget_->give_back(false, bytes);
  server->remove(*this);
}

NNI_INLINE void Connection::shed(const char* reason) noexcept {
  server_->complain_of_memory(reason);
  drop();
}

// A lack of memory closes this connection and no other.
template <class F>
void Connection::guarded(F&& step) noexcept {
  const std::shared_ptr<Connection> keep = shared_from_this();
  try {
    step();
    count_bytes();
  } catch (const std::exception& error) {
    shed(error.what());
  } catch (...) {
    shed("an unknown exception");
  }
}

// Keeps the account of what this connection holds, a large body aside: that was counted before it came.
NNI_INLINE void Connection::count_bytes() noexcept {
  if (ended_) return;
  const bool large = announced_ > large_body;
  const std::size_t bytes = unread_.size() + unsent_.size() + (large ? 0 : body_.size());
  std::size_t& all = server_->budget_->small;
  all += bytes;
  if (const std::size_t before = std::exchange(counted_, bytes); before != 0)
    before > bytes ? server_->budget_->give_back(false, before) : static_cast<void>(all -= before);
}

NNI_INLINE void Connection::wait_readable() {
  if (ended_ || reading_ || starved_ || claiming_ || yielded_) return;
  reading_ = true;
  server_->begin_operation();
  try {
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code failure) {
      self->reading_ = false;
      self->guarded([&] { self->readable(failure); });
      self->server_->end_operation();
    });
  } catch (...) {
    reading_ = false;
    server_->end_operation();
    throw;
  }
}

NNI_INLINE void Connection::fed() {
  starved_ = false;
  guarded([this] { wait_readable(); });
}

NNI_INLINE void Connection::readable(error_code failure) {
  if (ended_) return;
  was_read = true;
  if (failure) return drop();
  if (claiming_ || yielded_) return;
  if (!discarding_ && !server_->has_memory(*this)) {
    starved_ = true;
    return server_->starve(*this);
  }
  auto& scratch = server_->scratch_;
  const bool owed = slot_->serial != 0 || writing_;
  const std::size_t most = owed && !discarding_ ? most_unread - std::min(unread_.size(), most_unread) : scratch.size();
  if (most == 0) return;
  const std::size_t size = socket_.read_some(boost::asio::buffer(scratch.data(), most), failure);
  if (failure == boost::asio::error::would_block || failure == boost::asio::error::try_again) return wait_readable();
  if (failure) {
    // The client has no more to say. An answer that is owed is still delivered: it may have closed one direction only.
    if (slot_->serial == 0 && !writing_) return drop();
    slot_->client_left = true;
    close_after_ = true;
    return;
  }
  if (discarding_) {
    discarded_ += size;
    return discarded_ > most_discarded_ ? drop() : wait_readable();
  }
  if (owed) {
    // Requests are answered in order, so this one has to wait; its sender too, if it sends much.
    unread_.append(scratch.data(), size);
    if (unread_.size() < most_unread) wait_readable();
    return;
  }
  if (unread_.empty()) {
    const std::size_t used = feed(std::string_view(scratch.data(), size));
    if (ended_) return;
    unread_.append(scratch.data() + used, size - used);
  } else {
    unread_.append(scratch.data(), size);
    consume();
    if (ended_) return;
  }
  wait_readable();
}

// Takes requests from the bytes and gives them to their handlers, until an answer is owed or the bytes are used up.
NNI_INLINE std::size_t Connection::feed(std::string_view data) {
  std::size_t used = 0;
  int requests = 0;
  while (!ended_ && !discarding_ && !close_after_ && !claiming_ && slot_->serial == 0 && !writing_) {
    const std::string_view rest = data.substr(used);
    if (rest.empty() && !(head_ && announced_ == 0)) break;
    if (!head_ && passing_over_ == 0 && requests++ == most_at_once) {
      yield();
      break;
    }
    if (passing_over_ != 0) {
      const std::size_t now = std::min(passing_over_, rest.size());
      used += now;
      passing_over_ -= now;
      if (passing_over_ == 0) server_->move_to(*this, Group::idle);
    } else if (!head_) {
      const std::size_t length = read_head(rest);
      if (length == 0) break;
      used += length;
      begin_request();
    } else if (body_.empty() && rest.size() >= announced_) {
      used += announced_;
      dispatch(rest.substr(0, announced_));
    } else {
      const std::size_t now = std::min(announced_ - body_.size(), rest.size());
      take_part(rest.substr(0, now));
      used += now;
      if (body_.size() == announced_) dispatch(body_);
    }
  }
  return discarding_ ? data.size() : used;
}

// Lets others have their turn before the next request of this connection.
NNI_INLINE void Connection::yield() {
  yielded_ = true;
  server_->begin_operation();
  try {
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
      self->yielded_ = false;
      self->guarded([&] { self->go_on(); });
      self->server_->end_operation();
    });
  } catch (...) {
    server_->end_operation();
    throw;
  }
}

// Returns the length of the head, 0 while it is incomplete or when it is none.
NNI_INLINE std::size_t Connection::read_head(std::string_view data) {
  if (searched_ == 0) server_->move_to(*this, Group::busy);
  const std::size_t most = server_->options_.max_head_bytes;
  const std::size_t end = data.substr(0, most).find("\r\n\r\n", searched_ - std::min<std::size_t>(searched_, 3));
  if (end == std::string_view::npos) {
    searched_ = data.size();
    if (data.size() >= most) refuse(431, "the header may have " + std::to_string(most) + " bytes");
    return 0;
  }
  searched_ = 0;
  head_.emplace();
  head_->skip(true);  // bodies are taken by this class
  head_->header_limit(static_cast<std::uint32_t>(most + 1));
  head_->body_limit(boost::none);
  error_code failure;
  const std::size_t taken = head_->put(boost::asio::const_buffer(data.data(), end + 4), failure);
  if (failure || taken != end + 4 || !head_->is_header_done()) {
    refuse(400, failure ? failure.message() : "this is not an HTTP request");
    return 0;
  }
  return taken;
}

NNI_INLINE Request Connection::request_of_head() const {
  const auto view = [](auto text) { return std::string_view(text.data(), text.size()); };
  const auto& message = head_->get();
  Request request;
  request.method = view(message.method_string());
  const std::string_view target = view(message.target());
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  request.content_type = view(message[boost::beast::http::field::content_type]);
  request.fields_ = &static_cast<const boost::beast::http::fields&>(message.base());
  request.find_ = [](const void* fields, std::string_view name) {
    const auto value =
        (*static_cast<const boost::beast::http::fields*>(fields))[boost::beast::string_view(name.data(), name.size())];
    return std::string_view(value.data(), value.size());
  };
  return request;
}

NNI_INLINE bool Connection::is_last() const {
  const auto& message = head_->get();
  return !message.keep_alive() || message.version() < 11;
}

// Decides by the head alone, so that strangers cannot send a body.
NNI_INLINE void Connection::begin_request() {
  const Request request = request_of_head();
  Screening verdict;
  bool known_path = false;
  if (!server_->find(request.method, request.path, known_path)) {
    verdict.status = known_path ? 405 : 404;
    verdict.reason = reason_phrase(verdict.status);
  } else if (server_->screen_) {
    try {
      verdict = server_->screen_(request);
    } catch (const std::exception& error) {
      server_->complain("a request could not be screened: " + std::string(error.what()));
      verdict.status = 500;
      verdict.reason = "internal error";
    }
  }
  proven = proven || verdict.known;
  if (verdict.client != 0) client = verdict.client;

  // Two ways to find the end of a body are the door to smuggled requests, and no trial needs the second one.
  const auto length = head_->content_length();
  const bool coded = head_->get().count(boost::beast::http::field::transfer_encoding) != 0;
  if (verdict.status == 0 && coded)
    return refuse(411, "send the body with a Content-Length; a Transfer-Encoding is not accepted");
  const std::size_t most = server_->options_.max_body_bytes;
  if (!coded && length && *length > most) {
    most_discarded_ =
        std::max<std::size_t>(most_discarded_, most > *length / 4 ? static_cast<std::size_t>(*length) : 0);
    if (verdict.status == 0) return refuse(413, "the body may have " + std::to_string(most) + " bytes");
  }
  if (coded || (length && *length > most)) return refuse(verdict.status, verdict.reason);
  announced_ = length ? static_cast<std::size_t>(*length) : 0;
  if (verdict.status != 0) return decline(verdict.status, verdict.reason);

  if (announced_ > large_body) {
    server_->move_to(*this, Group::loading);
    claiming_ = !server_->claim(*this, announced_);
    if (claiming_) return;
  } else {
    server_->move_to(*this, Group::busy);
  }
  begin_body();
}

NNI_INLINE void Connection::granted(BudgetShare share) {
  share_ = std::move(share);
  if (!std::exchange(claiming_, false)) return;
  guarded([this] {
    server_->move_to(*this, Group::loading);  // its time begins with its turn
    begin_body();
    go_on();
  });
}

NNI_INLINE void Connection::begin_body() {
  if (announced_ != 0 && equal_ignoring_case(request_of_head().header("expect"), "100-continue"))
    write("HTTP/1.1 100 Continue\r\n\r\n");
}

// Room grows with what has come, never beyond what was announced. A large body gets all of its room at once when a part of
// it is there: while a string moves, two of its sizes are in memory.
NNI_INLINE void Connection::take_part(std::string_view part) {
  constexpr std::size_t large = 1024 * 1024;
  if (const std::size_t needed = body_.size() + part.size(); needed > body_.capacity()) {
    const bool at_once = needed > large && needed >= announced_ / 16;
    body_.reserve(at_once ? announced_ : std::min(announced_, std::max(needed, 2 * body_.capacity())));
  }
  body_ += part;
}

NNI_INLINE void Connection::dispatch(std::string_view body) {
  close_after_ = close_after_ || is_last();
  head_request_ = head_->get().method() == boost::beast::http::verb::head;
  Request request = request_of_head();
  request.body = body;
  request.own_body_ = body.data() == body_.data() ? &body_ : nullptr;
  BudgetShare share = announced_ > large_body ? std::move(share_) : BudgetShare(server_->budget_, false, body.size());
  announced_ = 0;
  server_->move_to(*this, Group::waiting);
  slot_->serial = ++serial_;
  slot_->client_left = false;

  dispatching_ = true;
  Responder responder(slot_, serial_, std::move(share));
  bool known_path = false;
  if (const Handler* handler = server_->find(request.method, request.path, known_path)) {
    try {
      (*handler)(request, std::move(responder));
    } catch (...) {
      server_->complain("a request handler failed: " + describe(std::current_exception()));
      if (!ended_ && slot_->serial == serial_) answer(500, "internal error", "text/plain");
    }
  }
  dispatching_ = false;
  std::string().swap(body_);  // connections of trials may be idle for hours
  head_.reset();
}

NNI_INLINE void Connection::answer(unsigned status, std::string_view body, std::string_view content_type) {
  std::string& text = server_->answer_buffer_;
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

// Answers without looking at the body, which is passed over.
NNI_INLINE void Connection::decline(unsigned status, std::string_view reason) {
  // A client that waits for 100 Continue may now send its body or not.
  const bool unsure = announced_ != 0 && !request_of_head().header("expect").empty();
  close_after_ = close_after_ || unsure || is_last();
  head_request_ = head_->get().method() == boost::beast::http::verb::head;
  passing_over_ = close_after_ ? 0 : announced_;
  announced_ = 0;
  dispatching_ = true;
  head_.reset();
  answer(status, reason, "text/plain");
  dispatching_ = false;
}

NNI_INLINE void Connection::refuse(unsigned status, std::string_view reason) {
  close_after_ = true;
  discarding_ = true;
  head_request_ = false;
  announced_ = 0;
  head_.reset();
  answer(status, reason, "text/plain");
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
  try {
    socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](error_code failure) {
      self->guarded([&] { self->writable(failure); });
      self->server_->end_operation();
    });
  } catch (...) {
    server_->end_operation();
    throw;
  }
}

NNI_INLINE void Connection::writable(error_code failure) {
  if (ended_) return;
  if (failure) return drop();
  const std::size_t sent = socket_.write_some(boost::asio::buffer(unsent_), failure);
  if (failure && failure != boost::asio::error::would_block && failure != boost::asio::error::try_again) return drop();
  unsent_.erase(0, sent);
  if (!unsent_.empty()) {
    server_->move_to(*this, Group::busy);  // there is progress: the limit starts again
    return wait_writable();
  }
  writing_ = false;
  if (slot_->serial == 0 && !head_) answered();
  if (!ended_ && !discarding_) go_on();
}

// An answer has left. Decides what becomes of the connection.
NNI_INLINE void Connection::answered() {
  if (!close_after_) {
    server_->move_to(*this, passing_over_ != 0 ? Group::busy : Group::idle);
    // Inside a handler `feed` continues by itself; later, a waiting request must not be handled inside the call of
    // whoever gave the answer.
    if (!dispatching_ && !unread_.empty()) {
      if (!yielded_) yield();
    } else if (!dispatching_ && !discarding_) {
      wait_readable();
    }
    return;
  }
  end();
}

NNI_INLINE void Connection::go_on() {
  if (ended_ || dispatching_ || claiming_ || yielded_ || slot_->serial != 0 || writing_) return;
  consume();
  if (!ended_) wait_readable();
}

// Feeds what was read and not used yet. It is held apart, so that nothing that happens meanwhile changes it.
NNI_INLINE void Connection::consume() {
  std::string bytes = std::exchange(unread_, {});
  const std::size_t used = feed(bytes);
  if (ended_) return;
  bytes.erase(0, used);
  bytes += unread_;
  unread_ = std::move(bytes);
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
