#include "support/catch.hpp"

#include <set>
#include <string>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/tuning/grid.hpp>

namespace nni::tuning {
namespace {

std::vector<std::string> walk(Grid& tuner, std::uint64_t first, std::uint64_t count) {
  std::vector<std::string> texts;
  for (std::uint64_t id = first; id < first + count; ++id) {
    const auto parameters = tuner.generate(ParameterId{id});
    if (!parameters) break;
    texts.push_back(parameters->text());
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST_CASE("grid: choices and integers are tried completely, the last dimension first", "[tuning][grid]") {
  Grid tuner{SearchSpace{choice("c", {"a", "b"}), randint("n", 1, 4)}};

  CHECK(walk(tuner, 0, 100) == Texts{R"({"c":"a","n":1})", R"({"c":"a","n":2})", R"({"c":"a","n":3})",
                                     R"({"c":"b","n":1})", R"({"c":"b","n":2})", R"({"c":"b","n":3})"});
  CHECK_FALSE(tuner.generate(ParameterId{6}));
  CHECK_FALSE(tuner.generate(ParameterId{7}));
}

TEST_CASE("grid: a real dimension is halved again and again, its limits excluded", "[tuning][grid]") {
  Grid tuner{SearchSpace{uniform("x", 0.0, 16.0)}};
  std::vector<double> values;
  for (std::uint64_t id = 0; id < 15; ++id) values.push_back(tuner.generate(ParameterId{id})->get<double>("x"));

  CHECK(values == std::vector<double>{8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15});
}

TEST_CASE("grid: a logarithmic dimension is halved on its own scale, a normal one by probability", "[tuning][grid]") {
  Grid logarithmic{SearchSpace{loguniform("x", 1e-4, 1.0)}};
  CHECK(logarithmic.generate(ParameterId{0})->get<double>("x") == Approx(1e-2));
  CHECK(logarithmic.generate(ParameterId{1})->get<double>("x") == Approx(1e-3));
  CHECK(logarithmic.generate(ParameterId{2})->get<double>("x") == Approx(1e-1));

  Grid bell{SearchSpace{normal("x", 5.0, 2.0)}};
  CHECK(bell.generate(ParameterId{0})->get<double>("x") == Approx(5.0));
  CHECK(bell.generate(ParameterId{1})->get<double>("x") == Approx(5.0 - 2.0 * 0.6744897501960817));
}

TEST_CASE("grid: a quantized dimension gives each of its values once", "[tuning][grid]") {
  Grid steps{SearchSpace{quniform("q", 2, 10, 5)}};
  CHECK(walk(steps, 0, 100) == Texts{R"({"q":5.0})", R"({"q":10.0})", R"({"q":2.0})"});

  // The lowest value lies between 2.5 and 2.5: rounding leaves it no room but the limit itself.
  Grid edge{SearchSpace{quniform("q", 2.5, 10, 5)}};
  CHECK(walk(edge, 0, 100) == Texts{R"({"q":5.0})", R"({"q":10.0})", R"({"q":2.5})"});

  Grid fine{SearchSpace{quniform("q", 0, 10, 2.5)}};
  const Texts texts = walk(fine, 0, 100);
  CHECK(texts.size() == 5);
  CHECK(std::set<std::string>(texts.begin(), texts.end()) ==
        std::set<std::string>{R"({"q":0.0})", R"({"q":2.5})", R"({"q":5.0})", R"({"q":7.5})", R"({"q":10.0})"});
}

TEST_CASE("grid: without limits it goes on outwards as far as probabilities are numbers, and then ends",
          "[tuning][grid]") {
  Grid tuner{SearchSpace{qnormal("x", 0.0, 1.0, 4.0)}};
  std::set<double> values;
  for (std::uint64_t id = 0; id < 1000; ++id)
    if (const auto parameters = tuner.generate(ParameterId{id})) values.insert(parameters->get<double>("x"));

  CHECK(values.size() < 30);
  CHECK(*values.begin() < -30.0);
  CHECK(values.count(0.0) == 1);
  CHECK(values.count(8.0) == 1);
}

TEST_CASE("grid: several numeric dimensions are refined together, each new point once", "[tuning][grid]") {
  Grid tuner{SearchSpace{uniform("x", 0.0, 4.0), choice("c", {1, 2})}};

  CHECK(walk(tuner, 0, 6) == Texts{R"({"x":2.0,"c":1})", R"({"x":2.0,"c":2})", R"({"x":1.0,"c":1})",
                                   R"({"x":1.0,"c":2})", R"({"x":3.0,"c":1})", R"({"x":3.0,"c":2})"});

  Grid plane{SearchSpace{uniform("x", 0.0, 1.0), uniform("y", 0.0, 1.0)}};
  const Texts texts = walk(plane, 0, 49);
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == 49);
}

TEST_CASE("grid: only the dimensions of the chosen branch are walked", "[tuning][grid]") {
  Grid tuner{SearchSpace{
      choice("k", {branch("a", {randint("n", 0, 2), choice("s", {"p", "q"})}), branch("b")}), choice("c", {1, 2})}};

  CHECK(walk(tuner, 0, 100) ==
        Texts{R"({"k":{"_name":"a","n":0,"s":"p"},"c":1})", R"({"k":{"_name":"a","n":0,"s":"p"},"c":2})",
              R"({"k":{"_name":"a","n":0,"s":"q"},"c":1})", R"({"k":{"_name":"a","n":0,"s":"q"},"c":2})",
              R"({"k":{"_name":"a","n":1,"s":"p"},"c":1})", R"({"k":{"_name":"a","n":1,"s":"p"},"c":2})",
              R"({"k":{"_name":"a","n":1,"s":"q"},"c":1})", R"({"k":{"_name":"a","n":1,"s":"q"},"c":2})",
              R"({"k":{"_name":"b"},"c":1})", R"({"k":{"_name":"b"},"c":2})"});
}

TEST_CASE("grid: a space in which everything is discrete is tried to the last configuration", "[tuning][grid]") {
  const SearchSpace space{quniform("a", -1, 1, 0.3), qloguniform("b", 1, 100, 7),
                          choice("k", {branch("x", {quniform("c", 0, 5, 1), randint("d", 0, 3)}), branch("y")})};
  Grid tuner{space};
  const Texts texts = walk(tuner, 0, 100'000);

  CHECK(texts.size() == *space.size());
  CHECK(std::set<std::string>(texts.begin(), texts.end()).size() == texts.size());
}

TEST_CASE("grid: a resumed walk goes on behind the last suggestion", "[tuning][grid]") {
  const SearchSpace space{uniform("x", 0.0, 1.0), quniform("q", 0, 10, 2), choice("c", {"a", "b"})};
  Grid lived{space};
  Grid resumed{space};
  const Texts texts = walk(lived, 0, 60);

  CHECK(walk(resumed, 40, 20) == Texts(texts.begin() + 40, texts.end()));

  SECTION("and an earlier one can be asked for again, also at the end") {
    CHECK(walk(resumed, 3, 1) == Texts{texts[3]});
    Grid small{SearchSpace{choice("c", {1, 2, 3})}};
    const Texts all = walk(small, 0, 10);
    CHECK(walk(small, 2, 1) == Texts{all[2]});
    CHECK(walk(small, 0, 10) == all);
  }
}

TEST_CASE("grid: a new space begins a new walk with the next suggestion", "[tuning][grid]") {
  Grid tuner{SearchSpace{choice("c", {1, 2, 3})}};
  REQUIRE(walk(tuner, 0, 2).size() == 2);

  tuner.update_search_space(SearchSpace{choice("d", {"x", "y"})});

  CHECK(walk(tuner, 2, 10) == Texts{R"({"d":"x"})", R"({"d":"y"})"});
}

TEST_CASE("grid: a space without dimensions is refused", "[tuning][grid]") {
  Grid tuner;
  CHECK_THROWS_AS(tuner.start(SearchSpace(), Objectives()), ConfigError);
  CHECK_THROWS_WITH(tuner.update_search_space(SearchSpace()), "space: has no dimensions; a grid needs at least one");
}

}  // namespace
}  // namespace nni::tuning
