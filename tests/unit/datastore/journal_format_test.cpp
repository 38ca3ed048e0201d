#include "support/catch.hpp"

#include <random>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <nni/core/checksum.hpp>
#include <nni/datastore/journal/line.hpp>
#include <nni/datastore/journal/writer.hpp>
#include <nni/testing/store_script.hpp>

using namespace nni;
using namespace nni::datastore::detail;
using testing::StoreScript;

namespace {

std::string line_of(const StoreEvent& event, std::uint64_t offset, std::uint64_t before = 0) {
  std::string text;
  JournalWriter(text, offset).event(event, before);
  REQUIRE(text.back() == '\n');
  text.pop_back();
  return text;
}

JournalLine read_back(const std::string& line, std::uint64_t offset) {
  const auto json = checked_line(line, offset);
  REQUIRE(json);
  const auto parsed = parse_journal_line(*json);
  INFO(line);
  REQUIRE(parsed);
  return *parsed;
}

// Written again, an event that was read gives the same line: nothing of it was lost.
void check_round_trip(const StoreEvent& event) {
  const std::string line = line_of(event, 12'345, 77);
  const JournalLine parsed = read_back(line, 12'345);
  CHECK(line_of(parsed.event, 12'345, 77) == line);
  boost::system::error_code failure;
  boost::json::parse(line.substr(9), failure);
  INFO(line);
  CHECK_FALSE(failure);  // for every tool that reads JSON lines
}

}  // namespace

TEST_CASE("a line of the journal names what it holds", "[datastore][journal]") {
  const RunId run{TrialId{12}, 1};
  CHECK(
      line_of(MetricReceived(Metric(run, MetricKind::intermediate, 3, "0.25", from_epoch_ms(5))), 100, 40).substr(9) ==
      R"({"event":"metric","trial":12,"attempt":1,"kind":"PERIODICAL","sequence":3,"at":5,"before":40,"value":0.25})");
  CHECK(line_of(TrialOrdered(TrialId{1}, ParameterId{0}, Parameters(R"({"x": 0.5})"), from_epoch_ms(5)), 0).substr(9) ==
        R"({"event":"ordered","trial":1,"id":")" + to_string(TrialId{1}) +
            R"(","parameter":0,"at":5,"parameters":{"x": 0.5}})");
}

TEST_CASE("every kind of event comes back from its line as it was", "[datastore][journal]") {
  const std::vector<StoreEvent> events =
      StoreScript()
          .profile(ExperimentId("a\"b"), ExperimentStatus::no_more_trial, 7)
          .ordered(3)
          .intended(3, 2, "alpha")
          .intended(4)
          .started(3)
          .intermediate(3, 9, "-1.5e-300")
          .final_value(3, "{\"default\": 0.75}")
          .lost(3)
          .end(3, 1, JobEnd(EndKind::killed, 0, "tab\tand\nline"), TrialJobStatus::early_stopped, true)
          .events();
  for (const StoreEvent& event : events) check_round_trip(event);

  RunIntended none(RunId{TrialId{1}, 0}, Placement("beta"), from_epoch_ms(1));
  none.placement.gpus.emplace();
  check_round_trip(none);
  const JournalLine line = read_back(line_of(none, 0), 0);
  CHECK(std::get<RunIntended>(line.event).placement.gpus == std::vector<int>());

  ProfileChanged bare;
  bare.seed = ~std::uint64_t{0};
  check_round_trip(bare);
}

TEST_CASE("a line whose tags are no list of texts is not understood", "[datastore][journal]") {
  const std::string good =
      R"({"event":"started","trial":1,"attempt":0,"at":5,"job":"j","url":"","directory":"","tags":["a","b"]})";
  const std::optional<JournalLine> line = parse_journal_line(good);
  REQUIRE(line);
  CHECK(std::get<RunStarted>(line->event).started.tags == std::vector<std::string>{"a", "b"});
  for (const char* const wrong : {"[1]", "\"a\"", "{}", "[\"a\"", "null"}) {
    INFO(wrong);
    CHECK_FALSE(parse_journal_line(good.substr(0, good.find("[\"a")) + wrong + "}"));
  }
}

TEST_CASE("texts that are no JSON, or have more than one line, come back all the same", "[datastore][journal]") {
  const RunId run{TrialId{1}, 0};
  for (const char* const text :
       {"NaN", "{\"default\": NaN}", "{\n\"a\": 1}", "", "\"\"", "01", "1.", ".5", "-", "1e", "1e5", "-0.0", "no json",
        "}", "\"a\\\"b\"", "{\"a\":1}} ", "[1,2"}) {
    INFO(text);
    const StoreEvent event = MetricReceived(Metric(run, MetricKind::final, 0, text, from_epoch_ms(9)));
    const JournalLine line = read_back(line_of(event, 5, 3), 5);
    CHECK(std::get<MetricReceived>(line.event).metric.value == text);
    CHECK(line.before == 3);
    check_round_trip(event);
    check_round_trip(TrialOrdered(TrialId{2}, ParameterId{1}, Parameters(text), from_epoch_ms(1)));
  }
}

TEST_CASE("a line that was changed in any bit, or stands elsewhere, is noticed", "[datastore][journal]") {
  const std::string line = line_of(StoreScript().ordered(1).events().front(), 1000);
  REQUIRE(checked_line(line, 1000));
  CHECK_FALSE(checked_line(line, 1001));
  CHECK_FALSE(checked_line(line.substr(0, line.size() - 1), 1000));
  CHECK_FALSE(checked_line("", 1000));
  for (std::size_t at = 0; at < line.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = line;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const bool same_digit = at < 8 && (damaged[at] ^ line[at]) == 0x20 && line[at] > '9';
      if (!same_digit) CHECK_FALSE(checked_line(damaged, 1000));
    }
}

TEST_CASE("no text makes the reader of lines do more than refuse", "[datastore][journal]") {
  std::mt19937 random(7);
  const std::vector<StoreEvent> events =
      StoreScript().profile(ExperimentId("x"), ExperimentStatus::running, 1).succeeded(1, "0.5").events();
  for (int round = 0; round < 5000; ++round) {
    std::string json = line_of(events[random() % events.size()], 0).substr(9);
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % json.size();
      if (random() % 3 == 0)
        json.erase(at, 1 + random() % 5);
      else
        json[at] = "{}\",:\\0a9-"[random() % 10];
      if (json.empty()) json = "{";
    }
    (void)parse_journal_line(json);
    (void)parse_journal_header(json);
  }
  CHECK_FALSE(parse_journal_line(R"({"event":"unheard of"})"));
  CHECK_FALSE(parse_journal_line(R"({"event":"ordered","trial":1})"));
  CHECK(parse_journal_header(R"({"journal":"nni","version":1,"experiment":"a"})") == 1U);
  CHECK_FALSE(parse_journal_header(R"({"journal":"other","version":1})"));
}

TEST_CASE("a checksum does not depend on how its bytes are cut", "[core][checksum]") {
  std::mt19937 random(3);
  std::string bytes(1000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  std::uint32_t one_by_one = 0;
  for (const char byte : bytes) one_by_one = crc32c(std::string_view(&byte, 1), one_by_one);
  CHECK(crc32c(bytes) == one_by_one);
  CHECK(crc32c(std::string_view(bytes).substr(3), crc32c(std::string_view(bytes).substr(0, 3))) == one_by_one);
}
