#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <nni/core/macros.hpp>

namespace nni::keeper {

/// What the user of a stream is told. All calls come from the executor, never from inside a member of the stream.
class StreamUser {
 public:
  /// Bytes have come; they are valid during the call.
  virtual void on_bytes(std::string_view bytes) = 0;

  /// Everything that was flushed has been taken by the other side's kernel.
  virtual void on_drained() {}

  /// The other side is gone. Nothing follows.
  virtual void on_closed() = 0;

 protected:
  ~StreamUser() = default;
};

/// A stream of bytes in both directions between a manager and a keeper.
///
/// Senders append to `out` as often as they like and `flush` once; so many frames become one system call.
class ByteStream {
 public:
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  /// Starts to deliver to a user.
  virtual void start(StreamUser& user) = 0;

  /// Where to append what shall be sent.
  std::string& out() noexcept { return out_; }

  /// Sends what stands in `out`, now or as soon as the other side takes it.
  virtual void flush() = 0;

  /// Delivers nothing while it is held; the other side's bytes wait in its own buffers, and its `backlog` says so.
  virtual void hold(bool held) = 0;

  /// Bytes that were flushed and not yet taken.
  [[nodiscard]] virtual std::size_t backlog() const noexcept = 0;

  /// Hangs up; the user hears nothing more. What was flushed and not taken is lost.
  virtual void close() = 0;

 protected:
  std::string out_;  ///< what shall be sent
};

/// A stream over a connected Unix socket.
[[nodiscard]] std::shared_ptr<ByteStream> make_socket_stream(boost::asio::local::stream_protocol::socket socket);

/// Two ends of a stream within one executor.
[[nodiscard]] std::pair<std::shared_ptr<ByteStream>, std::shared_ptr<ByteStream>> make_loopback_streams(
    const boost::asio::any_io_executor& executor);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/wire/byte_stream_inl.hpp>
#endif
