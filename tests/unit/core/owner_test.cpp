#include "support/catch.hpp"

#include <memory>

#include <nni/core/owner.hpp>

using namespace nni;

namespace {

struct Worker : std::enable_shared_from_this<Worker> {
  explicit Worker(int& stop_calls) : stops(stop_calls) {}
  void stop() { ++stops; }
  int& stops;
};

}  // namespace

TEST_CASE("owner: the object is stopped with its last owner, and lives until its last operation ends",
          "[core][owner]") {
  int stops = 0;
  std::weak_ptr<Worker> alive;
  std::shared_ptr<Worker> operation;
  {
    const std::shared_ptr<Worker> owner = make_owner(std::make_shared<Worker>(stops));
    const std::shared_ptr<Worker> copy = owner;
    operation = owner->shared_from_this();
    alive = operation;
    CHECK(stops == 0);
  }
  CHECK(stops == 1);
  CHECK_FALSE(alive.expired());

  operation.reset();

  CHECK(alive.expired());
  CHECK(stops == 1);
}
