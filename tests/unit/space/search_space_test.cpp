#include "support/catch.hpp"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <nni/space/search_space.hpp>

namespace nni {
namespace {

SearchSpace every_type() {
  return {
      choice("kind", {"a", "b"}),
      choice("mixed", {1, 2.5, "three", true}),
      randint("n", 1, 10),
      uniform("x", -5.0, 5.0),
      quniform("units", 8, 256, 8),
      loguniform("lr", 1e-4, 1e-1),
      qloguniform("steps", 1, 1000, 1),
      normal("shift", 0.0, 1.0),
      qnormal("turn", 0.0, 90.0, 15.0),
      lognormal("scale", 0.0, 0.5),
      qlognormal("depth", 1.0, 0.5, 1.0),
      choice("optimizer",
             {branch("sgd", {uniform("momentum", 0.0, 1.0)}),
              branch("adam", {loguniform("epsilon", 1e-9, 1e-2),
                              choice("decay", {branch("step", {randint("every", 1, 5)}), branch("none")})}),
              branch("plain")})};
}

std::vector<std::string> lines(const std::vector<Problem>& problems) {
  std::vector<std::string> result;
  for (const Problem& problem : problems) result.push_back(problem.key + ": " + problem.reason);
  return result;
}

template <class Make>
std::vector<std::string> problems_of(Make make) {
  try {
    (void)make();
  } catch (const ConfigError& error) {
    return lines(error.problems());
  }
  return {};
}

std::vector<std::string> problems_of_json(const char* text) {
  return problems_of([text] { return SearchSpace::from_json(text); });
}

using Lines = std::vector<std::string>;

TEST_CASE("search space: every type is written in NNI's form", "[core][search_space]") {
  const std::string text = every_type().to_json();

  const boost::json::object written = boost::json::parse(text).as_object();

  const auto spec = [&written](const char* name) { return boost::json::serialize(written.at(name)); };
  CHECK(written.size() == 12);
  CHECK(spec("kind") == R"({"_type":"choice","_value":["a","b"]})");
  CHECK(spec("mixed") == R"({"_type":"choice","_value":[1,2.5E0,"three",true]})");
  CHECK(spec("n") == R"({"_type":"randint","_value":[1,10]})");
  CHECK(spec("x") == R"({"_type":"uniform","_value":[-5E0,5E0]})");
  CHECK(spec("units") == R"({"_type":"quniform","_value":[8E0,2.56E2,8E0]})");
  CHECK(spec("steps") == R"({"_type":"qloguniform","_value":[1E0,1E3,1E0]})");
  CHECK(spec("shift") == R"({"_type":"normal","_value":[0E0,1E0]})");
  CHECK(spec("turn") == R"({"_type":"qnormal","_value":[0E0,9E1,1.5E1]})");
  CHECK(spec("scale") == R"({"_type":"lognormal","_value":[0E0,5E-1]})");
  CHECK(spec("depth") == R"({"_type":"qlognormal","_value":[1E0,5E-1,1E0]})");
  CHECK(written.at("optimizer") == boost::json::parse(R"({"_type":"choice","_value":[
            {"_name":"sgd","momentum":{"_type":"uniform","_value":[0.0,1.0]}},
            {"_name":"adam","epsilon":{"_type":"loguniform","_value":[1e-9,1e-2]},
             "decay":{"_type":"choice","_value":[{"_name":"step","every":{"_type":"randint","_value":[1,5]}},{"_name":"none"}]}},
            {"_name":"plain"}]})"));
}

TEST_CASE("search space: what is written reads back as an equal space", "[core][search_space]") {
  const SearchSpace space = every_type();
  const SearchSpace again = SearchSpace::from_json(space.to_json());

  CHECK(again == space);
  CHECK(again.axes().size() == space.axes().size());
  CHECK(SearchSpace::from_json("{}") == SearchSpace());
}

TEST_CASE("search space: axes are flat, a choice before what depends on it", "[core][search_space]") {
  const SearchSpace space = every_type();
  std::vector<std::string> paths;
  for (const Axis& axis : space.axes()) paths.push_back(axis.path);

  CHECK(std::vector<std::string>(paths.begin() + 11, paths.end()) ==
        std::vector<std::string>{
            "optimizer", "optimizer/momentum", "optimizer/epsilon", "optimizer/decay", "optimizer/decay/every"});
  CHECK(space.axes()[11].end == 16);
  CHECK(space.axes()[13].parent == 11);
  CHECK(space.axes()[13].branch == 1);
  CHECK(space.axes()[15].parent == 14);
  CHECK(space.axes()[0].parent == Axis::no_parent);
}

TEST_CASE("search space: a point is written as the trial sees it, nested choices as objects with a _name",
          "[core][search_space]") {
  const SearchSpace space{uniform("x", 0.0, 2.0), quniform("q", 8, 64, 8), randint("n", 0, 9), choice("c", {"a", "b"}),
                          choice("kind", {branch("conv", {randint("width", 1, 4)}), branch("none")})};
  Point point;

  space.point_at(std::vector<double>{0.5, 0.5, 0.5, 0.9, 0.1, 0.9}, point);
  CHECK(space.to_parameters(point).text() == R"({"x":1.0,"q":32.0,"n":4,"c":"b","kind":{"_name":"conv","width":3}})");

  space.point_at(std::vector<double>{0.5, 0.5, 0.5, 0.9, 0.9, 0.9}, point);
  CHECK(space.to_parameters(point).text() == R"({"x":1.0,"q":32.0,"n":4,"c":"b","kind":{"_name":"none"}})");
}

TEST_CASE("search space: parameters are read back to the point that they came from", "[core][search_space]") {
  const SearchSpace space{quniform("q", 0, 1, 0.1), randint("n", 0, 9), choice("c", {1, 2.5, "x", true}),
                          choice("kind", {branch("conv", {randint("width", 1, 4)}), branch("none")})};
  const auto read = [&space](const char* text) { return space.to_point(Parameters(text)); };

  const Point point = read(R"({"q":0.30000000000000004,"n":3,"c":"x","kind":{"_name":"conv","width":2}})").value();
  CHECK(point[2] == 2.0);
  CHECK(point[4] == 2.0);
  CHECK(std::isnan(read(R"({"q":0.3,"n":3.0,"c":2.5,"kind":{"_name":"none"},"more":1})").value()[4]));
  CHECK(read(R"({"q":0.3,"n":3,"c":1.0,"kind":{"_name":"none"}})").value()[2] == 0.0);
  CHECK(read(R"({"q":0.3,"n":3,"c":true,"kind":{"_name":"none"}})").value()[2] == 3.0);

  CHECK_FALSE(read(R"({"q":0.3,"n":3,"c":2,"kind":{"_name":"none"}})"));
  CHECK_FALSE(read(R"({"q":0.35,"n":3,"c":1,"kind":{"_name":"none"}})"));
  CHECK_FALSE(read(R"({"q":0.3,"n":9,"c":1,"kind":{"_name":"none"}})"));
  CHECK_FALSE(read(R"({"q":0.3,"n":"3","c":1,"kind":{"_name":"none"}})"));
  CHECK_FALSE(read(R"({"q":0.3,"n":3,"c":1,"kind":{"_name":"conv"}})"));
  CHECK_FALSE(read(R"({"q":0.3,"n":3,"c":1,"kind":"none"})"));
  CHECK_FALSE(read(R"({"q":0.3,"n":3,"c":1})"));
  CHECK_FALSE(read("[]"));
  CHECK_FALSE(read("nonsense"));
}

TEST_CASE("search space: a finite space counts and numbers its configurations", "[core][search_space]") {
  const SearchSpace space{
      choice("c", {"a", "b"}),
      choice("kind", {branch("conv", {randint("width", 1, 4), quniform("q", 2, 10, 5)}), branch("none"),
                      branch("pool", {choice("size", {2, 3})})})};
  REQUIRE(space.size() == 2 * (3 * 3 + 1 + 2));

  std::set<std::string> texts;
  for (std::uint64_t index = 0; index < *space.size(); ++index) {
    const Point point = space.configuration(index);
    CHECK(space.index_of(point) == index);
    texts.insert(space.to_parameters(point).text());
  }
  CHECK(texts.size() == *space.size());
}

TEST_CASE("search space: one dimension without end makes the space infinite", "[core][search_space]") {
  CHECK_FALSE(SearchSpace{uniform("x", 0, 1)}.size());
  CHECK_FALSE(SearchSpace{qnormal("x", 0, 1, 1)}.size());
  CHECK_FALSE(SearchSpace{choice("k", {branch("a"), branch("b", {normal("x", 0, 1)})})}.size());
  CHECK_FALSE(SearchSpace{randint("a", 0, 1 << 30), randint("b", 0, 1 << 30)}.size());
  CHECK(SearchSpace{randint("a", 0, 1 << 26), randint("b", 0, 1 << 26)}.size() == std::uint64_t{1} << 52);
  CHECK(SearchSpace().size() == 1);
}

TEST_CASE("search space: options of a choice may come from a container", "[core][search_space]") {
  const std::vector<std::string> names{"a", "b"};
  const std::vector<int> sizes{16, 32};

  CHECK(SearchSpace{choice("k", names), choice("s", sizes)} ==
        SearchSpace{choice("k", {"a", "b"}), choice("s", {16, 32})});
}

TEST_CASE("search space: everything that is wrong in code is reported at once, with key, value and remedy",
          "[core][search_space]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto problems = problems_of([nan] {
    return SearchSpace{
        uniform("x", 5.0, -5.0),       loguniform("lr", 0.0, 0.1),
        quniform("q", 0, 1, 0),        randint("n", 3, 3),
        normal("z", 0.0, -1.0),        uniform("x", 0.0, 1.0),
        uniform("y", nan, 1.0),        choice("c", std::vector<int>{}),
        choice("k", {1, branch("b")}), choice("m", {branch("a", {uniform("w", 1.0, 0.5)}), branch("a")}),
        uniform("", 0.0, 1.0)};
  });

  CHECK(
      problems ==
      Lines{
          "space.x.max: is -5.0, but must be greater than min, which is 5.0",
          "space.lr.min: is 0.0, but must be greater than 0, because loguniform takes its logarithm",
          "space.q.q: is 0.0, but must be greater than 0",
          "space.n.max: is 3, but must be greater than min, which is 3; max itself is excluded",
          "space.z.sigma: is -1.0, but must be greater than 0", "space.x: is specified twice; names must be unique",
          "space.y.min: is NaN, but must be a finite number", "space.c: is a choice without options; give at least one",
          "space.k._value[1]: is \"b\", a branch; the options of one choice are either all branches or all plain "
          "values",
          "space.m.a.w.max: is 0.5, but must be greater than min, which is 1.0",
          "space.m._value[1]: is a second branch named \"a\"; names of branches must be unique",
          "space: has a dimension without a name"});
}

