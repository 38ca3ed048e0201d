#include "support/catch.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include <boost/json.hpp>

#include <nni/core/json.hpp>
#include <nni/core/parameters.hpp>
#include <nni/core/random.hpp>

namespace nni {
namespace {

boost::json::value parsed(std::string_view text) {
  boost::system::error_code failure;
  boost::json::value value = parse_json(text, failure);
  INFO(text);
  REQUIRE_FALSE(failure);
  return value;
}

bool refused(std::string_view text) {
  boost::system::error_code failure;
  (void)parse_json(text, failure);
  return static_cast<bool>(failure);
}

TEST_CASE("exact json: every real number that is written reads back as the same bits", "[core][json]") {
  CounterRandom random(seed(1), ParameterId{0});
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t bits = random.next();
    double number = 0.0;
    std::memcpy(&number, &bits, sizeof number);
    if (!std::isfinite(number)) continue;
    const double back = parsed(to_json_text(number)).to_number<double>();
    REQUIRE(std::memcmp(&number, &back, sizeof number) == 0);
  }
  for (int round = 0; round < 20'000; ++round) {
    const double number = 10.0 * random.uniform() - 5.0;
    REQUIRE(Parameters(R"({"x":)" + to_json_text(number) + "}").get<double>("x") == number);
  }
}

TEST_CASE("exact json: everything else is as Boost.JSON has it", "[core][json]") {
  const char* const text =
      R"( {"a": [1, -2, 18446744073709551615, 1.5e3, true, false, null], "text": "\u00e4\n\"", "in": {"": {}}, "none": []} )";

  CHECK(parsed(text) == boost::json::parse(text));
  CHECK(parsed("-0.0").as_double() == 0.0);
  CHECK(parsed("7").is_int64());
  CHECK(parsed(std::string(5000, ' ') + "\"" + std::string(5000, 'x') + "\"").as_string().size() == 5000);
}

TEST_CASE("exact json: what is not JSON is refused", "[core][json]") {
  for (const char* text : {"", " ", "{", "[1,]", "nan", "1 2", "{\"a\":1}}", "'a'", "[1", "01", "\"\\x\""}) {
    INFO(text);
    CHECK(refused(text));
  }
  CHECK(refused(std::string(100, '[') + std::string(100, ']')));
}

}  // namespace
}  // namespace nni
