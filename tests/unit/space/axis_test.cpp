#include "support/catch.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <nni/space/search_space.hpp>

namespace nni {
namespace {

Axis axis_of(Dimension dimension) { return SearchSpace{std::move(dimension)}.axes().front(); }

std::vector<double> values_of(const Axis& axis) {
  std::vector<double> values;
  for (std::uint64_t index = 0; index < axis.count; ++index) values.push_back(axis.nth_value(index));
  return values;
}

TEST_CASE("axis: bounded types reach from limit to limit", "[core][axis]") {
  const Axis plain = axis_of(uniform("x", -5.0, 5.0));
  CHECK(plain.value_at(0.0) == -5.0);
  CHECK(plain.value_at(0.25) == -2.5);
  CHECK(plain.value_at(1.0) == 5.0);

  const Axis logarithmic = axis_of(loguniform("lr", 1e-4, 1.0));
  CHECK(logarithmic.value_at(0.0) == Approx(1e-4));
  CHECK(logarithmic.value_at(0.5) == Approx(1e-2));
  CHECK(logarithmic.value_at(1.0) == 1.0);
  CHECK(logarithmic.value_at(0.0) >= 1e-4);
}

TEST_CASE("axis: integers leave out the upper limit", "[core][axis]") {
  const Axis axis = axis_of(randint("n", -2, 3));

  CHECK(values_of(axis) == std::vector<double>{-2, -1, 0, 1, 2});
  CHECK(axis.value_at(0.0) == -2.0);
  CHECK(axis.value_at(0.99) == 2.0);
  CHECK(axis.value_at(1.0) == 2.0);
}

TEST_CASE("axis: quantized values are multiples of q or limits, as NNI has them", "[core][axis]") {
  CHECK(values_of(axis_of(quniform("q", 2, 10, 5))) == std::vector<double>{2, 5, 10});
  CHECK(values_of(axis_of(quniform("q", 0, 10, 2.5))) == std::vector<double>{0, 2.5, 5, 7.5, 10});
  CHECK(values_of(axis_of(qloguniform("q", 1, 8, 3))) == std::vector<double>{1, 3, 6, 8});
}

TEST_CASE("axis: rounding goes half to even", "[core][axis]") {
  const Axis axis = axis_of(quniform("q", 0, 10, 1));

  CHECK(axis.value_at(0.25) == 2.0);
  CHECK(axis.value_at(0.35) == 4.0);
  CHECK(axis.value_at(0.05) == 0.0);
}

TEST_CASE("axis: normal types have no limits, and a logarithmic one may be rounded to 0", "[core][axis]") {
  const Axis bell = axis_of(normal("x", 10.0, 2.0));
  CHECK(bell.value_at(0.5) == Approx(10.0));
  CHECK(bell.value_at(0.975) == Approx(13.919928));

  const Axis lognormal_axis = axis_of(lognormal("x", 0.0, 1.0));
  CHECK(lognormal_axis.value_at(0.5) == Approx(1.0));
  CHECK(lognormal_axis.value_at(1e-6) > 0.0);

  CHECK(axis_of(qnormal("x", 0.0, 1.0, 0.5)).value_at(0.975) == 2.0);
  CHECK(axis_of(qlognormal("x", 0.0, 1.0, 1.0)).value_at(0.01) == 0.0);

  for (const Dimension& extreme :
       {normal("x", 0.0, 1e300), qnormal("x", 0.0, 1e300, 1e-3), lognormal("x", 0.0, 500.0)}) {
    CHECK(std::isfinite(axis_of(extreme).value_at(0.0)));
    CHECK(std::isfinite(axis_of(extreme).value_at(1.0)));
    CHECK(std::isfinite(axis_of(extreme).value_at(1e-16)));
    CHECK(std::isfinite(axis_of(extreme).value_at(0.999999)));
  }
}

TEST_CASE("axis: the position of a value leads back to it, for every type", "[core][axis]") {
  const std::vector<Dimension> dimensions{
      uniform("a", -5.0, 7.0),        loguniform("b", 1e-6, 10.0),
      quniform("c", 0.3, 9.1, 0.7),   qloguniform("d", 1.0, 1000.0, 3.0),
      randint("e", -3, 12),           normal("f", 2.0, 3.0),
      qnormal("g", 2.0, 3.0, 0.5),    lognormal("h", 0.0, 1.5),
      qlognormal("i", 1.0, 1.0, 2.0), choice("j", {1, 2, 3, 4, 5})};
  for (const Dimension& dimension : dimensions) {
    const Axis axis = axis_of(dimension);
    INFO(dimension.name);
    for (double position = 0.0005; position < 1.0; position += 0.0125) {
      const double value = axis.value_at(position);
      CHECK(axis.accepts(value));
      const double back = axis.position_of(value);
      CHECK(back >= 0.0);
      CHECK(back <= 1.0);
      CHECK(axis.value_at(back) == Approx(value));
      if (axis.count != 0) CHECK(axis.nth_value(axis.index_of(value)) == value);
    }
  }
}

TEST_CASE("axis: values that the dimension cannot take are not accepted", "[core][axis]") {
  CHECK_FALSE(axis_of(uniform("x", 0.0, 1.0)).accepts(1.5));
  CHECK_FALSE(axis_of(uniform("x", 0.0, 1.0)).accepts(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(axis_of(randint("x", 0, 5)).accepts(5.0));
  CHECK_FALSE(axis_of(randint("x", 0, 5)).accepts(2.5));
  CHECK_FALSE(axis_of(quniform("x", 0, 10, 2)).accepts(3.0));
  CHECK(axis_of(quniform("x", 0, 1, 0.1)).accepts(0.3));
  CHECK(axis_of(quniform("x", 0, 1, 0.1)).accepts(3 * 0.1));
  CHECK_FALSE(axis_of(lognormal("x", 0, 1)).accepts(-1.0));
}

}  // namespace
}  // namespace nni