TEST_CASE("search space: an option that a choice has already is refused", "[core][search_space]") {
  const auto in_code = problems_of([] {
    return SearchSpace{choice("c", {"a", "b", "a"}), choice("n", {1, 2.0, 1.0}), choice("m", {1, "1", true, "true"})};
  });
  const auto in_json = problems_of_json(R"({"c": {"_type": "choice", "_value": [0.1, 0.2, 1e-1]}})");

  CHECK(in_code == Lines{"space.c._value[2]: is a second option \"a\"; values must be unique",
                         "space.n._value[2]: is a second option 1.0; values must be unique"});
  CHECK(in_json == Lines{"space.c._value[2]: is a second option 0.1; values must be unique"});
}

TEST_CASE("search space: everything that is wrong in JSON is reported at once, with key, value and remedy",
          "[core][search_space]") {
  const auto problems = problems_of_json(R"({
    "a": 3,
    "b": {"_type": "uniformly", "_value": [0, 1]},
    "c": {"_value": [0, 1]},
    "d": {"_type": "uniform"},
    "e": {"_type": "uniform", "_value": 7},
    "f": {"_type": "quniform", "_value": [0, 1]},
    "g": {"_type": "uniform", "_value": ["0", 1]},
    "h": {"_type": "randint", "_value": [0.5, 3]},
    "i": {"_type": "choice", "_value": [1, null, {"name": "x"}]},
    "j": {"_type": "choice", "_value": [{"_name": "in", "w": {"_type": "foo", "_value": []}}]},
    "k": {"_type": "loguniform", "_value": [-1, 2]}
  })");
  const std::string types =
      "one of choice, randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, lognormal, qlognormal";

  CHECK(problems ==
        Lines{"space.a: is 3, but must be an object with \"_type\" and \"_value\"",
              "space.b._type: is \"uniformly\", but must be " + types, "space.c._type: is missing; give " + types,
              "space.d._value: is missing; give a list", "space.e._value: is 7, but must be a list",
              "space.f._value: is [0,1], but quniform needs [min, max, q]",
              "space.g._value[0]: is \"0\", but uniform needs [min, max] of numbers",
              "space.h._value[0]: is 0.5, but randint needs [min, max] of integers",
              "space.i._value[1]: is null; an option is a number, a string, true, false, or an object with a \"_name\"",
              "space.i._value[2]: is {\"name\":\"x\"}; an option is a number, a string, true, false, or an object with "
              "a \"_name\"",
              "space.j.in.w._type: is \"foo\", but must be " + types,
              "space.k.min: is -1.0, but must be greater than 0, because loguniform takes its logarithm"});
}

TEST_CASE("search space: text that is no JSON object is refused", "[core][search_space]") {
  CHECK(problems_of_json("[1]") ==
        Lines{"space: is [1], but must be an object: {\"name\": {\"_type\": ..., \"_value\": [...]}}"});
  REQUIRE(problems_of_json("{").size() == 1);
  CHECK(problems_of_json("{").front().substr(0, 18) == "space: is not JSON");
  CHECK(problems_of([] { return SearchSpace::from_json(R"({"x": 1})", "searchSpace"); }).front().substr(0, 13) ==
        "searchSpace.x");
}

TEST_CASE("search space: the key that holds a branch is not free for a dimension", "[core][search_space]") {
  CHECK(problems_of([] { return SearchSpace{choice("k", {branch("a", {uniform("_name", 0, 1)})})}; }) ==
        Lines{"space.k.a._name: is the key that holds the branch; give the dimension another name"});
}

}  // namespace
}  // namespace nni
