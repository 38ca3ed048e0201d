#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <nni/keeper/wire/encoding.hpp>
#include <nni/keeper/wire/protocol.hpp>

using namespace nni;
using namespace nni::keeper;

TEST_CASE("wire: the checksum is that of RFC 3720", "[keeper][wire]") {
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  std::string rising;
  for (int value = 0; value < 32; ++value) rising += static_cast<char>(value);
  CHECK(crc32c(rising) == 0x46dd794eU);
  CHECK(crc32c("23456789", crc32c("1")) == crc32c("123456789"));
}

TEST_CASE("wire: numbers of every size read back", "[keeper][wire]") {
  const std::vector<std::uint64_t> numbers{0, 1, 127, 128, 300, 1ULL << 32, std::numeric_limits<std::uint64_t>::max()};
  const std::vector<std::int64_t> integers{
      0, -1, 1, -64, 64, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  std::string bytes;
  Writer out(bytes);
  for (const std::uint64_t value : numbers) out.number(value);
  for (const std::int64_t value : integers) out.integer(value);
  out.text("text");

  Reader in(bytes);
  for (const std::uint64_t value : numbers) CHECK(in.number() == value);
  for (const std::int64_t value : integers) CHECK(in.integer() == value);
  CHECK(in.text() == "text");
  CHECK(in.ok());
  CHECK(in.at_end());
}

TEST_CASE("wire: what ends too early, counts too much or names no run fails quietly", "[keeper][wire]") {
  Reader empty("");
  CHECK(empty.number() == 0);
  CHECK_FALSE(empty.ok());
  Reader endless(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11));
  CHECK(endless.number() == 0);
  CHECK_FALSE(endless.ok());
  Reader text(std::string_view(
      "\x05"
      "abc",
      4));
  CHECK(text.text().empty());
  CHECK_FALSE(text.ok());
  Reader count(std::string_view("\xff\xff\xff\x7f", 4));
  CHECK(count.count() == 0);
  CHECK_FALSE(count.ok());
  Reader run(std::string_view("\x00\x00", 2));
  (void)run.run();
  CHECK_FALSE(run.ok());
}

namespace {

RunId some_run() { return RunId{TrialId{12345}, 2}; }

template <class T>
std::string bytes_of(const T& what) {
  std::string bytes;
  Writer out(bytes);
  encode(out, what);
  return bytes;
}

// Every proper prefix, and the whole with a byte more, must be refused.
template <class Decode>
void check_strict(const std::string& bytes, Decode decode) {
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(decode(std::string_view(bytes).substr(0, size)).has_value());
  CHECK_FALSE(decode(bytes + "x").has_value());
  CHECK(decode(bytes).has_value());
}

}  // namespace

TEST_CASE("protocol: records of every kind read back exactly", "[keeper][protocol]") {
  Record started(Record::Kind::started, some_run(), from_epoch_ms(1'700'000'000'123));
  started.process = process::Identity{4711, 987654321};
  Record ended(Record::Kind::ended, some_run(), from_epoch_ms(5));
  ended.process = started.process;
  ended.started = from_epoch_ms(4);
  ended.end = JobEnd(EndKind::killed, 2, "did not end");
  ended.end.why = StopReason::time_limit;
  Record exited = ended;  // by itself, after it was told to stop
  exited.end = JobEnd(EndKind::exited, 0);
  exited.end.why = GENERATE(StopReason::user, StopReason::experiment_end);
  Record unasked = ended;
  unasked.end = JobEnd(EndKind::exited, 3);
  Record metric(Record::Kind::metric, some_run(), from_epoch_ms(6));
  metric.metric = MetricKind::final;
  metric.sequence = 77;
  metric.text = "{\"default\": NaN}";
  Record garbage(Record::Kind::garbage, some_run(), from_epoch_ms(7));
  garbage.text = std::string("\0\xff", 2);

  for (const Record& record : {started, ended, exited, unasked, metric, garbage}) {
    const std::string bytes = bytes_of(record);
    const Record back = decode_record(bytes, 9).value();
    CHECK(back.kind == record.kind);
    CHECK(back.run == record.run);
    CHECK(back.at == record.at);
    CHECK(back.position == 9);
    CHECK(back.process == record.process);
    CHECK(back.started == record.started);
    CHECK(back.end.kind == record.end.kind);
    CHECK(back.end.code == record.end.code);
    CHECK(back.end.why == record.end.why);
    CHECK(back.end.message == record.end.message);
    CHECK(back.metric == record.metric);
    CHECK(back.sequence == record.sequence);
    CHECK(back.text == record.text);
    check_strict(bytes, [](std::string_view part) { return decode_record(part, 9); });
  }
}

