#pragma once

#include <exception>

#include <nni/core/error.hpp>
#include <nni/keeper/process/connection.hpp>

#if NNI_WITH_PROCESS

namespace nni::keeper {

namespace detail {

/// Above this, records of a slow manager stay in the spool.
inline constexpr std::size_t most_backlog = 4 * 1024 * 1024;
inline constexpr std::size_t replay_chunk = 1024 * 1024;

}  // namespace detail

NNI_INLINE Connection::Connection(Keeper& keeper, std::shared_ptr<ByteStream> stream, Host host, Log log)
    : keeper_(&keeper), stream_(std::move(stream)), host_(std::move(host)), log_(std::move(log)) {
  reader_.limit(max_greeting_payload);
}

NNI_INLINE void Connection::start() {
  ByteStream::Events events;
  events.bytes = [this](std::string_view bytes) { on_bytes(bytes); };
  events.drained = [this] { on_drained(); };
  events.closed = [this] { on_closed(); };
  stream_->start(std::move(events));
}

NNI_INLINE void Connection::on_bytes(std::string_view bytes) {
  const std::shared_ptr<Connection> keep = shared_from_this();
  try {
    reader_.feed(bytes);
    while (!ended_) {
      const std::optional<Frame> frame = reader_.next();
      if (!frame) break;
      handle(*frame);
    }
  } catch (const std::exception& error) {  // costs this connection, and nobody else anything
    fail(error.what());
  }
}

NNI_INLINE void Connection::on_drained() {
  const std::shared_ptr<Connection> keep = shared_from_this();
  try {
    send_more();
  } catch (const std::exception& error) {  // costs this connection, and nobody else anything
    fail(error.what());
  }
}

NNI_INLINE void Connection::fail(const std::string& reason) {
  log_.error("keeper", "a connection was closed: " + reason);
  append_frame(stream_->out(), FrameType::refused, 0, [&reason](Writer& out) { out.text(reason); });
  stream_->flush();
  end();
}

NNI_INLINE void Connection::on_closed() {
  const std::shared_ptr<Connection> keep = shared_from_this();
  end();
}

// False when that was done before.
NNI_INLINE bool Connection::hang_up() {
  if (std::exchange(ended_, true)) return false;
  if (manager_) {
    keeper_->on_records(nullptr);
    keeper_->on_trouble(nullptr);
    keeper_->on_deferred(nullptr);
  }
  stream_->close();
  return true;
}

NNI_INLINE void Connection::end() {
  if (hang_up()) host_.over(*this);
}

NNI_INLINE void Connection::close() { hang_up(); }

NNI_INLINE void Connection::handle(const Frame& frame) {
  if (manager_) return command(frame);
  switch (frame.type) {
    case FrameType::hello: return greet(frame);
    case FrameType::ask_status: return reply_status(false);
    case FrameType::stop: return reply_status(true);
    default: throw Error(Errc::protocol, "keeper protocol: the other side did not greet first");
  }
}

NNI_INLINE void Connection::reply_status(bool stop) {
  const std::string status = host_.status(stop);
  append_frame(stream_->out(), FrameType::status, 0, [&status](Writer& out) { out.text(status); });
  stream_->flush();
}

NNI_INLINE void Connection::greet(const Frame& frame) {
  hello_ = decode_hello(frame.payload).value();
  last_command_ = frame.sequence;
  if (const std::string refusal = host_.admit(*this, hello_); !refusal.empty()) {
    append_frame(stream_->out(), FrameType::refused, 0, [&refusal](Writer& out) { out.text(refusal); });
    stream_->flush();
    return end();
  }
  manager_ = true;
  reader_.limit(max_frame_payload);
  keeper_->inherit(hello_.environment);
  const Welcome welcome = keeper_->welcome();
  append_frame(stream_->out(), FrameType::welcome, 0, [&welcome](Writer& out) { encode(out, welcome); });
  stream_->flush();

  old_end_ = welcome.next_position;  // also what is not written yet: runs that it ends are not listed any more
  next_ = 0;
  behind_ = true;
  keeper_->on_records([this](std::string_view frames, std::uint64_t first, std::uint64_t last) {
    if (behind_ || first != next_) return;  // they are read from the spool when it is their turn
    stream_->out().append(frames);
    next_ = last;
    send_caught_up();
    stream_->flush();
    behind_ = stream_->backlog() > detail::most_backlog;
  });
  keeper_->on_trouble([this](const std::string& text) {
    append_frame(stream_->out(), FrameType::trouble, 0, [&text](Writer& out) { out.text(text); });
    stream_->flush();
  });
  keeper_->on_deferred([this](RunId run, const std::string& reason) {
    append_frame(
        stream_->out(), FrameType::deferred, 0, [run, &reason](Writer& out) { encode_deferred(out, run, reason); });
    stream_->flush();
  });
  send_more();
}

NNI_INLINE void Connection::send_more() {
  if (!manager_ || ended_) return;
  while (behind_ && stream_->backlog() < detail::most_backlog) {
    next_ = keeper_->replay(next_, detail::replay_chunk, stream_->out());
    send_caught_up();
    behind_ = next_ < keeper_->written_end();
    stream_->flush();
  }
}

NNI_INLINE void Connection::send_caught_up() {
  if (next_ < old_end_ || std::exchange(sent_caught_up_, true)) return;
  append_frame(stream_->out(), FrameType::caught_up, 0, [](Writer&) {});
}

NNI_INLINE void Connection::command(const Frame& frame) {
  if (frame.sequence != last_command_ + 1)
    throw Error(Errc::protocol, "keeper protocol: command " + std::to_string(frame.sequence) + " came after command " +
                                    std::to_string(last_command_));
  last_command_ = frame.sequence;
  switch (frame.type) {
    case FrameType::job: return keeper_->define(decode_job(frame.payload).value());
    case FrameType::start: return start(decode_start(frame.payload).value());
    case FrameType::kill: {
      const auto order = decode_kill(frame.payload).value();
      return keeper_->kill(order.first, order.second);
    }
    case FrameType::acknowledge: return keeper_->acknowledge(decode_ranges(frame.payload).value());
    case FrameType::parameters: {
      auto order = decode_parameters(frame.payload).value();
      return keeper_->send(order.first, std::move(order.second));
    }
    case FrameType::finish: return host_.finish();
    default:
      throw Error(
          Errc::protocol,
          "keeper protocol: a manager does not send frames of type " + std::to_string(static_cast<int>(frame.type)));
  }
}

NNI_INLINE void Connection::start(StartOrder order) {
  const RunId run = order.run;
  const std::string reason = keeper_->start(std::move(order));
  if (reason.empty()) return;
  log_.error("keeper", reason);
  append_frame(
      stream_->out(), FrameType::not_taken, 0, [run, &reason](Writer& out) { encode_not_taken(out, run, reason); });
  stream_->flush();
}

NNI_INLINE void Connection::send_finished() {
  append_frame(stream_->out(), FrameType::finished, 0, [](Writer&) {});
  stream_->flush();
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
