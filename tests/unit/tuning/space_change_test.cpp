// What tuners remember when the search space changes, and when an earlier one returns.

#include "support/catch.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni::tuning {
namespace {

TrialOutcome outcome(std::uint64_t id, const Parameters& parameters, std::optional<double> value,
                     TrialJobStatus status = TrialJobStatus::succeeded) {
  TrialOutcome result;
  result.trial = TrialId{id + 1};
  result.parameter = ParameterId{id};
  result.parameters = parameters;
  result.status = status;
  result.value = value;
  return result;
}

template <class T>
T make(const SearchSpace& space) {
  if constexpr (std::is_same_v<T, Grid>)
    return Grid{space};
  else if constexpr (std::is_same_v<T, Tpe>)
    return Tpe{space, {.startup_trials = 3}, seed(7)};
  else
    return Random{space, seed(7)};
}

/// An experiment whose trials end at once, each with a value that follows from its text.
template <class T>
class Study {
 public:
  explicit Study(const SearchSpace& space) : tuner_(make<T>(space)) { tuner_.start(space, Objectives(minimize)); }

  /// The next suggestion; nothing when there is none.
  std::optional<std::string> next() {
    const std::optional<Parameters> parameters = tuner_.generate(ParameterId{history_.size()});
    if (!parameters) return std::nullopt;
    double value = 0.0;
    for (const char letter : parameters->text()) value = 0.9 * value + 0.1 * letter;
    history_.push_back(outcome(history_.size(), *parameters, value));
    tuner_.observe(history_.back());
    return parameters->text();
  }

  /// Up to so many suggestions; each of them must be new.
  std::size_t next(std::size_t count) {
    for (std::size_t number = 0; number < count; ++number) {
      const std::optional<std::string> text = next();
      if (!text) return number;
      INFO("suggestion " << history_.size() - 1 << ": " << *text);
      REQUIRE(seen_.insert(*text).second);
    }
    return count;
  }

  void change_to(const SearchSpace& space) { tuner_.update_search_space(space); }

  /// Goes on in another process: a new tuner is told all that happened.
  void resume_in(const SearchSpace& space) {
    tuner_ = make<T>(space);
    tuner_.start(space, Objectives(minimize));
    for (const TrialOutcome& past : history_) tuner_.observe(past);
  }

