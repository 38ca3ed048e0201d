#pragma once

#include <nni/keeper/wire/protocol.hpp>

namespace nni::keeper {

namespace detail {

template <class T>
Result<T> checked(const Reader& in, T value, const char* name) {
  if (!in.ok() || !in.at_end())
    return Error(Errc::protocol, std::string("keeper protocol: a ") + name + " cannot be read");
  return value;
}

NNI_INLINE void put_texts(Writer& out, const std::vector<std::string>& texts) {
  out.number(texts.size());
  for (const std::string& text : texts) out.text(text);
}

/// Entries of a list at most. One of a byte in a frame takes many in memory.
inline constexpr std::size_t most_entries = 1'000'000;

/// A count of entries, each of at least so many bytes.
NNI_INLINE std::size_t take_count(Reader& in, std::size_t bytes_each) {
  const std::size_t count = in.count(bytes_each);
  if (count <= most_entries) return count;
  in.fail();
  return 0;
}

NNI_INLINE std::vector<std::string> take_texts(Reader& in) {
  const std::size_t count = take_count(in, 1);
  std::vector<std::string> texts;
  texts.reserve(count);
  for (std::size_t at = 0; at < count && in.ok(); ++at) texts.emplace_back(in.text());
  return texts;
}

NNI_INLINE void put_process(Writer& out, const process::Identity& process) {
  out.number(static_cast<std::uint64_t>(process.pid));
  out.number(process.start_ticks);
}

NNI_INLINE process::Identity take_process(Reader& in) {
  const std::uint64_t pid = in.number();
  const std::uint64_t ticks = in.number();
  if (pid > INT32_MAX) in.fail();
  return process::Identity{static_cast<pid_t>(pid), ticks};
}

template <class Enum>
Enum take_enum(Reader& in, Enum first, Enum last) {
  const std::uint8_t value = in.byte();
  if (value < static_cast<std::uint8_t>(first) || value > static_cast<std::uint8_t>(last)) {
    in.fail();
    return first;
  }
  return static_cast<Enum>(value);
}

// The reason to stop, and for the ends other than `killed`, which have one always, a bit that says that there is one.
inline constexpr std::uint8_t has_stop_reason = 0x80;

NNI_INLINE std::uint8_t stop_byte(const JobEnd& end) {
  const auto reason = static_cast<std::uint8_t>(end.why.value_or(StopReason::user));
  return end.why && end.kind != EndKind::killed ? static_cast<std::uint8_t>(reason | has_stop_reason) : reason;
}

NNI_INLINE void take_stop(Reader& in, JobEnd& end) {
  const std::uint8_t value = in.byte();
  const std::uint8_t mark = end.kind == EndKind::killed ? 0 : has_stop_reason;
  if (value == 0 && mark != 0) return;  // it was not asked to stop
  const auto reason = static_cast<std::uint8_t>(value ^ mark);
  if (reason > static_cast<std::uint8_t>(StopReason::experiment_end)) return in.fail();
  end.why = static_cast<StopReason>(reason);
}

}  // namespace detail

// A string doubles as it grows, and both halves are there while it moves. A frame that is half there gets the room that it
// needs at once; before that much has come its sender would have announced more than it sends.
NNI_INLINE void FrameReader::make_room(std::size_t more) {
  if (buffer_.size() <= detail::kept_capacity || buffer_.size() + more <= buffer_.capacity()) return;
  const std::size_t whole = frame_header_size + load_u32(buffer_.data());
  if (whole <= frame_header_size + most_ && whole > buffer_.size() && whole / 16 <= buffer_.size())
    buffer_.reserve(whole);
}

NNI_INLINE std::optional<Frame> FrameReader::next() {
  // A large frame gives its room back once it is handled: nothing may follow it for hours.
  if (at_ > detail::kept_capacity && at_ > buffer_.size() / 2) {
    buffer_.erase(0, std::exchange(at_, 0));
    buffer_.shrink_to_fit();
  }
  const std::size_t available = buffer_.size() - at_;
  if (available < frame_header_size) return std::nullopt;
  const char* const header = buffer_.data() + at_;
  const std::uint32_t size = load_u32(header);
  const auto version = static_cast<std::uint8_t>(header[4]);
  if (version != protocol_version)
    throw Error(Errc::protocol,
                "keeper protocol: the other side speaks version " + std::to_string(version) + ", this side version " +
                    std::to_string(protocol_version) + "; use the same release for both");
  if (size > most_)
    throw Error(Errc::protocol, "keeper protocol: a frame of " + std::to_string(size) +
                                    " bytes is larger than the limit of " + std::to_string(most_));
  if (available < frame_header_size + size) return std::nullopt;
  Frame frame;
  frame.type = static_cast<FrameType>(header[5]);
  frame.sequence = load_u64(header + 8);
  frame.payload = std::string_view(header + frame_header_size, size);
  at_ += frame_header_size + size;
  return frame;
}

NNI_INLINE void encode(Writer& out, const Hello& message) {
  out.text(message.experiment);
  out.text(message.life);
  out.byte(message.can_resume ? 1 : 0);
  out.text(message.owner);
  out.number(message.pid);
  detail::put_texts(out, message.environment);
}

NNI_INLINE Result<Hello> decode_hello(std::string_view payload) {
  Reader in(payload);
  Hello message;
  message.experiment = in.text();
  message.life = in.text();
  message.can_resume = in.flag();
  message.owner = in.text();
  message.pid = in.number();
  message.environment = detail::take_texts(in);
  return detail::checked(in, std::move(message), "greeting");
}

NNI_INLINE void encode(Writer& out, const JobTemplate& message) {
  out.number(message.id);
  detail::put_texts(out, message.arguments);
  out.text(message.directory);
  detail::put_texts(out, message.environment);
  out.byte(message.discard_output ? 1 : 0);
}

NNI_INLINE Result<JobTemplate> decode_job(std::string_view payload) {
  Reader in(payload);
  JobTemplate message;
  message.id = in.number();
  message.arguments = detail::take_texts(in);
  message.directory = in.text();
  message.environment = detail::take_texts(in);
  message.discard_output = in.flag();
  return detail::checked(in, std::move(message), "job template");
}

NNI_INLINE void encode(Writer& out, const StartOrder& message) {
  out.number(message.job);
  out.run(message.run);
  out.text(message.record);
  detail::put_texts(out, message.environment);
}

NNI_INLINE Result<StartOrder> decode_start(std::string_view payload) {
  Reader in(payload);
  StartOrder message;
  message.job = in.number();
  message.run = in.run();
  message.record = in.text();
  message.environment = detail::take_texts(in);
  return detail::checked(in, std::move(message), "start order");
}

NNI_INLINE void encode(Writer& out, const Welcome& message) {
  out.text(message.boot);
  out.number(message.pid);
  out.text(message.directory);
  out.number(message.next_position);
  out.byte(message.restarted ? 1 : 0);
  out.number(message.live.size());
  for (const LiveRun& live : message.live) {
    out.run(live.run);
    detail::put_process(out, live.process);
    out.time(live.started);
    out.number(live.phases);
  }
}

NNI_INLINE Result<Welcome> decode_welcome(std::string_view payload) {
  Reader in(payload);
  Welcome message;
  message.boot = in.text();
  message.pid = in.number();
  message.directory = in.text();
  message.next_position = in.number();
  message.restarted = in.flag();
  const std::size_t count = detail::take_count(in, 6);
  for (std::size_t at = 0; at < count && in.ok(); ++at) {
    LiveRun live;
    live.run = in.run();
    live.process = detail::take_process(in);
    live.started = in.time();
    live.phases = in.number();
    message.live.push_back(live);
  }
  return detail::checked(in, std::move(message), "welcome");
}

NNI_INLINE void encode(Writer& out, const Record& message) {
  out.byte(static_cast<std::uint8_t>(message.kind));
  out.run(message.run);
  out.time(message.at);
  switch (message.kind) {
    case Record::Kind::started: detail::put_process(out, message.process); break;
    case Record::Kind::ended:
      detail::put_process(out, message.process);
      out.time(message.started);
      out.byte(static_cast<std::uint8_t>(message.end.kind));
      out.integer(message.end.code);
      out.byte(detail::stop_byte(message.end));
      out.text(message.end.message);
      break;
    case Record::Kind::metric:
      out.byte(static_cast<std::uint8_t>(message.metric));
      out.number(message.sequence);
      out.text(message.text);
      break;
    case Record::Kind::garbage: out.text(message.text); break;
  }
}

NNI_INLINE Result<Record> decode_record(std::string_view payload, std::uint64_t position) {
  Reader in(payload);
  Record message;
  message.kind = detail::take_enum(in, Record::Kind::started, Record::Kind::garbage);
  message.run = in.run();
  message.at = in.time();
  message.position = position;
  switch (message.kind) {
    case Record::Kind::started: message.process = detail::take_process(in); break;
    case Record::Kind::ended:
      message.process = detail::take_process(in);
      message.started = in.time();
      message.end.kind = detail::take_enum(in, EndKind::exited, EndKind::lost);
      message.end.code = static_cast<int>(in.integer());
      detail::take_stop(in, message.end);
      message.end.message = in.text();
      break;
    case Record::Kind::metric:
      message.metric = detail::take_enum(in, MetricKind::intermediate, MetricKind::final);
      message.sequence = static_cast<std::uint32_t>(in.number());
      message.text = in.text();
      break;
    case Record::Kind::garbage: message.text = in.text(); break;
  }
  return detail::checked(in, std::move(message), "record");
}

NNI_INLINE void encode_kill(Writer& out, RunId run, StopReason reason) {
  out.run(run);
  out.byte(static_cast<std::uint8_t>(reason));
}

NNI_INLINE Result<std::pair<RunId, StopReason>> decode_kill(std::string_view payload) {
  Reader in(payload);
  const RunId run = in.run();
  const StopReason reason = detail::take_enum(in, StopReason::user, StopReason::experiment_end);
  return detail::checked(in, std::pair(run, reason), "kill order");
}

NNI_INLINE void encode_parameters(Writer& out, RunId run, std::string_view record) {
  out.run(run);
  out.text(record);
}

NNI_INLINE Result<std::pair<RunId, std::string>> decode_parameters(std::string_view payload) {
  Reader in(payload);
  const RunId run = in.run();
  std::string record(in.text());
  return detail::checked(in, std::pair(run, std::move(record)), "set of parameters");
}

NNI_INLINE void encode_not_taken(Writer& out, RunId run, std::string_view reason) {
  out.run(run);
  out.text(reason);
}

NNI_INLINE Result<std::pair<RunId, std::string>> decode_not_taken(std::string_view payload) {
  Reader in(payload);
  const RunId run = in.run();
  std::string reason(in.text());
  return detail::checked(in, std::pair(run, std::move(reason)), "refusal of an order");
}

NNI_INLINE void encode_deferred(Writer& out, RunId run, std::string_view reason) { encode_not_taken(out, run, reason); }

NNI_INLINE Result<std::pair<RunId, std::string>> decode_deferred(std::string_view payload) {
  return decode_not_taken(payload);
}

NNI_INLINE void encode_ranges(Writer& out, const std::vector<AcknowledgedRange>& ranges) {
  out.number(ranges.size());
  std::uint64_t before = 0;
  for (const AcknowledgedRange& range : ranges) {
    out.integer(static_cast<std::int64_t>(range.first - before));  // neighbours are near: differences are short
    out.number(range.count);
    before = range.first;
  }
}

NNI_INLINE Result<std::vector<AcknowledgedRange>> decode_ranges(std::string_view payload) {
  Reader in(payload);
  const std::size_t count = detail::take_count(in, 2);
  std::vector<AcknowledgedRange> ranges;
  ranges.reserve(count);
  std::uint64_t before = 0;
  for (std::size_t at = 0; at < count && in.ok(); ++at) {
    AcknowledgedRange range;
    range.first = before + static_cast<std::uint64_t>(in.integer());
    range.count = in.number();
    before = range.first;
    ranges.push_back(range);
  }
  return detail::checked(in, std::move(ranges), "acknowledgement");
}

}  // namespace nni::keeper
