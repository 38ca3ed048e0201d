#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/detail/parzen.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni::tuning {
namespace {

/// The best value of a study after so many rounds.
template <class F>
double best_of(Tpe tuner, int rounds, F function) {
  AskTell study{std::move(tuner), minimize};
  for (int round = 0; round < rounds; ++round) {
    const auto trial = study.ask();
    study.tell(trial, function(trial.parameters.point()));
  }
  return study.best()->value;
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// A mixture of ten kernels in the first branch of `space`, at x = 0.05, 0.15, ..., and its density at x = 0.5 there.
double density_in_first_branch(const SearchSpace& space) {
  detail::Parzen mixture(space.axes());
  std::vector<float> point(space.axes().size(), static_cast<float>(inactive));
  point[0] = 0.0F;
  for (int index = 0; index < 10; ++index) {
    point[1] = 0.05F + 0.1F * static_cast<float>(index);
    mixture.add(point, 1.0F);
  }
  mixture.fit();
  point[1] = 0.5F;
  return mixture.log_density(point, 1.0);
}

TEST_CASE("tpe: what is learned of a branch does not depend on the dimensions of other branches", "[tuning][tpe]") {
  const auto space = [](int idle) {
    std::vector<Dimension> other;
    for (int index = 0; index < idle; ++index) other.push_back(uniform("y" + std::to_string(index), 0.0, 1.0));
    return SearchSpace{choice("k", {branch("a", {uniform("x", 0.0, 1.0)}), branch("b", std::move(other))})};
  };

  const double alone = density_in_first_branch(space(1));
  const double beside_many = density_in_first_branch(space(40));

  CHECK(beside_many == Approx(alone).epsilon(1e-6));
}

TEST_CASE("tpe: idle dimensions in another branch leave a search as precise as it is without them", "[tuning][tpe]") {
  std::vector<Dimension> idle;
  for (int index = 0; index < 40; ++index) idle.push_back(uniform("y" + std::to_string(index), 0.0, 1.0));
  const SearchSpace space{
      choice("k", {branch("a", {uniform("x", 0.0, 1.0), uniform("z", 0.0, 1.0)}), branch("b", std::move(idle))})};
  const auto loss = [](const Point& at) {
    return at[0] == 1.0 ? 1.0 : std::pow(at[1] - 0.3, 2) + std::pow(at[2] - 0.7, 2);
  };
  std::vector<double> best;
  for (std::uint64_t number = 0; number < 20; ++number) best.push_back(best_of(Tpe{space, seed(number)}, 150, loss));

  CHECK(mean(best) < 2.5e-4);
}

TEST_CASE("tpe: follows good results into the tail of a normal distribution", "[tuning][tpe]") {
  const double target = GENERATE(5.0, -5.0);
  const bool logarithmic = GENERATE(false, true);
  const SearchSpace space{logarithmic ? lognormal("x", 1.0, 0.5) : normal("x", 1.0, 0.5)};
  const auto distance = [&](const Point& at) {
    return std::abs(((logarithmic ? std::log(at[0]) : at[0]) - 1.0) / 0.5 - target);
  };

  std::vector<double> best;
  for (std::uint64_t number = 0; number < 9; ++number) best.push_back(best_of(Tpe{space, seed(number)}, 200, distance));
  std::sort(best.begin(), best.end());

  CHECK(best[4] < 0.002);
}

TEST_CASE("tpe: does not repeat what was tried in a space of more configurations than can be marked", "[tuning][tpe]") {
  const SearchSpace space{randint("a", 0, 2048), randint("b", 0, 2048)};
  AskTell study{Tpe{space, seed(3)}};
  std::set<std::string> texts;
  for (int round = 0; round < 400; ++round) {
    const auto trial = study.ask();
    texts.insert(trial.parameters.text());
    const Point& at = trial.parameters.point();
    study.tell(trial, std::hypot(at[0] - 700.0, at[1] - 900.0));
  }

  CHECK(texts.size() == 400);
}

TEST_CASE("tpe: does not repeat what was tried in a finite branch of a space without end", "[tuning][tpe]") {
  const SearchSpace space{
      choice("k", {branch("few", {randint("n", 0, 60)}), branch("many", {uniform("x", 0.0, 1.0)})})};
  AskTell study{Tpe{space, seed(3)}};
  std::set<std::string> texts;
  for (int round = 0; round < 200; ++round) {
    const auto trial = study.ask();
    texts.insert(trial.parameters.text());
    const Point& at = trial.parameters.point();
    study.tell(trial, at[0] == 0.0 ? std::abs(at[1] - 30.0) / 60.0 : 1.0 + at[2]);
  }

  CHECK(texts.size() == 200);
}

TEST_CASE("tpe: the densities of all values of an axis add up to one", "[tuning][tpe]") {
  const SearchSpace space = GENERATE(
      SearchSpace{randint("n", 0, 2)}, SearchSpace{randint("n", 0, 3)}, SearchSpace{randint("n", 0, 5)},
      SearchSpace{quniform("n", 0.0, 4.0, 1.0)}, SearchSpace{quniform("n", 2.0, 10.0, 5.0)});
  const Axis& axis = space.axes()[0];
  detail::Parzen mixture(space.axes());
  const std::vector<float> first{static_cast<float>(axis.position_of(axis.nth_value(0)))};
  for (int kernel = 0; kernel < 8; ++kernel) mixture.add(first, 1.0F);
  mixture.fit();

  double sum = 0.0;
  double begin = 0.0;
  for (std::uint64_t index = 0; index < axis.count; ++index) {
    const double middle = axis.position_of(axis.nth_value(index));
    const std::vector<float> at{static_cast<float>(middle)};
    sum += 2.0 * (middle - begin) * std::exp(mixture.log_density(at, 1.0));
    begin = 2.0 * middle - begin;
  }

  CHECK(sum == Approx(1.0).margin(0.005));
}

TEST_CASE("tpe: a value that is not finite counts as a failed trial, also without the text", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  const auto next = [&](std::optional<double> value) {
    Tpe tuner{space, {.startup_trials = 1}, seed(3)};
    Point point;
    for (std::uint64_t id = 0; id < 12; ++id) {
      REQUIRE(tuner.suggest(ParameterId{id}, point));
      tuner.learn(ParameterId{id}, point, id % 2 == 0 ? std::optional(point[0]) : value);
    }
    REQUIRE(tuner.suggest(ParameterId{12}, point));
    return point[0];
  };

  CHECK(next(std::numeric_limits<double>::quiet_NaN()) == next(std::nullopt));
  CHECK(next(-std::numeric_limits<double>::infinity()) == next(std::nullopt));
}

}  // namespace
}  // namespace nni::tuning
