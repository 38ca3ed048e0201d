#include "support/rank_test.hpp"
#include "support/catch.hpp"

using nni_test::chance_that_lower;

TEST_CASE("rank test: two equal samples differ by chance in half of all cases", "[support]") {
  const std::vector<double> sample{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

  CHECK(chance_that_lower(sample, sample) == Approx(0.5).margin(0.02));
}

TEST_CASE("rank test: a worked example agrees with other implementations", "[support]") {
  // scipy.stats.mannwhitneyu(a, b, alternative="less", method="asymptotic") gives U = 3.5, p = 0.000252038.
  const std::vector<double> a{1.1, 2.4, 0.3, 1.9, 2.2, 0.7, 1.5, 3.0, 0.9, 2.0};
  const std::vector<double> b{2.6, 3.9, 4.1, 3.3, 2.4, 5.2, 2.9, 4.4, 3.6, 4.8};

  CHECK(chance_that_lower(a, b) == Approx(0.000252038).epsilon(1e-5));
  CHECK(chance_that_lower(b, a) > 0.999);
}

TEST_CASE("rank test: many ties do not make a difference out of nothing", "[support]") {
  const std::vector<double> a{0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
  const std::vector<double> b{0, 0, 0, 0, 0, 1, 1, 1, 1, 1};

  CHECK(chance_that_lower(a, b) == Approx(0.5).margin(0.05));
}
