#include "support/catch.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <nni/channel/json_scanner.hpp>
#include <nni/channel/protocol.hpp>

using namespace nni;
using namespace nni::channel;

TEST_CASE("protocol: commands are read as NNI's library writes them", "[trial][protocol]") {
  const Command request = decode_command(R"({"type": "request_parameter"})").value();
  const Command metric =
      decode_command(R"({"type": "metric", "metric": "{\"sequence\": 0, \"value\": \"0.52\"}"})").value();
  const Command parameter =
      decode_command(R"({"type":"parameter","parameter":"{\"parameters\": {\"lr\": 1e-07}}"})").value();
  const Command other = decode_command(R"({"type": "bye", "more": [1, {"a": null}], "type2": -1.5e+3})").value();

  CHECK(request.type == CommandType::request_parameter);
  CHECK(metric.type == CommandType::metric);
  CHECK(metric.text == R"({"sequence": 0, "value": "0.52"})");
  CHECK(parameter.type == CommandType::parameter);
  CHECK(parameter.text == R"({"parameters": {"lr": 1e-07}})");
  CHECK(other.type == CommandType::other);
  CHECK(other.text == "bye");
}

TEST_CASE("protocol: what is no command is an error that shows it, shortened and on one line", "[trial][protocol]") {
  for (const char* wrong :
       {"", "{", "[]", "null", "{}", R"({"type": 5})", R"({"type": "metric"})", R"({"type": "metric", "metric": 5})",
        R"({"type": "request_parameter"} x)", R"({"type": "metric" "metric": ""})", "{\"type\": \"a\nb\"}",
        "{\"type\": \"\xff\"}", R"({"type": "\x"})", R"({"type": "\u12g4"})"}) {
    INFO(wrong);
    const auto command = decode_command(wrong);
    REQUIRE(command.has_error());
    CHECK(command.error().code() == Errc::protocol);
  }
  const auto long_one = decode_command("\n" + std::string(5000, 'x'));
  CHECK(long_one.error().message().size() < 300);
  CHECK(long_one.error().message().find('\n') == std::string::npos);
}

TEST_CASE("protocol: commands survive writing and reading", "[trial][protocol]") {
  const std::string text = "quotes \" backslash \\ newline \n tab \t \x01 \xc3\xa9 \xf0\x9f\x98\x80 end";
  for (const CommandType type : {CommandType::parameter, CommandType::metric}) {
    const std::string encoded = encode(Command(type, text));
    const Command back = decode_command(encoded).value();
    CHECK(back.type == type);
    CHECK(back.text == text);
    for (const char letter : encoded) CHECK(static_cast<unsigned char>(letter) < 0x80);
    CHECK_NOTHROW(boost::json::parse(encoded));
  }
  CHECK(decode_command(encode(Command(CommandType::request_parameter, {}))).value().type ==
        CommandType::request_parameter);
}

TEST_CASE("protocol: a metric payload is read with its value verbatim", "[trial][protocol]") {
  const MetricPayload payload =
      decode_metric_payload(
          R"({"parameter_id": 7, "trial_job_id": "Ab3dE", "type": "PERIODICAL", "sequence": 12, "value": "0.10"})")
          .value();

  CHECK(payload.kind == MetricKind::intermediate);
  CHECK(payload.sequence == 12);
  CHECK(payload.value == "0.10");
  CHECK(payload.parameter_id == "7");
  CHECK(payload.trial_job_id == "Ab3dE");
}

TEST_CASE("protocol: values that Python writes are accepted", "[trial][protocol]") {
  const auto value = [](const std::string& text) {
    return decode_metric_payload(encode(MetricPayload(MetricKind::final, 0, text))).value().value;
  };
  for (const char* text : {"1", "-0.5", "1e-07", "NaN", "Infinity", "-Infinity", R"({"default": NaN, "loss": [1, 2]})",
                           "\"text\"", "null", "true", R"({"s": "a\"b\\c#//"})", " 0.5 "})
    CHECK(value(text) == text);
}

