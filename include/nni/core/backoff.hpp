#pragma once

#include <algorithm>
#include <utility>

#include <nni/core/time.hpp>

namespace nni {

/// Exponential backoff for a loop that retries one operation until it succeeds: a pause that doubles with each failed
/// attempt, up to a limit, and starts over after a success.
///
/// No jitter: nothing else retries together with the caller. The pauses between attempts of a trial have it, see
/// `pause_before`.
class ExponentialBackoff {
 public:
  /// @param first  the pause after the first failure
  /// @param limit  the longest pause, not below `first`
  constexpr ExponentialBackoff(Duration first, Duration limit) noexcept : first_(first), limit_(limit), pause_(first) {}

  /// Returns the pause before the next attempt.
  [[nodiscard]] constexpr Duration next() noexcept { return std::exchange(pause_, std::min(2 * pause_, limit_)); }

  /// Starts over: the next pause is the first one again.
  constexpr void reset() noexcept { pause_ = first_; }

 private:
  Duration first_;
  Duration limit_;
  Duration pause_;
};

}  // namespace nni
