// Frames of the keeper: however the bytes arrive they are the same frames, decoders accept exactly what encoders write,
// and nothing but `Errc::protocol` is thrown.
#include "fuzz.hpp"

#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/keeper/wire/protocol.hpp>

using namespace nni;
using namespace nni::keeper;

namespace {

template <class T, class Write>
void round_trip(std::string_view payload, const Result<T>& value, Write write) {
  if (!value) return;
  std::string written;
  Writer out(written);
  write(out, *value);
  // Numbers have one spelling only; a longer one must not be accepted.
  nni_fuzz::require(written == payload, "a decoder accepts exactly what its encoder writes");
}

void decode_all(std::string_view payload) {
  const auto encoded = [](Writer& out, const auto& value) { encode(out, value); };
  round_trip(payload, decode_hello(payload), encoded);
  round_trip(payload, decode_job(payload), encoded);
  round_trip(payload, decode_start(payload), encoded);
  round_trip(payload, decode_welcome(payload), encoded);
  round_trip(payload, decode_record(payload, 1), encoded);
  round_trip(payload, decode_kill(payload), [](Writer& out, const auto& v) { encode_kill(out, v.first, v.second); });
  round_trip(payload, decode_parameters(payload), [](Writer& out, const auto& v) {
    encode_parameters(out, v.first, v.second);
  });
  round_trip(payload, decode_ranges(payload), [](Writer& out, const auto& v) { encode_ranges(out, v); });
}

/// The frames of a stream that arrives in pieces; the last one is empty when the stream is no stream of frames.
std::vector<std::string> frames_of(std::string_view stream, std::size_t piece) {
  std::vector<std::string> found;
  FrameReader reader;
  try {
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(stream.substr(at, piece));
      while (const auto frame = reader.next())
        found.push_back(std::to_string(static_cast<int>(frame->type)) + " " + std::to_string(frame->sequence) + " " +
                        std::string(frame->payload));
    }
  } catch (const Error& error) {
    nni_fuzz::require(error.code() == make_error_code(Errc::protocol), "a bad frame is an error of the protocol");
    found.emplace_back();
  }
  return found;
}

/// A stream of valid frames, out of which the input makes another one.
std::string valid_stream(nni_fuzz::Source& source) {
  std::string stream;
  Hello hello;
  hello.experiment = source.text();
  hello.environment = {std::string(source.text()), "PATH=/bin"};
  hello.pid = source.number();
  append_frame(stream, FrameType::hello, 1, [&](Writer& out) { encode(out, hello); });
  Record record(Record::Kind::metric, RunId{TrialId{source.number()}, source.byte()}, TimePoint{});
  record.text = source.text();
  append_frame(stream, FrameType::record, 2, [&](Writer& out) { encode(out, record); });
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nni_fuzz::Source source(nni_fuzz::text_of(data, size));
  const std::uint8_t kind = source.byte();
  if (kind % 2 == 0) {
    decode_all(source.rest());
    return 0;
  }
  std::string stream(source.rest());
  if (kind % 4 == 3) {
    stream = valid_stream(source);
    nni_fuzz::damage(stream, source);
  }
  const std::vector<std::string> whole = frames_of(stream, stream.size() + 1);
  nni_fuzz::require(frames_of(stream, 1) == whole, "frames do not depend on how their bytes arrive");
  return 0;
}
