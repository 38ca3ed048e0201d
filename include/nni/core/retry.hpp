#pragma once

#include <cstdint>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/random.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// The ends of a run that a retry follows.
enum class RetryOn : std::uint8_t {
  losses,   ///< the platform lost the run or could not start it
  failures  ///< also failures of the trial itself: a nonzero exit code, a signal, an exception
};

/// Exponential backoff between attempts.
struct Backoff {
  Duration first = std::chrono::seconds(1);   ///< delay before the first retry; zero: no delays
  Duration limit = std::chrono::minutes(10);  ///< longest delay, >= `first`
};

/// Returns the delay before a retry: `first` doubled for each previous retry, with a jitter of up to a quarter so that
/// trials that failed together are not retried together, and at most `limit`.
///
/// Deterministic: an experiment with the same seed has the same delays.
///
/// @param retry    number of the next retry, >= 1
/// @param backoff  first and longest delay
/// @param trial    the trial to retry
/// @returns        zero to `backoff.limit`
[[nodiscard]] Duration pause_before(std::uint32_t retry, const Backoff& backoff, Seed seed, TrialId trial);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/retry_inl.hpp>
#endif
