#include "support/catch.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nni/core/random.hpp>
#include <nni/testing/tuner_conformance.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

using namespace nni;

namespace {

enum class Fault {
  none,
  wrong_space,
  fresh_numbers,
  ends_for_a_moment,
  wants_a_value,
  tires_of_failures,
  wants_order,
  keeps_old_space,
  counts_calls
};

// Draws from the space; each fault breaks one promise.
class Drawing {
 public:
  using role = role::tuner;

  explicit Drawing(Fault fault = Fault::none) : fault_(fault) {}

  void start(const SearchSpace& space, const Objectives&) {
    space_ = fault_ == Fault::wrong_space ? SearchSpace{uniform("unknown", 0.0, 1.0)} : space;
  }
  void update_search_space(const SearchSpace& space) {
    if (fault_ != Fault::keeps_old_space) space_ = space;
  }
  std::optional<Parameters> generate(ParameterId id) {
    ++calls_;
    if (tired_) return std::nullopt;
    if (fault_ == Fault::ends_for_a_moment && space_.size() && calls_ % 2 == 1 && calls_ > 6) return std::nullopt;
    const std::uint64_t number = fault_ == Fault::counts_calls ? calls_ : id.value;
    const Seed from = fault_ == Fault::fresh_numbers ? random_seed() : seed(5);
    CounterRandom random(from, ParameterId{number});
    std::vector<double> positions(space_.axes().size());
    for (double& position : positions) position = random.uniform();
    Point point;
    space_.point_at(positions, point);
    return space_.to_parameters(point);
  }
  void observe(const TrialOutcome& outcome) {
    if (fault_ == Fault::wants_a_value) static_cast<void>(outcome.value.value());
    if (fault_ == Fault::tires_of_failures) tired_ = tired_ || !outcome.value;
    if (fault_ == Fault::wants_order)
      tired_ = tired_ || outcome.parameter.value < std::exchange(last_, outcome.parameter.value);
  }

 private:
  Fault fault_;
  SearchSpace space_;
  std::uint64_t calls_ = 0;
  std::uint64_t last_ = 0;
  bool tired_ = false;  // it suggests nothing any more
};

std::string seen_of(Fault fault) {
  return testing::check_tuner<Drawing>([fault] { return Drawing(fault); }).to_string();
}

template <class T>
void keeps_its_promises(const std::function<T()>& make) {
  const testing::ConformanceReport report = testing::check_tuner<T>(make);
  INFO(report.to_string());
  CHECK(report.passed());
}

}  // namespace

TEST_CASE("random search keeps the promises of a tuner", "[tuning][conformance]") {
  keeps_its_promises<tuning::Random>([] { return tuning::Random({}, seed(7)); });
}

TEST_CASE("grid search keeps the promises of a tuner", "[tuning][conformance]") {
  keeps_its_promises<tuning::Grid>([] { return tuning::Grid(); });
}

TEST_CASE("the Parzen estimator keeps the promises of a tuner", "[tuning][conformance]") {
  keeps_its_promises<tuning::Tpe>([] { return tuning::Tpe({}, seed(7)); });
}

TEST_CASE("the suite names the promise that a tuner breaks", "[tuning][conformance]") {
  CHECK_THAT(seen_of(Fault::none), Catch::Contains("checks passed"));
  CHECK_THAT(seen_of(Fault::wrong_space), Catch::Contains("promise 1 broken"));
  CHECK_THAT(seen_of(Fault::fresh_numbers), Catch::Contains("promise 2 broken"));
  CHECK_THAT(seen_of(Fault::ends_for_a_moment), Catch::Contains("promise 3 broken"));
  CHECK_THAT(seen_of(Fault::wants_a_value), Catch::Contains("promise 4 broken"));
  CHECK_THAT(seen_of(Fault::tires_of_failures),
             Catch::Contains("promise 4 broken: it continues after trials that failed, were stopped or have no value"));
  CHECK_THAT(seen_of(Fault::wants_order), Catch::Contains("promise 4 broken: it continues after results in any order"));
  CHECK_THAT(seen_of(Fault::keeps_old_space), Catch::Contains("promise 5 broken"));
  CHECK_THAT(seen_of(Fault::counts_calls), Catch::Contains("promise 6 broken"));
}
