#pragma once

#include <algorithm>

#include <nni/core/retry.hpp>

namespace nni {

NNI_INLINE Duration pause_before(std::uint32_t retry, const Backoff& backoff, Seed seed, TrialId trial) {
  Duration pause = std::min(backoff.first, backoff.limit);
  for (std::uint32_t doubled = 1; doubled < retry && pause < backoff.limit; ++doubled)
    pause = pause > backoff.limit / 2 ? backoff.limit : pause * 2;
  // A separate stream of random numbers: delays must not change the suggestions of a tuner.
  CounterRandom random(seed, ParameterId{trial.number}, 0xB0FF'0000U + retry);
  const double factor = 0.75 + 0.5 * random.uniform();
  return std::min(std::chrono::duration_cast<Duration>(pause * factor), backoff.limit);
}

}  // namespace nni