TEST_CASE("protocol: greetings, templates, orders and acknowledgements read back", "[keeper][protocol]") {
  Hello hello;
  hello.experiment = "exp";
  hello.life = "4711";
  hello.can_resume = false;
  hello.owner = "me";
  hello.pid = 12;
  hello.environment = {"A=1", "B="};
  JobTemplate job;
  job.id = 3;
  job.arguments = {"program", "", "with blank"};
  job.directory = "/somewhere";
  job.environment = {"C=2"};
  job.discard_output = true;
  StartOrder order;
  order.job = 3;
  order.run = some_run();
  order.record = "{\"parameters\": {}}";
  order.environment = {"D=3"};
  Welcome welcome;
  welcome.boot = "boot";
  welcome.pid = 99;
  welcome.directory = "/trials";
  welcome.next_position = 1000;
  welcome.restarted = true;
  welcome.live.resize(1);
  welcome.live[0].run = some_run();
  welcome.live[0].process = process::Identity{1, 2};
  welcome.live[0].started = from_epoch_ms(3);
  welcome.live[0].phases = 4;

  CHECK(decode_hello(bytes_of(hello)).value().environment == hello.environment);
  CHECK(decode_hello(bytes_of(hello)).value().owner == "me");
  CHECK(decode_hello(bytes_of(hello)).value().life == "4711");
  CHECK_FALSE(decode_hello(bytes_of(hello)).value().can_resume);
  CHECK(decode_job(bytes_of(job)).value() == job);
  const StartOrder back = decode_start(bytes_of(order)).value();
  CHECK(back.run == order.run);
  CHECK(back.record == order.record);
  CHECK(back.environment == order.environment);
  const Welcome known = decode_welcome(bytes_of(welcome)).value();
  CHECK(known.directory == "/trials");
  CHECK(known.restarted);
  REQUIRE(known.live.size() == 1);
  CHECK(known.live[0].process == welcome.live[0].process);
  CHECK(known.live[0].phases == 4);

  check_strict(bytes_of(hello), decode_hello);
  check_strict(bytes_of(job), decode_job);
  check_strict(bytes_of(order), decode_start);
  check_strict(bytes_of(welcome), decode_welcome);

  std::string refusal;
  Writer refused(refusal);
  encode_not_taken(refused, some_run(), "because");
  CHECK(decode_not_taken(refusal).value() == std::pair(some_run(), std::string("because")));
  check_strict(refusal, decode_not_taken);

  std::string ranges;
  Writer out(ranges);
  encode_ranges(out, {{10, 3}, {5, 1}, {1'000'000, 2}});
  const std::vector<AcknowledgedRange> read = decode_ranges(ranges).value();
  REQUIRE(read.size() == 3);
  CHECK(read[1].first == 5);
  CHECK(read[2].first == 1'000'000);
  CHECK(read[2].count == 2);
  check_strict(ranges, decode_ranges);
}

TEST_CASE("protocol: frames are cut from a stream wherever it is broken", "[keeper][protocol]") {
  std::string stream;
  append_frame(stream, FrameType::kill, 1, [](Writer& out) { encode_kill(out, some_run(), StopReason::early_stop); });
  append_frame(stream, FrameType::finish, 2, [](Writer&) {});
  append_frame(stream, FrameType::parameters, 3, [](Writer& out) {
    encode_parameters(out, some_run(), std::string(1000, 'p'));
  });

  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{17}, stream.size()}) {
    FrameReader reader;
    std::vector<std::uint64_t> sequences;
    std::string last;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.feed(std::string_view(stream).substr(at, step));
      while (const auto frame = reader.next()) {
        sequences.push_back(frame->sequence);
        last = frame->payload;
      }
    }
    CHECK(sequences == std::vector<std::uint64_t>{1, 2, 3});
    CHECK(decode_parameters(last).value().second == std::string(1000, 'p'));
  }
}

