#include "support/catch.hpp"

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>

namespace nni::tuning {
namespace {

SearchSpace some_space() {
  return {uniform("x", -1.0, 1.0),
          quniform("units", 8, 64, 8),
          choice("batch", {16, 32}),
          choice("act", {"relu", "tanh"}),
          choice("deep", {true, false}),
          choice("kind", {branch("a", {randint("n", 1, 5)}), branch("b", {uniform("n", 0.0, 1.0)})})};
}

/// A tuner with the mandatory members only, that notes what it is told.
struct Plain {
  using role = nni::role::tuner;
  void start(const SearchSpace& given, const Objectives& goals) {
    space = given;
    direction = goals.direction();
  }
  void update_search_space(const SearchSpace&) {}
  std::optional<Parameters> generate(ParameterId id) {
    if (id.value == 3) return std::nullopt;
    return ParametersWriter().add("x", static_cast<double>(id.value)).finish();
  }
  void observe(const TrialOutcome& outcome) { seen.push_back(outcome); }
  const SearchSpace& search_space() const { return space; }

  SearchSpace space;
  Direction direction = minimize;
  std::vector<TrialOutcome> seen;
};

TEST_CASE("ask and tell: the best of all results is kept, in either direction", "[tuning][ask_tell]") {
  const auto run = [](Direction direction) {
    AskTell study{Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(7)}, direction};
    double best = direction == minimize ? 2.0 : -1.0;
    for (int round = 0; round < 50; ++round) {
      const auto trial = study.ask();
      const auto x = trial.parameters.get<double>("x");
      best = direction == minimize ? std::min(best, x) : std::max(best, x);
      study.tell(trial, x);
    }
    CHECK(study.best()->value == best);
    CHECK(study.best()->parameters.get<double>("x") == best);
    CHECK(study.asked() == 50);
  };

  run(minimize);
  run(maximize);
}

TEST_CASE("ask and tell: values read directly equal those read from the text", "[tuning][ask_tell]") {
  AskTell study{Random{some_space(), seed(2)}};
  for (int round = 0; round < 200; ++round) {
    const auto trial = study.ask();
    const Parameters text = trial.parameters.to_parameters();
    CHECK(trial.parameters.get<double>("x") == text.get<double>("x"));
    CHECK(trial.parameters.get<int>("units") == text.get<int>("units"));
    CHECK(trial.parameters.get<float>("units") == text.get<float>("units"));
    CHECK(trial.parameters.get<std::uint8_t>("batch") == text.get<std::uint8_t>("batch"));
    CHECK(trial.parameters.get<std::string>("act") == text.get<std::string>("act"));
    CHECK(trial.parameters.get<bool>("deep") == text.get<bool>("deep"));
    CHECK(trial.parameters.get<std::string>("kind/_name") == text.get<std::string>("kind/_name"));
    CHECK(trial.parameters.get<double>("kind/n") == text.get<double>("kind/n"));
    CHECK(trial.parameters.find<double>("kind/n") == text.find<double>("kind/n"));
    CHECK_FALSE(trial.parameters.find<double>("kind/m"));
    CHECK(trial.parameters.text() == text.text());
    std::ostringstream printed;
    printed << trial.parameters;
    CHECK(printed.str() == text.text());
  }
}

TEST_CASE("ask and tell: a wrong name or type is the same error as with text", "[tuning][ask_tell]") {
  AskTell study{Random{some_space(), seed(2)}};
  const auto trial = study.ask();
  const Parameters text = trial.parameters.to_parameters();
  const auto error_of = [](const auto& parameters, auto read) {
    try {
      (void)read(parameters);
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  const auto check_equal = [&](auto read) {
    CHECK_FALSE(error_of(text, read).empty());
    CHECK(error_of(trial.parameters, read) == error_of(text, read));
  };

  check_equal([](const auto& parameters) { return parameters.template get<double>("y"); });
  check_equal([](const auto& parameters) { return parameters.template get<double>("act"); });
  check_equal([](const auto& parameters) { return parameters.template get<int>("x"); });
  check_equal([](const auto& parameters) { return parameters.template get<bool>("batch"); });
  check_equal([](const auto& parameters) { return parameters.template get<std::string>("kind"); });
}

TEST_CASE("ask and tell: a tuner with the mandatory members is enough", "[tuning][ask_tell]") {
  AskTell study{Plain{}, maximize};
  const auto first = study.ask();
  const auto second = study.ask();
  const auto third = study.ask();

  study.tell(second, 5.0);
  study.tell(first, 3.0);
  study.tell_failed(third);

  const std::vector<TrialOutcome>& seen = study.tuner().seen;
  REQUIRE(seen.size() == 3);
  CHECK(study.tuner().direction == maximize);
  CHECK(seen[0].parameter == ParameterId{1});
  CHECK(seen[0].trial == TrialId{2});
  CHECK(seen[0].parameters.text() == R"({"x":1.0})");
  CHECK(seen[0].succeeded());
  CHECK(seen[0].value == 5.0);
  CHECK(seen[2].status == TrialJobStatus::failed);
  CHECK_FALSE(seen[2].value);
  CHECK(study.best()->id == ParameterId{1});

  SECTION("and may have nothing more to suggest") {
    CHECK_FALSE(study.try_ask());
    CHECK_THROWS_AS(study.ask(), Error);
    CHECK(study.asked() == 3);
  }
}

TEST_CASE("ask and tell: a result that is not finite counts as a failure", "[tuning][ask_tell]") {
  AskTell study{Plain{}};
  study.tell(study.ask(), std::numeric_limits<double>::quiet_NaN());
  study.tell(study.ask(), std::numeric_limits<double>::infinity());

  CHECK_FALSE(study.best());
  REQUIRE(study.tuner().seen.size() == 2);
  CHECK(study.tuner().seen[1].status == TrialJobStatus::failed);
}

TEST_CASE("ask and tell: a second result for one suggestion is refused", "[tuning][ask_tell]") {
  AskTell study{Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}};
  AskTell other{Random{SearchSpace{uniform("x", 0.0, 1.0)}, seed(1)}};
  const auto trial = study.ask();
  study.tell(trial, 1.0);

  CHECK_THROWS_WITH(study.tell(trial, 0.0), "suggestion 0 has a result already");
  CHECK_THROWS_WITH(study.tell_failed(trial), "suggestion 0 has a result already");
  CHECK_THROWS_WITH(other.tell(trial, 0.0), "suggestion 0 is not of this study");
  CHECK(study.best()->value == 1.0);
}

TEST_CASE("ask and tell: a grid is asked until it is used up", "[tuning][ask_tell]") {
  AskTell study{Grid{SearchSpace{randint("n", 0, 10)}}};
  int rounds = 0;
  while (const auto trial = study.try_ask()) {
    study.tell(*trial, std::abs(trial->parameters.get<int>("n") - 6));
    ++rounds;
  }
  CHECK(rounds == 10);
  CHECK(study.best()->parameters.get<int>("n") == 6);
}

TEST_CASE("ask and tell: a space that the tuner cannot search is refused at once", "[tuning][ask_tell]") {
  CHECK_THROWS_AS(AskTell{Grid{}}, ConfigError);
}

}  // namespace
}  // namespace nni::tuning
