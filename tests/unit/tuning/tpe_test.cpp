#include "support/catch.hpp"
#include "support/functions.hpp"
#include "support/rank_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/detail/parzen.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni::tuning {
namespace {

/// The best value of a study after so many rounds.
template <class T, class F>
double best_of(T tuner, int rounds, F function, Direction direction = minimize) {
  AskTell study{std::move(tuner), direction};
  for (int round = 0; round < rounds; ++round) {
    const auto trial = study.ask();
    study.tell(trial, function(trial.parameters.point()));
  }
  return study.best()->value;
}

/// The best values of both tuners over 30 seeds, and how likely the difference would be by chance.
template <class F>
double chance_against_random(const SearchSpace& space, int rounds, F function) {
  std::vector<double> tpe;
  std::vector<double> random;
  for (std::uint64_t number = 0; number < 30; ++number) {
    tpe.push_back(best_of(Tpe{space, seed(number)}, rounds, function));
    random.push_back(best_of(Random{space, seed(1000 + number)}, rounds, function));
  }
  return nni_test::chance_that_lower(tpe, random);
}

SearchSpace cube(int dimensions) {
  std::vector<Dimension> all;
  for (int index = 0; index < dimensions; ++index) all.push_back(uniform("x" + std::to_string(index), 0.0, 1.0));
  return SearchSpace(std::move(all));
}

TrialOutcome outcome(std::uint64_t id, const Parameters& parameters, TrialJobStatus status,
                     std::optional<double> value) {
  TrialOutcome result;
  result.trial = TrialId{id + 1};
  result.parameter = ParameterId{id};
  result.parameters = parameters;
  result.status = status;
  result.value = value;
  return result;
}

/// Tells a tuner of trials on a line in space, those near `good` being better.
void tell_line(Tpe& tuner, double good, std::uint64_t count, TrialJobStatus status = TrialJobStatus::succeeded) {
  for (std::uint64_t id = 0; id < count; ++id) {
    const double x = (static_cast<double>(id) + 0.5) / static_cast<double>(count);
    tuner.observe(outcome(id, ParametersWriter().add("x", x).finish(), status, std::abs(x - good)));
  }
}

/// The next suggestion of 40 tuners that differ in their seeds only and were told the same.
template <class Tell>
std::vector<double> next_suggestions(const SearchSpace& space, Tell tell) {
  std::vector<double> values;
  for (std::uint64_t number = 0; number < 40; ++number) {
    Tpe tuner{space, seed(number)};
    tell(tuner);
    values.push_back(tuner.generate(ParameterId{1000})->get<double>("x"));
  }
  return values;
}

double mean(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST_CASE("tpe: beats random search on Branin's function over 30 seeds", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", -5.0, 10.0), uniform("y", 0.0, 15.0)};

  CHECK(chance_against_random(space, 100, [](const Point& at) { return nni_test::branin(at[0], at[1]); }) < 1e-6);
}

TEST_CASE("tpe: beats random search on Hartmann's function in six dimensions over 30 seeds", "[tuning][tpe]") {
  CHECK(chance_against_random(cube(6), 100, [](const Point& at) { return nni_test::hartmann6(at); }) < 1e-6);
}

TEST_CASE("tpe: beats random search where parameters are logarithmic, discrete and conditional", "[tuning][tpe]") {
  const SearchSpace space{
      loguniform("lr", 1e-5, 1.0), quniform("units", 8, 256, 8), choice("act", {"relu", "tanh", "sigmoid"}),
      choice("opt", {branch("sgd", {uniform("momentum", 0.0, 1.0)}),
                     branch("adam", {loguniform("epsilon", 1e-9, 1e-2), uniform("decay", 0.5, 1.0)})})};
  const auto loss = [](const Point& at) {
    const double shared =
        std::abs(std::log10(at[0]) + 2.5) + std::abs(at[1] - 100.0) / 100.0 + (at[2] == 1.0 ? 0.0 : 0.5);
    if (at[3] == 0.0) return shared + 0.5 + std::abs(at[4] - 0.9);
    return shared + std::abs(std::log10(at[5]) + 6.0) / 5.0 + std::abs(at[6] - 0.9);
  };

  CHECK(chance_against_random(space, 100, loss) < 1e-6);
}

TEST_CASE("tpe: beats random search where there are choices only", "[tuning][tpe]") {
  std::vector<Dimension> all;
  for (int index = 0; index < 8; ++index) all.push_back(choice("c" + std::to_string(index), {0, 1, 2, 3, 4, 5}));
  const auto misses = [](const Point& at) {
    double sum = 0.0;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      sum += at[axis] == static_cast<double>(axis * 5 % 6) ? 0.0 : 1.0;
    return sum;
  };

  CHECK(chance_against_random(SearchSpace(std::move(all)), 100, misses) < 1e-6);
}

TEST_CASE("tpe: beats random search where values have a normal distribution", "[tuning][tpe]") {
  const SearchSpace space{normal("a", 0.0, 1.0), lognormal("b", 0.0, 1.0), qnormal("c", 10.0, 5.0, 1.0)};
  const auto loss = [](const Point& at) {
    return std::abs(at[0] - 2.5) + std::abs(std::log(at[1]) + 1.5) + std::abs(at[2] - 17.0) / 5.0;
  };

  CHECK(chance_against_random(space, 60, loss) < 1e-6);
}

TEST_CASE("tpe: maximising is minimising the negative", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0), choice("c", {1, 2, 3})};
  const auto value = [](const Point& at) { return at[0] + at[1]; };

