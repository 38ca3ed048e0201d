#pragma once

#include <cstdint>

#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/random.hpp>
#include <nni/core/time.hpp>

namespace nni {

/// Which ends of a run are followed by another attempt, when there are retries.
enum class RetryOn : std::uint8_t {
  losses,   ///< the platform lost the run or could not start it
  failures  ///< also what the trial did itself: another exit code than 0, a signal, an exception
};

/// Pauses between attempts: they double, up to a limit.
struct Backoff {
  Duration first = std::chrono::seconds(1);   ///< before the first retry; zero: none at all
  Duration limit = std::chrono::minutes(10);  ///< the longest pause, not below `first`
};

/// The pause before a retry: `first` doubled for each retry before it, moved by up to a quarter up or down so that
/// trials that failed together do not come back together, and never above the limit.
///
/// It depends on its arguments only, so an experiment with one seed pauses alike each time.
///
/// @param retry    which retry follows, 1 or more
/// @param backoff  the first pause and the longest one
/// @param seed     of the experiment
/// @param trial    whose retry it is
/// @returns        zero to `backoff.limit`
[[nodiscard]] Duration pause_before(std::uint32_t retry, const Backoff& backoff, Seed seed, TrialId trial);

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/retry_inl.hpp>
#endif
