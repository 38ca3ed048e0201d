#pragma once

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include <nni/keeper/wire/byte_stream.hpp>
#include <nni/keeper/wire/encoding.hpp>

namespace nni::keeper {

namespace detail {

class SocketStream final : public ByteStream, public std::enable_shared_from_this<SocketStream> {
 public:
  explicit SocketStream(boost::asio::local::stream_protocol::socket socket) : socket_(std::move(socket)) {
    socket_.non_blocking(true);
    // A program that either side starts would otherwise hold the connection beyond the life of its owner.
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
  }

  void start(Events events) override {
    events_ = std::move(events);
    delivering_ = true;
    receive();
  }

  void flush() override {
    if (failed_) return;
    if (sending_.empty()) {
      sending_.swap(out_);
      sent_ = 0;
    } else {
      sending_.append(out_);
      out_.clear();
    }
    if (!waiting_) send();
  }

  void hold(bool held) override {
    held_ = held;
    if (!held_ && delivering_ && !receiving_) receive();
  }

  [[nodiscard]] std::size_t backlog() const noexcept override { return sending_.size() - sent_; }

  void close() override {
    delivering_ = false;
    failed_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  void send() {
    while (sent_ < sending_.size()) {
      const ssize_t got = ::send(
          socket_.native_handle(), sending_.data() + sent_, sending_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (got > 0) {
        sent_ += static_cast<std::size_t>(got);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return wait_to_send();
      } else if (errno != EINTR) {
        failed_ = true;  // the receiving side reports it
        break;
      }
    }
    sending_.clear();
    if (sending_.capacity() > kept_capacity) sending_.shrink_to_fit();
    sent_ = 0;
  }

  void wait_to_send() {
    if (sent_ > sending_.size() / 2) {
      sending_.erase(0, sent_);
      sent_ = 0;
    }
    waiting_ = true;
    socket_.async_wait(
        boost::asio::socket_base::wait_write, [self = shared_from_this()](const boost::system::error_code& failure) {
          self->waiting_ = false;
          if (failure || self->failed_) return;
          self->send();
          if (self->sending_.empty() && self->delivering_ && self->events_.drained) self->events_.drained();
        });
  }

  void receive() {
    receiving_ = true;
    socket_.async_wait(
        boost::asio::socket_base::wait_read, [self = shared_from_this()](const boost::system::error_code& failure) {
          self->receiving_ = false;
          if (!self->delivering_) return;
          if (failure)
            self->lost();
          else if (!self->held_)
            self->take();
        });
  }

  void take() {
    // A few turns, so that a talkative peer does not keep everybody else waiting.
    std::array<char, 64 * 1024> buffer;
    for (int turn = 0; turn < 4; ++turn) {
      const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (got <= 0) return lost();
      events_.bytes(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
      if (!delivering_ || held_) return;
      if (static_cast<std::size_t>(got) < buffer.size()) break;
    }
    receive();
  }

  void lost() {
    failed_ = true;
    delivering_ = false;
    boost::system::error_code ignored;
    socket_.close(ignored);
    events_.closed();
  }

  boost::asio::local::stream_protocol::socket socket_;
  Events events_;
  bool delivering_ = false;  // started, and neither side has hung up
  std::string sending_;
  std::size_t sent_ = 0;
  bool waiting_ = false;
  bool receiving_ = false;
  bool held_ = false;
  bool failed_ = false;
};

class LoopbackStream final : public ByteStream, public std::enable_shared_from_this<LoopbackStream> {
 public:
  explicit LoopbackStream(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void join(const std::shared_ptr<LoopbackStream>& peer) { peer_ = peer; }

  void start(Events events) override {
    events_ = std::move(events);
    delivering_ = true;
    if (!arrived_.empty()) deliver_soon();
  }

  void flush() override {
    const auto peer = peer_.lock();
    if (!peer || out_.empty()) return out_.clear();
    peer->arrived_.append(out_);
    out_.clear();
    peer->deliver_soon();
  }

  void hold(bool held) override {
    held_ = held;
    if (!held_) deliver_soon();
  }

  [[nodiscard]] std::size_t backlog() const noexcept override {
    const auto peer = peer_.lock();
    return peer ? peer->arrived_.size() : 0;
  }

  void close() override {
    delivering_ = false;
    if (const auto peer = peer_.lock()) {
      peer->peer_closed_ = true;
      peer->deliver_soon();
    }
    peer_.reset();
  }

 private:
  void deliver_soon() {
    if (posted_) return;
    posted_ = true;
    boost::asio::post(executor_, [self = shared_from_this()] {
      self->posted_ = false;
      self->deliver();
    });
  }

  void deliver() {
    if (!delivering_ || held_) return;
    if (!arrived_.empty()) {
      std::string bytes;
      bytes.swap(arrived_);
      events_.bytes(bytes);
      bytes.clear();
      if (arrived_.empty()) arrived_.swap(bytes);  // keeps the room
      if (const auto peer = peer_.lock(); peer && peer->delivering_ && peer->events_.drained) peer->events_.drained();
    }
    if (peer_closed_ && !held_ && std::exchange(delivering_, false)) events_.closed();
  }

  boost::asio::any_io_executor executor_;
  std::weak_ptr<LoopbackStream> peer_;
  Events events_;
  bool delivering_ = false;  // started, and neither side has hung up
  std::string arrived_;
  bool posted_ = false;
  bool held_ = false;
  bool peer_closed_ = false;
};

}  // namespace detail

NNI_INLINE std::shared_ptr<ByteStream> make_socket_stream(boost::asio::local::stream_protocol::socket socket) {
  return std::make_shared<detail::SocketStream>(std::move(socket));
}

NNI_INLINE std::pair<std::shared_ptr<ByteStream>, std::shared_ptr<ByteStream>> make_loopback_streams(
    const boost::asio::any_io_executor& executor) {
  const auto first = std::make_shared<detail::LoopbackStream>(executor);
  const auto second = std::make_shared<detail::LoopbackStream>(executor);
  first->join(second);
  second->join(first);
  return {first, second};
}

}  // namespace nni::keeper