  const double low = best_of(Tpe{space, seed(4)}, 40, value);
  const double high = best_of(Tpe{space, seed(4)}, 40, [&value](const Point& at) { return -value(at); }, maximize);
  CHECK(high == -low);
}

TEST_CASE("tpe: begins with random suggestions, as many as asked for", "[tuning][tpe]") {
  const SearchSpace space = cube(2);
  Tpe tuner{space, {.startup_trials = 5}, seed(9)};
  Random random{space, seed(9)};
  for (std::uint64_t id = 0; id < 8; ++id) {
    const Parameters suggestion = tuner.generate(ParameterId{id}).value();
    CHECK((suggestion == random.generate(ParameterId{id}).value()) == (id < 5));
    tuner.observe(outcome(id, suggestion, TrialJobStatus::succeeded, 1.0 + static_cast<double>(id)));
  }
}

TEST_CASE("tpe: the same calls give the same suggestions", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0), choice("c", {"a", "b"}), quniform("q", 0, 10, 1)};
  Tpe first{space, seed(7)};
  Tpe second{space, seed(7)};
  Tpe other{space, seed(8)};
  int equal = 0;
  for (std::uint64_t id = 0; id < 40; ++id) {
    const Parameters suggestion = first.generate(ParameterId{id}).value();
    REQUIRE(second.generate(ParameterId{id}) == suggestion);
    equal += other.generate(ParameterId{id}) == suggestion ? 1 : 0;
    const double value = suggestion.get<double>("x");
    first.observe(outcome(id, suggestion, TrialJobStatus::succeeded, value));
    second.observe(outcome(id, suggestion, TrialJobStatus::succeeded, value));
    other.observe(outcome(id, suggestion, TrialJobStatus::succeeded, value));
  }
  CHECK(equal == 0);
}

TEST_CASE("tpe: who finished first makes no difference", "[tuning][tpe]") {
  const SearchSpace space = cube(3);
  Tpe forwards{space, seed(7)};
  Tpe backwards{space, seed(7)};
  std::vector<TrialOutcome> outcomes;
  for (std::uint64_t id = 0; id < 30; ++id) {
    const Parameters suggestion = forwards.generate(ParameterId{id}).value();
    REQUIRE(backwards.generate(ParameterId{id}) == suggestion);
    // Many equal values: ties must be broken by something else than the order of arrival.
    outcomes.push_back(outcome(id, suggestion, TrialJobStatus::succeeded, static_cast<double>(id % 4)));
  }
  for (std::size_t index = 0; index < outcomes.size(); ++index) {
    forwards.observe(outcomes[index]);
    backwards.observe(outcomes[outcomes.size() - 1 - index]);
  }
  for (std::uint64_t id = 30; id < 40; ++id)
    CHECK(forwards.generate(ParameterId{id}) == backwards.generate(ParameterId{id}));
}

TEST_CASE("tpe: a resumed tuner that is told its history goes on as if it had not been interrupted", "[tuning][tpe]") {
  const SearchSpace space{
      uniform("x", 0.0, 1.0), loguniform("lr", 1e-6, 1.0), normal("z", 0.0, 1.0), qlognormal("w", 1.0, 1.0, 0.1),
      choice("k", {branch("a", {randint("n", 0, 1000)}), branch("b", {uniform("y", -1.0, 1.0)})})};
  Tpe lived{space, seed(7)};
  Tpe resumed{space, seed(1)};
  resumed.reseed(lived.seed());
  std::vector<TrialOutcome> history;
  const auto live = [&](std::uint64_t id) {
    const Parameters suggestion = lived.generate(ParameterId{id}).value();
    const bool failed = id % 7 == 3;
    history.push_back(outcome(
        id, suggestion, failed ? TrialJobStatus::failed : TrialJobStatus::succeeded,
        failed ? std::nullopt : std::optional(suggestion.get<double>("x") + suggestion.get<double>("lr"))));
    lived.observe(history.back());
    return suggestion;
  };
  for (std::uint64_t id = 0; id < 40; ++id) live(id);

  resumed.start(space, Objectives());
  for (const TrialOutcome& past : history) resumed.observe(past);

  for (std::uint64_t id = 40; id < 60; ++id) {
    const Parameters suggestion = live(id);
    REQUIRE(resumed.generate(ParameterId{id}) == suggestion);
    resumed.observe(history.back());
  }
}