 private:
  T tuner_;
  std::vector<TrialOutcome> history_;
  std::set<std::string> seen_;
};

// Six configurations.
const SearchSpace& small() {
  static const SearchSpace space{randint("n", 0, 3), choice("c", {"a", "b"})};
  return space;
}
const SearchSpace& other() {
  static const SearchSpace space{choice("d", {1, 2, 3})};
  return space;
}
// Nothing of it is ever used up.
const SearchSpace& large() {
  static const SearchSpace space{uniform("x", 0.0, 1.0)};
  return space;
}

TEMPLATE_TEST_CASE("a space that returns has only what was not suggested before", "[tuning][space_change]", Random,
                   Grid, Tpe) {
  const bool by_a_resume = GENERATE(false, true);
  CAPTURE(by_a_resume);
  Study<TestType> study{small()};
  REQUIRE(study.next(4) == 4);

  SECTION("after a small one") { study.change_to(other()); }
  SECTION("after a large one") { study.change_to(large()); }
  SECTION("after several") {
    study.change_to(large());
    study.next(2);
    study.change_to(other());
  }
  SECTION("after one with a part of its dimensions") { study.change_to(SearchSpace{randint("n", 0, 3)}); }
  SECTION("after a resume with another one") { study.resume_in(other()); }
  SECTION("after a resume with a large one") { study.resume_in(large()); }
  SECTION("after a resume with a part of its dimensions") { study.resume_in(SearchSpace{randint("n", 0, 3)}); }
  study.next(1);

  if (by_a_resume)
    study.resume_in(small());
  else
    study.change_to(small());
  CHECK(study.next(10) == 2);
}

TEMPLATE_TEST_CASE("what was suggested from a large space is left out of a small one", "[tuning][space_change]", Random,
                   Grid, Tpe) {
  // Half of the wide space is in the narrow one, so some of so many suggestions are.
  const SearchSpace wide{randint("n", 0, 8), choice("rest", {branch("none"), branch("some", {uniform("x", 0, 1)})})};
  const SearchSpace narrow{randint("n", 0, 8), choice("rest", {branch("none"), branch("few", {randint("x", 0, 1)})})};
  Study<TestType> study{wide};
  std::set<std::string> fitting;
  for (int number = 0; number < 60; ++number)
    if (const std::string text = study.next().value(); narrow.to_point(Parameters(text))) fitting.insert(text);
  REQUIRE(fitting.size() > 2);

  SECTION("while it runs") {}
  SECTION("after a resume") { study.resume_in(wide); }
  study.change_to(narrow);

  CHECK(study.next(100) == *narrow.size() - fitting.size());
}

TEMPLATE_TEST_CASE("a resume makes no difference, however the space changed", "[tuning][space_change]", Random, Grid,
                   Tpe) {
  const std::vector<SearchSpace> spaces{
      small(),
      large(),
      SearchSpace{uniform("x", 0.0, 0.5), randint("n", 0, 2)},
      small(),
      SearchSpace{randint("n", 1, 5)},
      large(),
      SearchSpace{choice("c", {"b", "z"}), randint("n", 0, 9)},
      small()};
  for (std::size_t at = 1; at < spaces.size(); ++at) {
    Study<TestType> lived{spaces.front()};
    Study<TestType> resumed{spaces.front()};
    for (std::size_t index = 0; index < spaces.size(); ++index) {
      if (index != 0) lived.change_to(spaces[index]);
      if (index == at)
        resumed.resume_in(spaces[index]);
      else if (index != 0)
        resumed.change_to(spaces[index]);
      for (std::size_t number = 0; number < (index % 3 == 0 ? 2U : 7U); ++number) {
        INFO("resumed in space " << at << ", now in " << index << ", its suggestion " << number);
        REQUIRE(lived.next() == resumed.next());
      }
    }
  }
}

TEST_CASE("tpe: results count again when their space returns", "[tuning][space_change][tpe]") {
  const SearchSpace line{uniform("x", 0.0, 1.0)};
  const SearchSpace elsewhere{uniform("y", 0.0, 1.0)};
  Tpe stayed{line, seed(3)};
  Tpe returned{line, seed(3)};
  const auto both = [&](auto what) {
    what(stayed);
    what(returned);
  };
  both([](Tpe& tuner) {
    for (std::uint64_t id = 0; id < 40; ++id) {
      const Parameters parameters = tuner.generate(ParameterId{id}).value();
      const double x = parameters.get<double>("x");
      tuner.observe(outcome(id, parameters, (x - 0.2) * (x - 0.2)));
    }
  });
  const Parameters flying = stayed.generate(ParameterId{40}).value();
  REQUIRE(returned.generate(ParameterId{40}).value() == flying);

  SECTION("with those of trials that were in flight, and ended meanwhile") {
    returned.update_search_space(elsewhere);
    both([&](Tpe& tuner) { tuner.observe(outcome(40, flying, 0.0)); });
    returned.update_search_space(line);
  }
  SECTION("and trials that are still in flight are expected again") {
    returned.update_search_space(elsewhere);
    returned.update_search_space(line);
    both([&](Tpe& tuner) { tuner.observe(outcome(40, flying, 0.0)); });
  }
  SECTION("and trials in flight that were adopted elsewhere are expected too") {
    Tpe resumed{elsewhere, seed(3)};
    for (std::uint64_t id = 0; id < 40; ++id) {
      const Parameters parameters = Tpe{line, seed(3)}.generate(ParameterId{id}).value();
      const TrialOutcome same = outcome(id, parameters, parameters.get<double>("x"));
      resumed.observe(same);
    }
    Tpe same{line, seed(3)};
    for (std::uint64_t id = 0; id < 40; ++id) {
      const Parameters parameters = Tpe{line, seed(3)}.generate(ParameterId{id}).value();
      same.observe(outcome(id, parameters, parameters.get<double>("x")));
    }
    same.adopt(ParameterId{40}, flying);
    resumed.adopt(ParameterId{40}, flying);
    resumed.update_search_space(line);
    stayed = std::move(same);
    returned = std::move(resumed);
    CHECK(stayed.generate(ParameterId{99}) == returned.generate(ParameterId{99}));
    both([&](Tpe& tuner) { tuner.observe(outcome(40, flying, 0.0)); });
  }

  for (std::uint64_t id = 41; id < 50; ++id)
    CHECK(stayed.generate(ParameterId{id}) == returned.generate(ParameterId{id}));
}

TEST_CASE("tpe: what was cancelled is not suggested again from a space that returns", "[tuning][space_change][tpe]") {
  Tpe tuner{other(), seed(1)};
  std::set<std::string> texts;
  for (std::uint64_t id = 0; id < 2; ++id) {
    const Parameters parameters = tuner.generate(ParameterId{id}).value();
    texts.insert(parameters.text());
    tuner.observe(outcome(id, parameters, std::nullopt, TrialJobStatus::user_canceled));
  }

  tuner.update_search_space(large());
  tuner.update_search_space(other());

  texts.insert(tuner.generate(ParameterId{2}).value().text());
  CHECK(texts.size() == 3);
  CHECK_FALSE(tuner.generate(ParameterId{3}));
}

TEST_CASE("tpe: a trial that ran with something else than was adopted counts with what it ran with",
          "[tuning][space_change][tpe]") {
  Tpe tuner{other(), seed(1)};
  tuner.adopt(ParameterId{0}, Parameters(R"({"n":1,"c":"a"})"));
  tuner.observe(outcome(0, Parameters(R"({"d":2})"), 1.0));
  std::set<std::string> texts;
  for (std::uint64_t id = 1; id < 3; ++id) texts.insert(tuner.generate(ParameterId{id}).value().text());

  CHECK(texts == std::set<std::string>{R"({"d":1})", R"({"d":3})"});
  CHECK_FALSE(tuner.generate(ParameterId{3}));
}

}  // namespace
}  // namespace nni::tuning