TEST_CASE("protocol: a payload without kind, sequence or JSON value is refused", "[trial][protocol]") {
  for (const char* wrong :
       {R"({"type": "OTHER", "sequence": 0, "value": "1"})", R"({"type": "FINAL", "value": "1"})",
        R"({"type": "FINAL", "sequence": -1, "value": "1"})", R"({"type": "FINAL", "sequence": 1.5, "value": "1"})",
        R"({"type": "FINAL", "sequence": 4294967296, "value": "1"})", R"({"type": "FINAL", "sequence": 0})",
        R"({"type": "FINAL", "sequence": 0, "value": 1})", R"({"type": "FINAL", "sequence": 0, "value": "one"})",
        R"({"type": "FINAL", "sequence": 0, "value": ""})", R"({"type": "FINAL", "sequence": 0, "value": "1 2"})",
        R"({"type": "FINAL", "sequence": 0, "value": "01"})", R"({"type": "FINAL", "sequence": 0, "value": "[1"})",
        R"({"type": "REQUEST_PARAMETER", "sequence": 0, "parameter_index": 1})", "5", ""}) {
    INFO(wrong);
    CHECK(decode_metric_payload(wrong).has_error());
  }
}

TEST_CASE("protocol: a payload is written as NNI's library writes it", "[trial][protocol]") {
  MetricPayload payload(MetricKind::intermediate, 3, "0.9");
  payload.parameter_id = "\"0-3_0_aB1\"";
  payload.trial_job_id = "abcde";

  CHECK(
      encode(payload) ==
      R"({"parameter_id": "0-3_0_aB1", "trial_job_id": "abcde", "type": "PERIODICAL", "sequence": 3, "value": "0.9"})");
}

TEST_CASE("protocol: a parameter record keeps the spelling of numbers and is safe for NNI's Python reader",
          "[trial][protocol]") {
  const Parameters parameters(
      std::string("{\"lr\":1e-07,\"n\":1.0,\"url\":\"http://x/#1\",\"name\":\"\xc3\xa9\",\"q\":\"a\\\"b#\"}"));

  const std::string record = parameter_record(ParameterId{7}, parameters);

  CHECK(record.find("\"lr\":1e-07") != std::string::npos);
  CHECK(record.find("\"n\":1.0") != std::string::npos);
  CHECK(record.find('#') == std::string::npos);
  CHECK(record.find("//") == std::string::npos);
  for (const char letter : record) CHECK(static_cast<unsigned char>(letter) < 0x80);
  const auto parsed = boost::json::parse(record).as_object();
  CHECK(parsed.at("parameter_id").as_int64() == 7);
  CHECK(parsed.at("parameter_source").as_string() == "algorithm");
  CHECK(parsed.at("parameter_index").as_int64() == 0);
  const auto& values = parsed.at("parameters").as_object();
  CHECK(values.at("url").as_string() == "http://x/#1");
  CHECK(values.at("name").as_string() == "\xc3\xa9");
  CHECK(values.at("q").as_string() == "a\"b#");
}

TEST_CASE("protocol: the parameters of a record come out as they went in", "[trial][protocol]") {
  const Parameters parameters(std::string(R"({"b": 1.50, "a": {"x": [1, 2]}})"));

  CHECK(record_parameters(parameter_record(ParameterId{0}, parameters)).value() == parameters);
  CHECK(raw_member(R"({"parameter_id": "x-1", "parameters": {}})", "parameter_id").value() == "\"x-1\"");
  CHECK(record_parameters("{\"parameter_id\": 1}").has_error());
  CHECK(record_parameters("nonsense").has_error());
  CHECK_FALSE(raw_member("[]", "a").has_value());
}

TEST_CASE("protocol: a batch is read back value by value", "[trial][protocol]") {
  const RunId run{TrialId{5}, 2};
  const TimePoint when = from_epoch_ms(1234);
  std::string body;
  append_to_batch(body, MetricKind::intermediate, 0, "0.5");
  append_to_batch(body, MetricKind::intermediate, 1, "{\"default\": 1,\n\"x\": \"i 2 1\"}");
  append_to_batch(body, MetricKind::intermediate, 4294967295u, "not json");
  append_to_batch(body, MetricKind::final, 0, "NaN");

  const Batch batch = decode_batch(body, run, when).value();

  CHECK(batch.count == 4);
  REQUIRE(batch.metrics.size() == 3);
  CHECK(batch.metrics[0].run == run);
  CHECK(batch.metrics[0].at == when);
  CHECK(batch.metrics[0].value == "0.5");
  CHECK(batch.metrics[1].sequence == 1);
  CHECK(batch.metrics[1].value == "{\"default\": 1,\n\"x\": \"i 2 1\"}");
  CHECK(batch.metrics[2].kind == MetricKind::final);
  CHECK(batch.metrics[2].value == "NaN");
  REQUIRE(batch.garbage.size() == 1);
  CHECK(batch.garbage[0] == "not json");
  CHECK(decode_batch("", run, when).value().count == 0);
}

TEST_CASE("protocol: a batch with a broken frame counts for nothing", "[trial][protocol]") {
  const RunId run{TrialId{5}, 0};
  for (const char* wrong :
       {"x 0 1\n1\n", "i0 1\n1\n", "i 0\n1\n", "i 0 1\n1", "i 0 1\n", "i 0 2\n1\n", "i 0 1\n12\n", "i -1 1\n1\n",
        "i 0 99999999999999999999\n1\n", "i 4294967296 1\n1\n", "i 0 18446744073709551615\n1\n", "i", "i ", "i 0 1",
        "i 0 1\n1\nrest"}) {
    INFO(wrong);
    CHECK(decode_batch(wrong, run, {}).has_error());
  }
}

TEST_CASE("protocol: the answer to a batch is told from any other answer", "[trial][protocol]") {
  CHECK(parse_batch_answer(batch_answer(0)).value() == 0);
  CHECK(parse_batch_answer(batch_answer(123456)).value() == 123456);
  for (const char* wrong :
       {"", "recorded ", "recorded \n", "recorded x\n", "recorded 5", "recorded -5\n", "recorded 5\n\n", "OK", "{}"}) {
    INFO(wrong);
    CHECK_FALSE(parse_batch_answer(wrong).has_value());
  }
}

TEST_CASE("protocol: the scanner agrees with a JSON library about what is JSON", "[trial][protocol]") {
  const std::vector<std::string> pieces = {
      "{",        "}",    "[",   "]",    ",",    ":", "\"a\"", "\"",      "1",       "-",
      "0",        ".5",   "e1",  "true", "null", " ", "\\",    "\\u00e9", "\"\\n\"", "\"\\ud83d\\ude00\"",
      "\xc3\xa9", "\xff", "\x01"};
  std::mt19937 random(20260902);
  int agreed_valid = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (std::size_t left = 1 + random() % 6; left > 0; --left) text += pieces[random() % pieces.size()];
    boost::system::error_code failure;
    boost::json::parse(text, failure);
    const bool ours = is_json_text(text);
    if (ours != !failure) FAIL("disagreement about: " + text);
    agreed_valid += ours ? 1 : 0;
  }
  CHECK(agreed_valid > 1000);
}