TEST_CASE("tpe: a trial that was in flight at a resume is taken up, and counts with what it ran with",
          "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  Tpe lived{space, seed(7)};
  Tpe resumed{space, seed(7)};
  tell_line(lived, 0.3, 20);
  tell_line(resumed, 0.3, 20);
  const Parameters in_flight = lived.generate(ParameterId{20}).value();

  SECTION("when it is adopted") { resumed.adopt(ParameterId{20}, in_flight); }
  SECTION("when it is only observed") {}
  SECTION("when something else was suggested under its number") {
    for (std::uint64_t id = 0; id < 3; ++id) CHECK(lived.generate(ParameterId{100 + id}));
    for (std::uint64_t id = 0; id < 3; ++id) CHECK(resumed.generate(ParameterId{100 + id}));
    resumed.adopt(ParameterId{20}, ParametersWriter().add("x", 0.99).finish());
  }
  lived.observe(outcome(20, in_flight, TrialJobStatus::succeeded, 0.0));
  resumed.observe(outcome(20, in_flight, TrialJobStatus::succeeded, 0.0));

  CHECK(resumed.generate(ParameterId{21})->get<double>("x") ==
        Approx(lived.generate(ParameterId{21})->get<double>("x")));
}

TEST_CASE("tpe: suggestions gather around good results", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};

  CHECK(mean(next_suggestions(space, [](Tpe& tuner) { tell_line(tuner, 0.2, 50); })) == Approx(0.2).margin(0.05));
  CHECK(mean(next_suggestions(space, [](Tpe& tuner) { tell_line(tuner, 0.8, 50); })) == Approx(0.8).margin(0.05));
}

TEST_CASE("tpe: far from all results only the prior is left, on many axes too", "[tuning][tpe]") {
  for (const int dimensions : {1, 10, 40, 120}) {
    const SearchSpace space = cube(dimensions);
    detail::Parzen mixture(space.axes());
    const std::vector<float> middle(space.axes().size(), 0.5F);
    const std::vector<float> corner(space.axes().size(), 0.01F);
    mixture.add(middle, 1.0F);
    mixture.add(corner, 0.0F);
    mixture.fit();

    INFO(dimensions << " dimensions");
    const double prior = std::log(0.5);  // half of the mixture
    CHECK(mixture.log_density(corner, 1.0) == Approx(prior).margin(0.01));
    CHECK(mixture.log_density(middle, 1.0) > prior + dimensions);
  }
}

TEST_CASE("tpe: parameters that go together are suggested together", "[tuning][tpe]") {
  // Good are (low, a) and (high, b) alike: each parameter alone says nothing.
  const SearchSpace space{uniform("x", 0.0, 1.0), choice("c", {"a", "b"})};
  Tpe tuner{space, seed(3)};
  CounterRandom random(seed(5), ParameterId{0});
  for (std::uint64_t id = 0; id < 200; ++id) {
    const double x = random.uniform();
    const bool b = random.uniform() < 0.5;
    const double value = std::abs(x - (b ? 0.9 : 0.1));
    tuner.observe(
        outcome(id, ParametersWriter().add("x", x).add("c", b ? "b" : "a").finish(), TrialJobStatus::succeeded, value));
  }
  int matching = 0;
  for (std::uint64_t id = 200; id < 240; ++id) {
    const Parameters suggestion = tuner.generate(ParameterId{id}).value();
    matching += (suggestion.get<double>("x") > 0.5) == (suggestion.get<std::string>("c") == "b") ? 1 : 0;
  }
  CHECK(matching >= 36);
}

