#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <nni/core/macros.hpp>

namespace nni::keeper {

/// A stream of bytes in both directions between a manager and a keeper.
///
/// Senders append to `out` as often as they like and `flush` once; so many frames become one system call.
class ByteStream {
 public:
  /// Events of a stream. All are called from the executor, never from inside a member of the stream.
  struct Events {
    std::function<void(std::string_view)> bytes = {};  ///< bytes have come; they are valid during the call
    std::function<void()> drained =
        {};                             ///< everything that was flushed has been taken by the kernel; may be left empty
    std::function<void()> closed = {};  ///< the other side is gone; nothing follows
  };

  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  /// Starts to deliver events.
  virtual void start(Events events) = 0;

  /// Returns the buffer to which frames that shall be sent are appended.
  std::string& out() noexcept { return out_; }

  /// Sends the contents of `out`, now or as soon as the other side takes it.
  virtual void flush() = 0;

  /// Delivers nothing while it is held; the other side's bytes wait in its own buffers, and its `backlog` says so.
  virtual void hold(bool held) = 0;

  /// Returns the number of bytes that were flushed and not yet taken.
  [[nodiscard]] virtual std::size_t backlog() const noexcept = 0;

  /// Hangs up; no event follows. Bytes that were flushed and not taken are lost.
  virtual void close() = 0;

 protected:
  std::string out_;  ///< bytes that shall be sent
};

/// Creates a stream over a connected Unix socket.
[[nodiscard]] std::shared_ptr<ByteStream> make_socket_stream(boost::asio::local::stream_protocol::socket socket);

/// Creates the two ends of a stream within one executor.
[[nodiscard]] std::pair<std::shared_ptr<ByteStream>, std::shared_ptr<ByteStream>> make_loopback_streams(
    const boost::asio::any_io_executor& executor);

}  // namespace nni::keeper

#if NNI_HEADER_ONLY
#include <nni/keeper/wire/byte_stream_inl.hpp>
#endif
