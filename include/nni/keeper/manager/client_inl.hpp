#pragma once

#include <nni/core/error.hpp>
#include <nni/keeper/manager/client.hpp>
#include <nni/keeper/process/daemon.hpp>
#include <nni/keeper/process/keeper_options.hpp>
#include <nni/keeper/wire/lock.hpp>
#include <nni/keeper/wire/peer.hpp>
#include <nni/keeper/wire/socket_path.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

namespace nni::keeper {

namespace detail {

/// Templates that the client remembers to have sent. Experiments use one.
inline constexpr std::size_t most_jobs = 16;

/// Connects to the socket of a directory; false when nobody listens there.
NNI_INLINE bool connect(boost::asio::local::stream_protocol::socket& socket,
                        const std::filesystem::path& experiment_directory) {
  const SocketPath path(keeper_directory(experiment_directory), socket_name);
  boost::system::error_code failure;
  socket.connect(path.endpoint(), failure);  // a local socket connects at once, or not at all
  if (failure == boost::system::errc::no_such_file_or_directory || failure == boost::system::errc::connection_refused ||
      failure == boost::system::errc::bad_file_descriptor)
    return false;
  if (failure)
    throw Error(failure, "the keeper in " + keeper_directory(experiment_directory).string() + " cannot be reached");
  require_user(
      peer_of(socket.native_handle()), ::geteuid(), (keeper_directory(experiment_directory) / socket_name).string());
  return true;
}

/// Throws when a keeper has a directory although nobody listens there.
NNI_INLINE void require_no_keeper(const std::filesystem::path& experiment_directory) {
  const auto holder = Lock::holder(keeper_directory(experiment_directory) / "lock");
  if (!holder) return;
  const std::string number = std::to_string(*holder);
  throw Error(
      Errc::in_use,
      "the keeper of " + experiment_directory.string() + (*holder == 0 ? std::string() : " (process " + number + ")") +
          " runs and does not listen; it may be starting or ending; if this stays so, see " +
          (keeper_directory(experiment_directory) / "keeper.log").string() +
          (*holder == 0 ? std::string() : ", and end it together with its trials by kill " + number));
}

}  // namespace detail

NNI_INLINE Client::Client(boost::asio::any_io_executor executor, std::shared_ptr<ByteStream> stream, Events events)
    : executor_(std::move(executor)), stream_(std::move(stream)), events_(std::move(events)) {}

NNI_INLINE void Client::open(const Hello& hello) {
  ByteStream::Events events;
  events.bytes = [this](std::string_view bytes) { on_bytes(bytes); };
  events.closed = [this] { on_closed(); };
  stream_->start(std::move(events));
  command(FrameType::hello, [&hello](Writer& out) { encode(out, hello); });
}

template <class Write>
void Client::command(FrameType type, Write&& write) {
  if (ended_) return;
  std::string& out = stream_->out();
  const std::size_t before = out.size();
  append_frame(out, type, next_command_, write);
  if (const std::size_t size = out.size() - before - frame_header_size; size > max_frame_payload) {
    out.resize(before);
    out.shrink_to_fit();
    throw Error(
        Errc::resource_impossible,
        "the command, variables and parameters of one trial take " + std::to_string(size) + " bytes, and at most " +
            std::to_string(max_frame_payload) +
            " can be sent to the keeper; put large values into a file and give the trial its path");
  }
  ++next_command_;
  flush_soon();
}

NNI_INLINE std::uint64_t Client::job(const JobTemplate& wanted) {
  for (std::size_t at = jobs_.size(); at-- > 0;) {
    const JobTemplate& known = jobs_[at];
    if (known.arguments == wanted.arguments && known.directory == wanted.directory &&
        known.environment == wanted.environment && known.discard_output == wanted.discard_output)
      return known.id;
  }
  JobTemplate added = wanted;
  added.id = jobs_.size() < detail::most_jobs ? jobs_.size() + 1 : jobs_.front().id;
  command(FrameType::job, [&added](Writer& out) { encode(out, added); });
  if (jobs_.size() == detail::most_jobs) jobs_.erase(jobs_.begin());
  jobs_.push_back(std::move(added));
  return jobs_.back().id;
}

NNI_INLINE void Client::start(const StartOrder& order) {
  command(FrameType::start, [&order](Writer& out) { encode(out, order); });
}

NNI_INLINE void Client::kill(RunId run, StopReason reason) {
  command(FrameType::kill, [run, reason](Writer& out) { encode_kill(out, run, reason); });
}

NNI_INLINE void Client::send(RunId run, std::string_view record) {
  command(FrameType::parameters, [run, record](Writer& out) { encode_parameters(out, run, record); });
}

NNI_INLINE void Client::acknowledge(std::uint64_t position) {
  if (ended_) return;
  if (!acknowledged_.empty() && acknowledged_.back().first + acknowledged_.back().count == position)
    ++acknowledged_.back().count;
  else
    acknowledged_.push_back({position, 1});
  flush_soon();
}

NNI_INLINE void Client::finish() {
  // What was acknowledged before must reach the keeper before it ends.
  flush();
  command(FrameType::finish, [](Writer&) {});
}

NNI_INLINE void Client::close() {
  if (ended_) return;
  flush();
  ended_ = true;
  stream_->close();
}

NNI_INLINE void Client::flush_soon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(executor_, [self = shared_from_this()] {
    self->flush_posted_ = false;
    self->flush();
  });
}