TEST_CASE("protocol: strings are unescaped as a JSON library does", "[trial][protocol]") {
  std::mt19937 random(20260903);
  const std::vector<std::string> pieces = {
      "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u00e9", "\\u20ac", "\\ud83d\\ude00", "a", "\xe2\x82\xac", " "};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "\"";
    for (std::size_t left = random() % 8; left > 0; --left) text += pieces[random() % pieces.size()];
    text += "\"";
    std::string ours;
    nni::channel::detail::JsonScanner scanner(text);
    REQUIRE(scanner.string(ours));
    const auto theirs = boost::json::parse(text).as_string();
    CHECK(ours == std::string(theirs.data(), theirs.size()));
  }
  std::string lone;
  nni::channel::detail::JsonScanner scanner(R"("\ud800x\udc00")");
  REQUIRE(scanner.string(lone));
  CHECK(lone == "\xef\xbf\xbdx\xef\xbf\xbd");
}

TEST_CASE("protocol: nesting beyond the limit is refused, not followed", "[trial][protocol]") {
  CHECK(is_json_text(std::string(500, '[') + std::string(500, ']')));
  CHECK_FALSE(is_json_text(std::string(1'000'000, '[')));
  CHECK_FALSE(is_json_text(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
}

TEST_CASE("protocol: random and damaged bytes are refused without harm", "[trial][protocol]") {
  std::mt19937 random(20260904);
  std::string batch;
  for (std::uint32_t index = 0; index < 20; ++index) append_to_batch(batch, MetricKind::intermediate, index, "0.25");
  const std::string command =
      encode(Command(CommandType::metric, encode(MetricPayload(MetricKind::final, 0, R"({"default": 0.5})"))));

  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    switch (round % 4) {
      case 0:
        for (std::size_t left = random() % 64; left > 0; --left) text += static_cast<char>(random() & 0xff);
        break;
      case 1: text = command.substr(0, random() % command.size()); break;
      case 2:
        text = command;
        text[random() % text.size()] = static_cast<char>(random() & 0xff);
        break;
      default:
        text = batch;
        text[random() % text.size()] = static_cast<char>(random() & 0xff);
        text.resize(random() % (text.size() + 1));
    }
    if (const auto decoded = decode_command(text); decoded && decoded->type == CommandType::metric)
      (void)decode_metric_payload(decoded->text);
    (void)decode_metric_payload(text);
    (void)record_parameters(text);
    (void)parse_batch_answer(text);
    if (const auto decoded = decode_batch(text, RunId{TrialId{1}, 0}, {}))
      CHECK(decoded->count == decoded->metrics.size() + decoded->garbage.size());
  }
  // Every proper prefix of a command is incomplete.
  for (std::size_t size = 0; size < command.size(); ++size) CHECK(decode_command(command.substr(0, size)).has_error());
}

TEST_CASE("protocol: a character that ends or spoils a string is found wherever it stands in a long one",
          "[trial][protocol]") {
  for (std::size_t at = 0; at < 40; ++at) {
    INFO(at);
    std::string text(40, 'a');
    text.insert(at, "\xc3\xa9");
    CHECK(is_json_text('"' + text + '"'));
    CHECK_FALSE(is_json_text('"' + text));
    for (const char* spoiling : {"\"", "\x1f", "\n", "\x80", "\xff", "\\q"})
      CHECK_FALSE(is_json_text('"' + std::string(at, 'b') + spoiling + std::string(40 - at, 'b') + '"'));
    for (const char* harmless : {"\\\"", "\x7f", " ", "!", "#", "[", "]", "\\u00e9"})
      CHECK(is_json_text('"' + std::string(at, 'b') + harmless + std::string(40 - at, 'b') + '"'));
  }
}

TEST_CASE("protocol: a batch is counted and cut by its framing", "[trial][protocol]") {
  std::string text;
  for (std::uint32_t index = 0; index < 10; ++index) append_to_batch(text, MetricKind::intermediate, index, "12345");
  const std::size_t one = text.size() / 10;

  CHECK(count_batch(text, 10) == 10);
  CHECK(count_batch(text, 3) == 4);
  CHECK(count_batch("", 10) == 0);
  CHECK_FALSE(count_batch(text.substr(0, text.size() - 1), 10));
  CHECK(batch_part(text, 3, 1'000'000) == 3 * one);
  CHECK(batch_part(text, 100, 1'000'000) == text.size());
  CHECK(batch_part(text, 100, 2 * one) == 2 * one);
  CHECK(batch_part(text, 100, 1) == one);  // a value is never cut
}
