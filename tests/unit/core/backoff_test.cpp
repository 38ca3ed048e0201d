#include "support/catch.hpp"

#include <chrono>

#include <nni/core/backoff.hpp>

using namespace nni;
using namespace std::chrono_literals;

TEST_CASE("backoff: pauses double up to the limit, and start over after a success", "[backoff]") {
  ExponentialBackoff pause(100ms, 350ms);

  CHECK(pause.next() == 100ms);
  CHECK(pause.next() == 200ms);
  CHECK(pause.next() == 350ms);
  CHECK(pause.next() == 350ms);

  pause.reset();
  CHECK(pause.next() == 100ms);
}