NNI_INLINE void Client::flush() {
  if (ended_) return;
  if (!acknowledged_.empty()) {
    append_frame(stream_->out(), FrameType::acknowledge, next_command_++, [this](Writer& out) {
      encode_ranges(out, acknowledged_);
    });
    acknowledged_.clear();
  }
  if (!stream_->out().empty()) stream_->flush();
}

NNI_INLINE void Client::on_bytes(std::string_view bytes) {
  const std::shared_ptr<Client> keep = shared_from_this();
  try {
    reader_.feed(bytes);
    while (!ended_) {
      const std::optional<Frame> frame = reader_.next();
      if (!frame) break;
      handle(*frame);
    }
  } catch (const std::exception& error) {
    end(events_.refused, error.what());
  }
}

NNI_INLINE void Client::on_closed() {
  const std::shared_ptr<Client> keep = shared_from_this();
  end(events_.closed, "the keeper hung up");
}

NNI_INLINE void Client::end(const std::function<void(std::string)>& notify, std::string reason) {
  if (std::exchange(ended_, true)) return;
  stream_->close();
  notify(std::move(reason));
}

NNI_INLINE void Client::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::record: return events_.record(decode_record(frame.payload, frame.sequence).value());
    case FrameType::welcome: return events_.welcome(decode_welcome(frame.payload).value());
    case FrameType::refused: return end(events_.refused, std::string(Reader(frame.payload).text()));
    case FrameType::caught_up: return events_.caught_up();
    case FrameType::trouble: return events_.trouble(std::string(Reader(frame.payload).text()));
    case FrameType::deferred: {
      auto one = decode_deferred(frame.payload).value();
      if (events_.deferred) events_.deferred(one.first, std::move(one.second));
      return;
    }
    case FrameType::finished: return events_.finished();
    case FrameType::not_taken: {
      auto refusal = decode_not_taken(frame.payload).value();
      if (events_.not_taken) events_.not_taken(refusal.first, std::move(refusal.second));
      return;
    }
    default:
      throw Error(
          Errc::protocol,
          "keeper protocol: a keeper does not send frames of type " + std::to_string(static_cast<int>(frame.type)));
  }
}

NNI_INLINE std::shared_ptr<ByteStream> connect_to_keeper(
    const boost::asio::any_io_executor& executor, const std::filesystem::path& experiment_directory) {
  boost::asio::local::stream_protocol::socket socket(executor);
  if (!detail::connect(socket, experiment_directory)) return nullptr;
  return make_socket_stream(std::move(socket));
}

NNI_INLINE std::string unanswered(const std::filesystem::path& experiment_directory, Duration limit) {
  const auto process = Lock::holder(keeper_directory(experiment_directory) / "lock").value_or(0);
  const std::string id = std::to_string(process);
  return "the keeper of " + experiment_directory.string() + (process > 0 ? " (process " + id + ")" : "") +
         " has not answered for " + to_string(limit) +
         (process > 0 ? "; if it was stopped, let it continue with \"kill -CONT " + id + "\"; \"kill -KILL " + id +
                            "\" ends it, and the next resume then ends its trials and runs them again"
                      : std::string());
}

NNI_INLINE std::string ask_keeper(const std::filesystem::path& experiment_directory, bool stop, Duration limit) {
  const SteadyPoint until = std::chrono::steady_clock::now() + limit;
  boost::asio::io_context io(1);
  boost::asio::local::stream_protocol::socket socket(io);
  if (!detail::connect(socket, experiment_directory)) {
    detail::require_no_keeper(experiment_directory);
    return {};
  }
  std::string out;
  append_frame(out, stop ? FrameType::stop : FrameType::ask_status, 1, [](Writer&) {});
  boost::asio::write(socket, boost::asio::buffer(out));
  FrameReader reader;
  std::array<char, 4096> buffer;
  for (;;) {
    if (const auto frame = reader.next()) {
      std::string text(Reader(frame->payload).text());
      if (frame->type == FrameType::status) return text;
      throw Error(Errc::protocol, text);
    }
    pollfd ready{socket.native_handle(), POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int any = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (any < 0) continue;
    if (any == 0) throw Error(Errc::timed_out, unanswered(experiment_directory, limit));
    boost::system::error_code failure;
    const std::size_t got = socket.read_some(boost::asio::buffer(buffer), failure);
    if (failure) return {};
    reader.feed(std::string_view(buffer.data(), got));
  }
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
