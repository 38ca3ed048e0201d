// A search space is read or refused with a `ConfigError`; what was read is written and read again as the same, and points,
// parameters and numbers of configurations lead to each other.
#include "fuzz.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/core/random.hpp>
#include <nni/space/search_space.hpp>

using namespace nni;

namespace {

bool same(const Point& one, const Point& other) {
  bool equal = one.size() == other.size();
  for (std::size_t axis = 0; equal && axis < one.size(); ++axis)
    equal = one[axis] == other[axis] || (std::isnan(one[axis]) && std::isnan(other[axis]));
  return equal;
}

void check_point(const SearchSpace& space, const Point& point) {
  for (std::size_t axis = 0; axis < point.size(); ++axis)
    nni_fuzz::require(std::isnan(point[axis]) || space.axes()[axis].accepts(point[axis]), "a value fits its axis");
  const Parameters parameters = space.to_parameters(point);
  nni_fuzz::require(channel::is_json_text(parameters.text()), "parameters are JSON");
  const auto back = space.to_point(parameters);
  nni_fuzz::require(back && same(*back, point), "parameters lead back to their point");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SearchSpace space;
  try {
    space = SearchSpace::from_json(nni_fuzz::text_of(data, size));
  } catch (const ConfigError& error) {
    nni_fuzz::require(!error.problems().empty() && error.what() != std::string(), "a refusal says why");
    return 0;
  }
  nni_fuzz::require(SearchSpace::from_json(space.to_json()) == space, "a space is read back as it was written");

  CounterRandom random(seed(size), ParameterId{1});
  std::vector<double> positions(space.axes().size());
  Point point;
  for (int draw = 0; draw < 4; ++draw) {
    for (double& position : positions) position = random.uniform();
    space.point_at(positions, point);
    check_point(space, point);
  }
  if (const auto count = space.size()) {
    for (const std::uint64_t index : {std::uint64_t{0}, *count / 2, *count - 1}) {
      const Point configuration = space.configuration(index);
      check_point(space, configuration);
      nni_fuzz::require(space.index_of(configuration) == index, "a configuration leads back to its number");
    }
  }
  return 0;
}