TEST_CASE("tpe: trials in flight keep others away, unless the liar says otherwise", "[tuning][tpe]") {
  const auto spread = [](Liar liar) {
    // One step at a time is compared with 20 at once; results that count the same for all liars.
    Tpe tuner{SearchSpace{uniform("x", 0.0, 1.0), uniform("y", 0.0, 1.0)}, {.liar = liar}, seed(2)};
    CounterRandom random(seed(6), ParameterId{0});
    for (std::uint64_t id = 0; id < 40; ++id) {
      const double x = random.uniform();
      const double y = random.uniform();
      tuner.observe(outcome(id, ParametersWriter().add("x", x).add("y", y).finish(), TrialJobStatus::succeeded,
                            std::hypot(x - 0.5, y - 0.5)));
    }
    std::vector<std::pair<double, double>> points;
    for (std::uint64_t id = 40; id < 80; ++id) {
      const Parameters suggestion = tuner.generate(ParameterId{id}).value();
      points.emplace_back(suggestion.get<double>("x"), suggestion.get<double>("y"));
    }
    double sum = 0.0;
    for (const auto& [x, y] : points)
      for (const auto& [u, v] : points) sum += std::hypot(x - u, y - v);
    return sum / static_cast<double>(points.size() * points.size());
  };

  CHECK(spread(Liar::worst) > 1.5 * spread(Liar::none));
  CHECK(spread(Liar::mean) > 1.2 * spread(Liar::none));
  CHECK(spread(Liar::best) < spread(Liar::worst));
}

TEST_CASE("tpe: failed trials and trials without a value are avoided", "[tuning][tpe]") {
  // The best results lie a little above the middle, and above the middle most trials break.
  const auto above = [](TrialJobStatus status, std::optional<double> value) {
    const std::vector<double> values = next_suggestions(SearchSpace{uniform("x", 0.0, 1.0)}, [&](Tpe& tuner) {
      tell_line(tuner, 0.53, 30);
      for (std::uint64_t id = 30; id < 80; ++id) {
        const double x = 0.5 + 0.01 * static_cast<double>(id - 30);
        tuner.observe(outcome(id, ParametersWriter().add("x", x).finish(), status, value));
      }
    });
    return std::count_if(values.begin(), values.end(), [](double x) { return x > 0.5; });
  };
  const auto untold = above(TrialJobStatus::user_canceled, std::nullopt);
  CHECK(untold >= 30);

  CHECK(above(TrialJobStatus::failed, std::nullopt) <= untold / 2);
  CHECK(above(TrialJobStatus::failed, 0.0) <= untold / 2);
  CHECK(above(TrialJobStatus::succeeded, std::nullopt) <= untold / 2);
  CHECK(above(TrialJobStatus::succeeded, std::numeric_limits<double>::quiet_NaN()) <= untold / 2);
  CHECK(above(TrialJobStatus::early_stopped, std::nullopt) <= untold / 2);
}

TEST_CASE("tpe: a cancelled trial leaves no trace", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  Tpe told{space, seed(1)};
  Tpe untold{space, seed(1)};
  tell_line(told, 0.3, 20);
  tell_line(untold, 0.3, 20);
  for (std::uint64_t id = 20; id < 24; ++id) {
    const Parameters suggestion = told.generate(ParameterId{id}).value();
    told.observe(
        outcome(id, suggestion, id % 2 == 0 ? TrialJobStatus::user_canceled : TrialJobStatus::sys_canceled, 0.1));
  }

  for (std::uint64_t id = 24; id < 30; ++id) CHECK(told.generate(ParameterId{id}) == untold.generate(ParameterId{id}));
}

TEST_CASE("tpe: an early stopped trial counts with the value that it had", "[tuning][tpe]") {
  const auto tell = [](Tpe& tuner) { tell_line(tuner, 0.2, 50, TrialJobStatus::early_stopped); };

  CHECK(mean(next_suggestions(SearchSpace{uniform("x", 0.0, 1.0)}, tell)) == Approx(0.2).margin(0.05));
}

TEST_CASE("tpe: trials that report nothing leave it at random suggestions", "[tuning][tpe]") {
  const SearchSpace space{uniform("x", 0.0, 1.0)};
  Tpe tuner{space, seed(9)};
  Random random{space, seed(9)};
  for (std::uint64_t id = 0; id < 50; ++id) {
    const Parameters suggestion = tuner.generate(ParameterId{id}).value();
    REQUIRE(suggestion == random.generate(ParameterId{id}).value());
    tuner.observe(outcome(id, suggestion, TrialJobStatus::succeeded, std::nullopt));
  }
}

