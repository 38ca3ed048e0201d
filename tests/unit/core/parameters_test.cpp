#include "support/catch.hpp"

#include <cstdint>
#include <limits>

#include <nni/core/parameters.hpp>

using namespace nni;

TEST_CASE("parameters: integers are written with all their digits and their sign", "[core][parameters]") {
  constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
  constexpr auto smallest = std::numeric_limits<std::int64_t>::min();

  const Parameters written = ParametersWriter{}.add("a", largest).add("b", smallest).add("c", 7U).finish();

  CHECK(written.text() == R"({"a":18446744073709551615,"b":-9223372036854775808,"c":7})");
  CHECK(written.get<std::int64_t>("b") == smallest);
  CHECK(written.get<std::uint8_t>("c") == 7);
  CHECK(written.get<std::uint64_t>("a") == largest);
  CHECK(written.get<std::uint64_t>("c") == 7);
  CHECK_THROWS_WITH(written.get<std::uint64_t>("b"), Catch::Matchers::Contains("-9223372036854775808"));
  CHECK_THROWS_WITH(written.get<std::int64_t>("a"), Catch::Matchers::Contains("18446744073709551615"));
}

TEST_CASE("parameters: what does not fit the type that is asked for is an error that says what there is",
          "[core][parameters]") {
  const Parameters given("{\"rate\":0.5,\"units\":300,\"name\":\"a\"}");

  CHECK_THROWS_WITH(given.get<int>("rate"), Catch::Matchers::Contains("rate") && Catch::Matchers::Contains("0.5"));
  CHECK_THROWS_WITH(given.get<std::uint8_t>("units"), Catch::Matchers::Contains("300"));
  CHECK_THROWS_WITH(
      given.get<double>("depth"), Catch::Matchers::Contains("depth") && Catch::Matchers::Contains("units"));
  CHECK_FALSE(given.find<double>("depth"));
}
