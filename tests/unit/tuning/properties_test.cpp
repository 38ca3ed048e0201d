// What holds for every tuner in every space, tried on spaces that are put together at random.

#include "support/catch.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni::tuning {
namespace {

Dimension any_dimension(CounterRandom& random, const std::string& name, int depth) {
  const double low = std::round(200.0 * random.uniform() - 100.0) / 8.0;
  const double width = 0.5 + 50.0 * random.uniform();
  const double q = 0.1 + random.uniform() * width;
  switch (random.below(11)) {
    case 0: return uniform(name, low, low + width);
    case 1: return quniform(name, low, low + width, q);
    case 2: return loguniform(name, 0.001 + std::abs(low), 0.001 + std::abs(low) + width);
    case 3: return qloguniform(name, 0.001 + std::abs(low), 0.001 + std::abs(low) + width, q);
    case 4:
      return randint(
          name, static_cast<std::int64_t>(low), static_cast<std::int64_t>(low) + 1 + static_cast<std::int64_t>(width));
    case 5: return normal(name, low, width);
    case 6: return qnormal(name, low, width, q);
    case 7: return lognormal(name, low / 20.0, 1.0);
    case 8: return qlognormal(name, low / 20.0, 1.0, q);
    case 9: return choice(name, {1, 2.5, "text \"quoted\" \xc3\xa4", false});
    default: break;
  }
  if (depth == 2) return choice(name, {"a", "b", "c"});
  std::vector<ChoiceOption> branches;
  for (std::uint64_t index = 0; index <= random.below(3); ++index) {
    std::vector<Dimension> inner;
    for (std::uint64_t number = random.below(3); number > 0; --number)
      inner.push_back(any_dimension(random, "inner" + std::to_string(number), depth + 1));
    branches.push_back(branch("branch" + std::to_string(index), std::move(inner)));
  }
  return choice(name, branches);
}

SearchSpace any_space(std::uint64_t number) {
  CounterRandom random(seed(2026), ParameterId{number});
  std::vector<Dimension> dimensions;
  for (std::uint64_t index = 0; index <= random.below(5); ++index)
    dimensions.push_back(any_dimension(random, "d/" + std::to_string(index), 0));
  return SearchSpace(std::move(dimensions));
}

TrialOutcome outcome_of(ParameterId id, const Parameters& parameters) {
  TrialOutcome outcome;
  outcome.trial = TrialId{id.value + 1};
  outcome.parameter = id;
  outcome.parameters = parameters;
  outcome.status = id.value % 9 == 5 ? TrialJobStatus::failed : TrialJobStatus::succeeded;
  // Any function of the parameters will do.
  double value = 0.0;
  for (const char letter : parameters.text()) value = 0.9 * value + 0.1 * letter;
  if (outcome.status == TrialJobStatus::succeeded) outcome.value = value;
  return outcome;
}

constexpr std::uint64_t spaces = 60;
constexpr std::uint64_t rounds = 30;

template <class Make>
void check_every_space(Make make) {
  for (std::uint64_t number = 0; number < spaces; ++number) {
    const SearchSpace space = any_space(number);
    INFO("space " << number << ": " << space.to_json());
    auto tuner = make(space);
    auto by_values = make(space);
    auto resumed = make(space);
    tuner.start(space, Objectives(maximize));
    by_values.start(space, Objectives(maximize));
    resumed.start(space, Objectives(maximize));

    for (ParameterId id{0}; id.value < rounds; ++id.value) {
      const std::optional<Parameters> parameters = tuner.generate(id);
      Point point;
      REQUIRE(by_values.suggest(id, point) == parameters.has_value());
      // Told everything but never asked before, it must go on with the same suggestions.
      if (id.value >= rounds / 2) REQUIRE(resumed.generate(id) == parameters);
      if (!parameters) break;

      INFO("suggestion " << id.value << ": " << *parameters);
      const std::optional<Point> read = space.to_point(*parameters);
      REQUIRE(read);
      REQUIRE(space.to_parameters(*read) == *parameters);
      REQUIRE(space.to_parameters(point) == *parameters);
      for (std::size_t axis = 0; axis < point.size(); ++axis) {
        const Axis& self = space.axes()[axis];
        const bool active = self.parent == Axis::no_parent || point[self.parent] == static_cast<double>(self.branch);
        REQUIRE(std::isnan(point[axis]) != active);
        if (active) REQUIRE(self.accepts(point[axis]));
      }

      const TrialOutcome outcome = outcome_of(id, *parameters);
      tuner.observe(outcome);
      by_values.learn(id, point, outcome.value);
      resumed.observe(outcome);
    }
  }
}

TEST_CASE("random: suggestions fit any space, by text and by values alike, also after a resume",
          "[tuning][properties]") {
  check_every_space([](const SearchSpace& space) { return Random{space, seed(7)}; });
}

TEST_CASE("grid: suggestions fit any space, by text and by values alike, also after a resume", "[tuning][properties]") {
  check_every_space([](const SearchSpace& space) { return Grid{space}; });
}

TEST_CASE("tpe: suggestions fit any space, by text and by values alike, also after a resume", "[tuning][properties]") {
  check_every_space([](const SearchSpace& space) { return Tpe{space, {.startup_trials = 6}, seed(7)}; });
}

TEST_CASE("every space survives its JSON form", "[tuning][properties]") {
  for (std::uint64_t number = 0; number < spaces; ++number) {
    const SearchSpace space = any_space(number);
    INFO(space.to_json());
    const SearchSpace again = SearchSpace::from_json(space.to_json());
    REQUIRE(again == space);
    REQUIRE(again.size() == space.size());
    for (std::size_t axis = 0; axis < space.axes().size(); ++axis) {
      REQUIRE(again.axes()[axis].path == space.axes()[axis].path);
      REQUIRE(again.axes()[axis].value_at(0.3) == space.axes()[axis].value_at(0.3));
    }
  }
}

TEST_CASE("every finite space numbers its configurations without a gap", "[tuning][properties]") {
  int finite = 0;
  for (std::uint64_t number = 0; number < 10 * spaces; ++number) {
    const SearchSpace space = any_space(number);
    if (!space.size() || *space.size() > 2000) continue;
    ++finite;
    INFO(space.to_json());
    for (std::uint64_t index = 0; index < *space.size(); ++index)
      REQUIRE(space.index_of(space.configuration(index)) == index);
  }
  CHECK(finite > 50);
}

}  // namespace
}  // namespace nni::tuning