TEST_CASE("tpe: a small space is used up without a repetition, then there is nothing more", "[tuning][tpe]") {
  const SearchSpace space{
      choice("c", {1, 2, 3}), quniform("q", 2, 10, 5), choice("k", {branch("a", {randint("n", 0, 4)}), branch("b")})};
  AskTell study{Tpe{space, seed(1)}};
  std::set<std::string> texts;
  while (const auto trial = study.try_ask()) {
    texts.insert(trial->parameters.text());
    study.tell(*trial, trial->parameters.get<double>("q"));
  }
  CHECK(texts.size() == 45);
  CHECK(study.asked() == 45);
  CHECK(study.best()->value == 2.0);
}

TEST_CASE("tpe: after a resume a small space has only what was not tried", "[tuning][tpe]") {
  const SearchSpace space{randint("n", 0, 20)};
  Tpe tuner{space, seed(1)};
  std::set<int> seen;
  for (std::uint64_t id = 0; id < 15; ++id) {
    const int n = static_cast<int>(id);
    tuner.observe(outcome(id, ParametersWriter().add("n", n).finish(), TrialJobStatus::succeeded, 1.0 * n));
  }
  for (std::uint64_t id = 15; id < 20; ++id) seen.insert(tuner.generate(ParameterId{id})->get<int>("n"));

  CHECK(seen == std::set<int>{15, 16, 17, 18, 19});
  CHECK_FALSE(tuner.generate(ParameterId{20}));
}

TEST_CASE("tpe: after an update of the space, results that still fit are kept", "[tuning][tpe]") {
  const SearchSpace narrow{uniform("x", 0.0, 1.0)};
  const SearchSpace wide{uniform("x", 0.0, 1.1)};
  Tpe tuner{narrow, seed(1)};
  tell_line(tuner, 0.2, 50);

  SECTION("in a wider space all of them") {
    const auto tell = [&](Tpe& fresh) {
      tell_line(fresh, 0.2, 50);
      fresh.update_search_space(wide);
    };
    CHECK(mean(next_suggestions(narrow, tell)) == Approx(0.2).margin(0.08));
  }
  SECTION("in another space none") {
    const SearchSpace other{uniform("y", 0.0, 1.0)};
    tuner.update_search_space(other);
    Random random{other, seed(1)};
    CHECK(tuner.generate(ParameterId{50}) == random.generate(ParameterId{50}));
  }
  SECTION("a trial in flight is still expected") {
    const Parameters suggestion = tuner.generate(ParameterId{50}).value();
    tuner.update_search_space(wide);
    tuner.observe(outcome(50, suggestion, TrialJobStatus::succeeded, 0.0));
    CHECK(tuner.search_space() == wide);
    CHECK(wide.to_point(tuner.generate(ParameterId{51}).value()));
  }
}

TEST_CASE("tpe: what is observed outside of the space is ignored", "[tuning][tpe]") {
  Tpe tuner{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)};
  for (std::uint64_t id = 0; id < 30; ++id)
    tuner.observe(outcome(id, Parameters(R"({"x":7.0})"), TrialJobStatus::succeeded, 1.0));
  Random random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)};

  CHECK(tuner.generate(ParameterId{30}) == random.generate(ParameterId{30}));
}

TEST_CASE("tpe: a space without dimensions gives empty parameters for ever", "[tuning][tpe]") {
  AskTell study{Tpe{}};
  for (int round = 0; round < 30; ++round) {
    const auto trial = study.ask();
    CHECK(trial.parameters.text() == "{}");
    study.tell(trial, 1.0 * round);
  }
}

TEST_CASE("tpe: values stay finite and inside their limits however far the results lie out", "[tuning][tpe]") {
  const SearchSpace space{
      normal("z", 0.0, 1.0), lognormal("w", 0.0, 1.0), uniform("x", 0.0, 1.0), loguniform("l", 1e-8, 1.0)};
  AskTell study{Tpe{space, seed(2)}, maximize};
  for (int round = 0; round < 150; ++round) {
    const auto trial = study.ask();
    const Point& at = trial.parameters.point();
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      REQUIRE(std::isfinite(at[axis]));
      REQUIRE(space.axes()[axis].accepts(at[axis]));
    }
    study.tell(trial, at[0] + at[1] + at[2] + at[3]);
  }
}

TEST_CASE("tpe: options out of range are all reported", "[tuning][tpe]") {
  try {
    Tpe tuner{SearchSpace(),
              {.startup_trials = 0, .candidates = -1, .good_share = 1.0, .good_at_most = 0, .prior_weight = 0.0}};
    FAIL("was accepted");
  } catch (const ConfigError& error) {
    CHECK(error.problems().size() == 5);
    CHECK(error.problems()[0].key == "tpe.startup_trials");
    CHECK(error.problems()[0].reason == "is 0, but must be at least 1");
  }
}

}  // namespace
}  // namespace nni::tuning
