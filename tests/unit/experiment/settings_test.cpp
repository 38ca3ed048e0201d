#include "support/catch.hpp"

#include <chrono>

#include <nni/experiment/detail/settings.hpp>

using namespace nni;
using namespace std::chrono_literals;
using nni::detail::Settings;

namespace {

SearchSpace narrow() { return {choice("x", {1, 2})}; }
SearchSpace wide() { return {choice("x", {1, 2, 3})}; }
ExperimentOptions first_start() { return {.concurrency = 2, .max_trials = 10, .max_duration = 1h}; }

/// What was in force when an experiment ended that was changed while it ran.
std::string changed() {
  Settings settings(first_start(), narrow());
  settings.in_force.concurrency = 8;
  settings.in_force.max_trials.reset();
  settings.in_force.max_duration = 3h;
  settings.begin_space(wide(), 5);
  settings.paused = true;
  return settings.to_json();
}

}  // namespace

TEST_CASE("settings: the same options leave every change in force", "[experiment][settings]") {
  const Settings settings(changed(), first_start(), narrow(), 7);

  CHECK(settings.in_force.concurrency == 8);
  CHECK_FALSE(settings.in_force.max_trials);
  CHECK(settings.in_force.max_duration == 3h);
  CHECK(settings.space() == wide());
  CHECK(settings.spaces.back().from == 5);
  CHECK(settings.changed_space());
  CHECK(settings.paused);
}

TEST_CASE("settings: an option that was edited wins, and only that one", "[experiment][settings]") {
  ExperimentOptions edited = first_start();
  edited.max_trials = 20;
  edited.max_duration.reset();

  const Settings settings(changed(), edited, narrow(), 7);

  CHECK(settings.in_force.concurrency == 8);
  CHECK(settings.in_force.max_trials == 20);
  CHECK_FALSE(settings.in_force.max_duration);

  SECTION("it stays at the next start with the same options") {
    const Settings next(settings.to_json(), edited, narrow(), 9);
    CHECK(next.in_force.max_trials == 20);
    CHECK(next.in_force.concurrency == 8);
  }
}

TEST_CASE("settings: a space that was edited begins where it is first used", "[experiment][settings]") {
  const SearchSpace other{uniform("y", 0.0, 1.0)};

  const Settings settings(changed(), first_start(), other, 7);

  REQUIRE(settings.spaces.size() == 3);
  CHECK(settings.spaces[0].from == 0);
  CHECK(settings.spaces[2].from == 7);
  CHECK(settings.space() == other);
}

TEST_CASE("settings: a space that was replaced before a trial came from it leaves no trace", "[experiment][settings]") {
  Settings settings(first_start(), narrow());
  settings.begin_space(wide(), 5);
  settings.begin_space(SearchSpace{choice("x", {9})}, 5);
  settings.begin_space(SearchSpace{choice("x", {9})}, 6);

  REQUIRE(settings.spaces.size() == 2);
  CHECK(settings.spaces[1].from == 5);
}

TEST_CASE("settings: records without them, and damaged ones", "[experiment][settings]") {
  const Settings without({}, first_start(), narrow(), 3);
  CHECK(without.in_force.max_trials == 10);
  CHECK_FALSE(without.changed_space());

  CHECK_THROWS_WITH(Settings("{\"given\": 3}", first_start(), narrow(), 3), Catch::Contains("cannot be read"));
  CHECK_THROWS_WITH(Settings("{", first_start(), narrow(), 3), Catch::Contains("cannot be read"));
}

TEST_CASE("settings: the life of an experiment is kept over resumes", "[experiment][settings]") {
  Settings first(first_start(), narrow());
  CHECK(Settings(first.to_json(), first_start(), narrow(), 0).life.empty());  // recorded by an earlier version

  first.life = "random";

  CHECK(Settings(first.to_json(), first_start(), narrow(), 0).life == "random");
}
