#include "support/catch.hpp"

#include <string>
#include <vector>

#include <nni/channel/metrics_file.hpp>

using nni::channel::MetricsFileItem;
using nni::channel::MetricsFileReader;

namespace {

std::string record(const std::string& payload) {
  const std::string length = std::to_string(payload.size() + 1);
  return "ME" + std::string(6 - length.size(), '0') + length + payload + "\n";
}

std::vector<std::string> items(MetricsFileReader& reader) {
  std::vector<std::string> result;
  while (const auto item = reader.next()) result.push_back((item->record ? "+" : "-") + item->text);
  return result;
}

std::vector<std::string> items_of(const std::string& file, std::size_t max_payload = 1'000'000) {
  MetricsFileReader reader(max_payload);
  reader.feed(file);
  return items(reader);
}

using Items = std::vector<std::string>;

}  // namespace

TEST_CASE("metrics file: records follow each other, and the newline counts", "[trial][metrics_file]") {
  CHECK(record(R"({"a": 1})").substr(0, 8) == "ME000009");
  CHECK(items_of(record("one") + record("") + record("th\nree")) == Items{"+one", "+", "+th\nree"});
}

TEST_CASE("metrics file: a record may come in any pieces, and positions count bytes of the file",
          "[trial][metrics_file]") {
  const std::string file = record("one") + "rubbish\n" + record("two");
  for (std::size_t piece = 1; piece <= file.size(); ++piece) {
    MetricsFileReader reader;
    Items heard;
    for (std::size_t at = 0; at < file.size(); at += piece) {
      reader.feed(file.substr(at, piece));
      for (const std::string& item : items(reader)) heard.push_back(item.substr(0, 4));
    }
    INFO("pieces of " << piece);
    REQUIRE(heard.size() == 3);
    CHECK(heard[0] == "+one");
    CHECK(heard[1][0] == '-');
    CHECK(heard[2] == "+two");
    CHECK(reader.position() == file.size());
    CHECK_FALSE(reader.finish());
  }
}

TEST_CASE("metrics file: a torn last record waits for the rest, and is told when none comes", "[trial][metrics_file]") {
  MetricsFileReader reader;
  reader.feed(record("one") + "ME0000");
  CHECK(items(reader) == Items{"+one"});
  CHECK(reader.position() == record("one").size());
  reader.feed("04tw");
  CHECK(items(reader).empty());
  reader.feed("o\n");
  CHECK(items(reader) == Items{"+two"});

  reader.feed("ME000009{\"a\"");
  CHECK(items(reader).empty());
  const auto torn = reader.finish();
  REQUIRE(torn);
  CHECK_FALSE(torn->record);
  CHECK(torn->text.find("{\"a\"") != std::string::npos);
  CHECK_FALSE(reader.finish());
}

TEST_CASE("metrics file: a record that was never completed costs none of those behind it", "[trial][metrics_file]") {
  MetricsFileReader reader;
  const std::string torn = "ME000999{\"a\": 1";
  reader.feed(torn + record("one") + record("two") + "ME0000");
  CHECK(items(reader).empty());

  Items left;
  while (const auto item = reader.finish()) left.push_back((item->record ? "+" : "-") + item->text);

  CHECK(left == Items{"-a record that ends in its middle: " + torn, "+one", "+two",
                      "-a record that ends in its middle: ME0000"});
  CHECK(reader.position() == (torn + record("one") + record("two") + "ME0000").size());
}

TEST_CASE("metrics file: what is no record is skipped as one item, and costs no other", "[trial][metrics_file]") {
  const std::string good = record("good");
  CHECK(items_of("hello\n" + good) == Items{"-hello?", "+good"});
  CHECK(items_of("ME00x005abcd\n" + good) == Items{"-ME00x005abcd?", "+good"});
  CHECK(items_of("ME000000" + good) == Items{"-ME000000", "+good"});
  CHECK(items_of("MMEMEME" + good) == Items{"-MMEMEME", "+good"});
  CHECK(items_of("XX000005good\n" + good).back() == "+good");
  CHECK(items_of(std::string(5, '\0') + good) == Items{"-?????", "+good"});
  // A length that does not lead to a newline is no length.
  CHECK(items_of("ME000003abcdefgh\n" + good).back() == "+good");
  CHECK(items_of("ME000012" + good + good) == Items{"-ME000012", "+good", "+good"});
}

TEST_CASE("metrics file: a record that is too large is skipped", "[trial][metrics_file]") {
  const std::string good = record("good");
  CHECK(items_of(record(std::string(10, 'x')) + good, 10) == Items{"+xxxxxxxxxx", "+good"});
  const Items two = items_of(record(std::string(11, 'x')) + good, 10);
  REQUIRE(two.size() == 2);
  CHECK(two[0][0] == '-');
  CHECK(two[1] == "+good");
}