TEST_CASE("protocol: another version and a frame that is too large end the stream with a reason",
          "[keeper][protocol]") {
  std::string other;
  append_frame(other, FrameType::hello, 1, [](Writer&) {});
  std::string large = other;
  other[4] = static_cast<char>(protocol_version + 1);
  store_u32(large.data(), static_cast<std::uint32_t>(max_frame_payload + 1));

  FrameReader first;
  first.feed(other);
  CHECK_THROWS_WITH(
      first.next(),
      Catch::Contains("version " + std::to_string(protocol_version + 1)) && Catch::Contains("same release"));
  FrameReader second;
  second.feed(large);
  CHECK_THROWS_WITH(second.next(), Catch::Contains("limit"));
}

TEST_CASE("protocol: a count that is larger than what can follow reserves nothing", "[keeper][protocol]") {
  std::string texts;
  Writer out(texts);
  out.text("exp");
  out.text("me");
  out.number(1);
  out.number(2'000'000);
  texts.append(2'000'000, '\0');  // as many texts of no length
  CHECK_FALSE(decode_hello(texts).has_value());

  std::string ranges;
  Writer(ranges).number(50);
  ranges.append(99, '\1');  // each range takes two bytes at least
  CHECK_FALSE(decode_ranges(ranges).has_value());
  ranges += '\1';
  CHECK(decode_ranges(ranges).has_value());
}

TEST_CASE("protocol: an attempt whose successor has no number is refused", "[keeper][protocol]") {
  std::string bytes;
  Writer out(bytes);
  out.run(RunId{TrialId{1}, 0xffff'fffeU});
  out.run(RunId{TrialId{1}, 0xffff'ffffU});
  Reader in(bytes);
  CHECK(in.run().attempt == 0xffff'fffeU);
  CHECK(in.ok());
  (void)in.run();
  CHECK_FALSE(in.ok());
}

TEST_CASE("protocol: a frame beyond the limit of its reader is refused by its header", "[keeper][protocol]") {
  std::string header;
  append_frame(header, FrameType::hello, 0, [](Writer& out) { out.text(std::string(1000, 'x')); });
  header.resize(frame_header_size);
  FrameReader reader;
  reader.feed(header);
  CHECK_FALSE(reader.next().has_value());

  reader.limit(100);
  CHECK_THROWS_AS(reader.next(), Error);
}

TEST_CASE("protocol: a greeting of very many small texts is refused", "[keeper][protocol]") {
  Hello hello;
  hello.experiment = "abc";
  std::string payload;
  Writer out(payload);
  encode(out, hello);
  REQUIRE(decode_hello(payload).has_value());
  payload.pop_back();  // the count of its environment, 0
  constexpr std::size_t many = 4'000'000;
  out.number(many);
  payload.append(many, '\0');

  CHECK(decode_hello(payload).has_error());
}

TEST_CASE("wire: only the spelling of the writer is taken", "[keeper][wire]") {
  const auto accepts_number = [](std::string_view bytes) {
    Reader in(bytes);
    (void)in.number();
    return in.ok();
  };
  const auto accepts_flag = [](std::string_view bytes) {
    Reader in(bytes);
    (void)in.flag();
    return in.ok();
  };

  CHECK(accepts_number(std::string_view("\x00", 1)));
  CHECK(accepts_number("\x80\x01"));
  CHECK_FALSE(accepts_number(std::string_view("\x80\x00", 2)));
  CHECK_FALSE(accepts_number(std::string_view("\x81\x80\x00", 3)));
  CHECK(accepts_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK_FALSE(accepts_number("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"));
  CHECK(accepts_flag("\x01"));
  CHECK_FALSE(accepts_flag("\x02"));
}
