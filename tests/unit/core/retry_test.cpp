#include "support/catch.hpp"

#include <chrono>

#include <nni/core/retry.hpp>

using namespace nni;
using namespace std::chrono_literals;

TEST_CASE("retry: pauses double up to a limit, moved by a quarter at most", "[retry]") {
  const Backoff backoff{.first = 2s, .limit = 30s};

  for (std::uint64_t trial = 1; trial <= 100; ++trial) {
    Duration plain = 2s;
    for (std::uint32_t retry = 1; retry <= 40; ++retry) {
      const Duration pause = pause_before(retry, backoff, seed(7), TrialId{trial});
      CHECK(pause >= plain * 3 / 4 - 1ms);
      CHECK(pause <= std::min<Duration>(plain * 5 / 4, 30s));
      plain = std::min<Duration>(plain * 2, 30s);
    }
  }
}

TEST_CASE("retry: a pause depends on the seed, the trial and the retry, and on nothing else", "[retry]") {
  const Backoff backoff{.first = 1s, .limit = 1h};
  const Duration pause = pause_before(3, backoff, seed(7), TrialId{5});

  CHECK(pause_before(3, backoff, seed(7), TrialId{5}) == pause);
  CHECK(pause_before(3, backoff, seed(8), TrialId{5}) != pause);
  CHECK(pause_before(3, backoff, seed(7), TrialId{6}) != pause);
  CHECK(pause_before(1, {.first = Duration::zero()}, seed(7), TrialId{5}) == Duration::zero());
}
