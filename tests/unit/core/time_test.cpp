#include "support/catch.hpp"

#include <chrono>
#include <string>

#include <nni/core/time.hpp>

using namespace nni;
using namespace std::chrono_literals;

TEST_CASE("time: durations are read as NNI's configuration writes them", "[core][time]") {
  CHECK(parse_duration("90").value() == 90s);
  CHECK(parse_duration("1h30m").value() == 90min);
  CHECK(parse_duration("1.5H").value() == 90min);
  CHECK(parse_duration("2d").value() == 48h);
  CHECK(parse_duration("250ms").value() == 250ms);
  CHECK(parse_duration("0").value() == 0s);
}

TEST_CASE("time: what is no duration is refused, with the text and a form that would do", "[core][time]") {
  const std::string text = GENERATE("", "h", "-1s", "1 h", "90 ", "1h30", "5weeks", "nan", "inf", "1e3", "200000d");
  CAPTURE(text);
  const auto read = parse_duration(text);
  REQUIRE(read.has_error());
  CHECK_THAT(
      read.error().message(), Catch::Matchers::Contains("\"" + text + "\"") && Catch::Matchers::Contains("1h30m"));
}

TEST_CASE("time: a duration is printed in two units at most", "[core][time]") {
  CHECK(to_string(Duration(12ms)) == "12ms");
  CHECK(to_string(Duration(3200ms)) == "3.2s");
  CHECK(to_string(Duration(252s)) == "4m12s");
  CHECK(to_string(Duration(90min)) == "1h30m");
  CHECK(to_string(Duration(28h)) == "1d04h");
  CHECK(to_string(Duration(-90min)) == "-1h30m");
}
