#include "support/catch.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <system_error>

#include <nni/core/decimal.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/metric.hpp>

using namespace nni;

namespace {

struct Reading {
  std::size_t length = 0;
  std::errc failure{};
  double value = 0.0;
};

Reading read(auto reader, const std::string& text, std::chars_format form = std::chars_format::general) {
  Reading reading;
  const auto [end, failure] = reader(text.data(), text.data() + text.size(), reading.value, form);
  reading.length = static_cast<std::size_t>(end - text.data());
  reading.failure = failure;
  return reading;
}

std::optional<double> scalar(const std::string& text) {
  return Metric(RunId{TrialId{1}, 0}, MetricKind::final, 0, text, TimePoint{}).scalar();
}

}  // namespace

TEST_CASE("decimal: both readers agree on every form of a number", "[core][decimal]") {
  const auto text = GENERATE(
      as<std::string>{}, "0", "-0", "1", "-1", "0.5", ".5", "5.", "1e3", "1E+3", "1e-3", "1e", "1e+", "12abc", "0.1",
      "123456789012345678901234567890", "2.2250738585072011e-308", "2.2250738585072014e-308", "4.9e-324",
      "1.7976931348623157e308", "9007199254740993", "", "-", ".", "-.", "+1", " 1", "x", "1,5", "0x10", "inf", "-inf",
      "Infinity", "infinite", "-in", "nan");
  const auto form = GENERATE(std::chars_format::general, std::chars_format::fixed);
  CAPTURE(text, form == std::chars_format::fixed);
  const Reading quick = read(read_decimal, text, form);
  const Reading slow = read(detail::read_decimal_slowly, text, form);
  CHECK(quick.length == slow.length);
  CHECK(quick.failure == slow.failure);
  CHECK((quick.value == slow.value || (std::isnan(quick.value) && std::isnan(slow.value))));
  CHECK(std::signbit(quick.value) == std::signbit(slow.value));
}

TEST_CASE("decimal: what no double can hold is out of range, and infinite or zero", "[core][decimal]") {
  const auto [text, value] = GENERATE(table<std::string, double>(
      {{"1e400", std::numeric_limits<double>::infinity()},
       {"-1e400", -std::numeric_limits<double>::infinity()},
       {"1e-400", 0.0},
       {"-1e-400", -0.0}}));
  CAPTURE(text);
  const Reading reading = read(read_decimal, text);
  CHECK(reading.failure == std::errc::result_out_of_range);
  CHECK(reading.length == text.size());
  CHECK(reading.value == value);
  CHECK(std::signbit(reading.value) == std::signbit(value));
  CHECK(scalar(text) == value);
}
