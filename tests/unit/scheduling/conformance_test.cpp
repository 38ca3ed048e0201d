#include "support/catch.hpp"

#include <map>
#include <string>

#include <nni/scheduling/unlimited.hpp>
#include <nni/testing/scheduler_conformance.hpp>

using namespace nni;

namespace {

// A right scheduler that hands out whole devices; each flag breaks one promise.
struct Faults {
  bool forgets_hold = false;
  bool forgets_placements = false;
  bool gives_up = false;
  bool says_nothing = false;
  bool invents = false;
  bool changes_its_mind = false;
};

class Devices {
 public:
  using role = role::scheduler;

  explicit Devices(Faults faults = {}) : faults_(faults) {
    static int made = 0;
    number_ = ++made;
  }

  PlacementResult place(const ResourceRequest& want, const ResourceSnapshot& now) {
    const int count = want.gpus.value_or(1);
    bool ever = false;
    for (std::size_t at = 0; at < now.nodes.size(); ++at) {
      const bool backwards = faults_.changes_its_mind && number_ % 2 == 0;
      const Node& node = now.nodes[backwards ? now.nodes.size() - 1 - at : at];
      ever = ever || static_cast<int>(node.gpus.size()) >= count;
      std::vector<int> free;
      for (const GpuDevice& device : node.gpus)
        if (!device.active && taken_[node.name + std::to_string(device.index)] == 0) free.push_back(device.index);
      if (static_cast<int>(free.size()) < count) continue;
      free.resize(static_cast<std::size_t>(count));
      if (faults_.invents && !free.empty()) free.back() += 7;
      Placement placement(node.name);
      placement.gpus = std::move(free);
      if (!faults_.forgets_placements) add(placement, 1);
      return placement;
    }
    if (faults_.says_nothing) return ever ? PlacementResult(Wait{"later"}) : PlacementResult(Impossible{"never"});
    if (ever && !faults_.gives_up) return Wait{"fewer than " + std::to_string(count) + " devices are free"};
    return Impossible{"no machine has " + std::to_string(count) + " devices"};
  }
  void hold(const Placement& held) {
    if (!faults_.forgets_hold) add(held, 1);
  }
  void release(const Placement& held) noexcept { add(held, -1); }

 private:
  void add(const Placement& placement, int by) {
    for (const int device : *placement.gpus) taken_[placement.node + std::to_string(device)] += by;
  }

  Faults faults_;
  int number_ = 0;
  std::map<std::string, int> taken_;
};

testing::ConformanceReport check(Faults faults) {
  return testing::check_scheduler<Devices>([faults] { return Devices(faults); });
}

}  // namespace

TEST_CASE("scheduling without a limit keeps the promises of a scheduler", "[scheduling][conformance]") {
  const testing::ConformanceReport report =
      testing::check_scheduler<scheduling::Unlimited>([] { return scheduling::Unlimited(); });

  INFO(report.to_string());
  CHECK(report.passed());
  CHECK(report.checks().size() > 100);
}

TEST_CASE("a scheduler that counts devices passes the suite", "[scheduling][conformance]") {
  const testing::ConformanceReport report = check({});

  INFO(report.to_string());
  CHECK(report.passed());
}

TEST_CASE("the suite names the promise that a scheduler breaks", "[scheduling][conformance]") {
  CHECK_THAT(check({.changes_its_mind = true}).to_string(), Catch::Contains("promise 1 broken"));
  CHECK_THAT(check({.gives_up = true}).to_string(), Catch::Contains("promise 2 broken"));
  CHECK_THAT(check({.says_nothing = true}).to_string(), Catch::Contains("promise 3 broken"));
  CHECK_THAT(check({.forgets_hold = true}).to_string(), Catch::Contains("promise 4 broken"));
  CHECK_THAT(check({.invents = true}).to_string(), Catch::Contains("promise 5 broken"));
}

TEST_CASE("the suite notices when the same device is handed out twice", "[scheduling][conformance]") {
  CHECK_THAT(check({.forgets_placements = true}).to_string(), Catch::Contains("promise 4 broken"));
}
