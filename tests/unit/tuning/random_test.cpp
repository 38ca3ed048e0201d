#include "support/catch.hpp"

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nni/tuning/random.hpp>

namespace nni::tuning {
namespace {

std::vector<std::string> suggestions(Random& tuner, std::uint64_t first, std::uint64_t count) {
  std::vector<std::string> texts;
  for (std::uint64_t id = first; id < first + count; ++id) {
    const auto parameters = tuner.generate(ParameterId{id});
    texts.push_back(parameters ? parameters->text() : "none");
  }
  return texts;
}

std::vector<double> sample(Dimension dimension, int count) {
  // A second dimension keeps the space infinite, so that repetitions are allowed.
  Random tuner{SearchSpace{std::move(dimension), uniform("other", 0.0, 1.0)}, seed(11)};
  std::vector<double> values;
  Point point;
  for (int round = 0; round < count; ++round) {
    REQUIRE(tuner.suggest(ParameterId{static_cast<std::uint64_t>(round)}, point));
    values.push_back(point[0]);
  }
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double deviation(const std::vector<double>& values) {
  const double middle = mean(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

constexpr int many = 20'000;

TEST_CASE("random: real numbers fill their range evenly", "[tuning][random]") {
  std::array<int, 10> cells{};
  for (const double value : sample(uniform("x", -5.0, 5.0), many)) {
    REQUIRE(value >= -5.0);
    REQUIRE(value < 5.0);
    ++cells[static_cast<std::size_t>(value + 5.0)];
  }
  // Five deviations of a binomial count with n = 20000 and p = 1/10.
  for (const int count : cells) CHECK(std::abs(count - many / 10) < 212);
}

TEST_CASE("random: logarithms of loguniform numbers fill their range evenly", "[tuning][random]") {
  std::array<int, 4> decades{};
  for (const double value : sample(loguniform("lr", 1e-5, 1e-1), many)) {
    REQUIRE(value >= 1e-5);
    REQUIRE(value <= 1e-1);
    ++decades[static_cast<std::size_t>(std::min(3.0, std::floor(std::log10(value) + 5.0)))];
  }
  for (const int count : decades) CHECK(std::abs(count - many / 4) < 307);
}

TEST_CASE("random: inner multiples of q are equally likely, the outer ones half as much", "[tuning][random]") {
  std::map<double, int> counts;
  for (const double value : sample(quniform("q", 0.0, 4.0, 1.0), many)) ++counts[value];

  REQUIRE(counts.size() == 5);
  CHECK(counts[0.0] == Approx(many / 8).epsilon(0.1));
  CHECK(counts[2.0] == Approx(many / 4).epsilon(0.1));
  CHECK(counts[4.0] == Approx(many / 8).epsilon(0.1));
}

TEST_CASE("random: integers are equally likely and leave out the upper limit", "[tuning][random]") {
  std::map<double, int> counts;
  for (const double value : sample(randint("n", 3, 8), many)) ++counts[value];

  REQUIRE(counts.size() == 5);
  CHECK(counts.begin()->first == 3.0);
  CHECK(counts.rbegin()->first == 7.0);
  for (const auto& [value, count] : counts) CHECK(std::abs(count - many / 5) < 283);
}

TEST_CASE("random: normal types have their mean and deviation", "[tuning][random]") {
  const std::vector<double> plain = sample(normal("x", 10.0, 2.0), many);
  CHECK(mean(plain) == Approx(10.0).margin(0.08));
  CHECK(deviation(plain) == Approx(2.0).margin(0.06));

  std::vector<double> logarithms;
  for (const double value : sample(lognormal("x", 1.0, 0.5), many)) logarithms.push_back(std::log(value));
  CHECK(mean(logarithms) == Approx(1.0).margin(0.02));
  CHECK(deviation(logarithms) == Approx(0.5).margin(0.015));

  for (const double value : sample(qnormal("x", 0.0, 3.0, 0.5), 1000))
    REQUIRE(std::nearbyint(value / 0.5) * 0.5 == value);
  for (const double value : sample(qlognormal("x", 0.0, 1.0, 0.25), 1000)) {
    REQUIRE(value >= 0.0);
    REQUIRE(std::nearbyint(value / 0.25) * 0.25 == value);
  }
}

TEST_CASE("random: options are equally likely, and dimensions of other branches are absent", "[tuning][random]") {
  Random tuner{
      SearchSpace{
          choice("kind", {branch("a", {uniform("x", 0.0, 1.0)}), branch("b", {uniform("y", 2.0, 3.0)}), branch("c")})},
      seed(3)};
  std::map<std::string, int> counts;
  for (std::uint64_t id = 0; id < 3000; ++id) {
    const Parameters parameters = tuner.generate(ParameterId{id}).value();
    const auto kind = parameters.get<std::string>("kind/_name");
    ++counts[kind];
    CHECK(parameters.contains("kind/x") == (kind == "a"));
    CHECK(parameters.contains("kind/y") == (kind == "b"));
  }
  REQUIRE(counts.size() == 3);
  for (const auto& [kind, count] : counts) CHECK(std::abs(count - 1000) < 130);
}

TEST_CASE("random: a seed decides all suggestions, and the order of asking does not matter", "[tuning][random]") {
  const SearchSpace space{uniform("x", 0.0, 1.0), choice("c", {"a", "b"})};
  Random first{space, seed(7)};
  Random second{space, seed(7)};
  Random other{space, seed(8)};

  const auto forward = suggestions(first, 0, 10);
  CHECK(suggestions(second, 5, 5) == std::vector<std::string>(forward.begin() + 5, forward.end()));
  CHECK(suggestions(second, 0, 10) == forward);
  CHECK(suggestions(other, 0, 10) != forward);

  SECTION("a recorded seed can be given back") {
    other.reseed(first.seed());
    CHECK(suggestions(other, 0, 10) == forward);
  }
  SECTION("without a seed two tuners differ") { CHECK(Random{space}.seed() != Random{space}.seed()); }
}

TEST_CASE("random: results make no difference", "[tuning][random]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  Random told{space, seed(7)};
  Random untold{space, seed(7)};
  TrialOutcome outcome;
  outcome.status = TrialJobStatus::succeeded;
  outcome.value = 1.0;

  for (std::uint64_t id = 0; id < 10; ++id) {
    CHECK(told.generate(ParameterId{id}) == untold.generate(ParameterId{id}));
    outcome.parameter = ParameterId{id};
    told.observe(outcome);
  }
}

TEST_CASE("random: a small space is used up without a repetition, then there is nothing more", "[tuning][random]") {
  const SearchSpace space{
      choice("c", {1, 2, 3}), quniform("q", 2, 10, 5), choice("k", {branch("a", {randint("n", 0, 4)}), branch("b")})};
  Random tuner{space, seed(1)};
  const auto texts = suggestions(tuner, 0, 50);

  CHECK(std::set<std::string>(texts.begin(), texts.begin() + 45).size() == 45);
  CHECK(std::vector<std::string>(texts.begin() + 45, texts.end()) == std::vector<std::string>(5, "none"));
  CHECK(space.size() == 45);

  SECTION("a resumed tuner goes on where the first one was") {
    Random resumed{space, seed(1)};
    CHECK(suggestions(resumed, 30, 20) == std::vector<std::string>(texts.begin() + 30, texts.end()));
  }
  SECTION("asking again for an earlier one gives the same") {
    CHECK(tuner.generate(ParameterId{12})->text() == texts[12]);
    CHECK_FALSE(tuner.generate(ParameterId{45}));
  }
  SECTION("a new space starts afresh") {
    tuner.update_search_space(SearchSpace{choice("c", {1, 2})});
    CHECK(suggestions(tuner, 45, 3).back() == "none");
    CHECK(suggestions(tuner, 45, 2) == suggestions(tuner, 45, 2));
  }
}

TEST_CASE("random: a space without dimensions gives empty parameters for ever", "[tuning][random]") {
  Random tuner;
  CHECK(suggestions(tuner, 0, 3) == std::vector<std::string>(3, "{}"));
}

}  // namespace
}  // namespace nni::tuning
