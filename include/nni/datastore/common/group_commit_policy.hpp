#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <nni/core/time.hpp>

namespace nni::datastore::detail {

/// Decides when queued records are committed: pure, given the times.
///
/// A commit costs as much as twenty records, so records that come fast are gathered. At low rates nothing waits.
/// Above 500 records per second the queue is held for up to 2 ms or 256 records, but never for somebody who waits
/// alone: as long as nothing else arrives while commits are waited for, holding gathers nothing and only delays the
/// one that everything hangs on (one trial after the other). When others do arrive, a pause among them as long as eight
/// usual gaps, 0.2 ms at most, ends the hold. Where that is shorter than a timer is exact, nothing is held: enough
/// comes while the commit before is under way, and a hold would leave both sides idle.
class GroupCommitPolicy {
 public:
  static constexpr std::size_t enough = 256;
  static constexpr Duration longest_hold = std::chrono::milliseconds(2);
  static constexpr Duration longest_pause = std::chrono::microseconds(200);
  static constexpr Duration shortest_pause = std::chrono::microseconds(80);
  static constexpr double gaps = 8.0;
  static constexpr double gathering_rate = 500.0;  ///< records per second

  /// Records were queued.
  void appended(std::size_t records, SteadyPoint now) noexcept {
    if (queued_ == 0) first_ = now;
    queued_ += records;
    last_ = now;
    if (waited_for_ || committing_for_somebody_) company_ = true;
    count(records, now);
  }

  /// Somebody waits for what is queued now.
  void waiting(SteadyPoint now) noexcept {
    waited_for_ = true;
    last_ = std::max(last_, now);
  }

  /// Nothing more is to be gathered: a reader or a close waits.
  void hurry() noexcept { hurried_ = true; }

  /// The moment at which the queue should be committed; in the past: now.
  [[nodiscard]] SteadyPoint due(SteadyPoint now) const noexcept {
    const double records_per_second = rate(now);
    if (hurried_ || queued_ >= enough || records_per_second <= gathering_rate) return now;
    if (!waited_for_) return first_ + longest_hold;
    const auto pause = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(gaps / records_per_second));
    if (alone_ >= alone_rounds || pause < shortest_pause) return now;
    return std::min(first_ + longest_hold, last_ + std::min(pause, longest_pause));
  }

  /// The queue is being committed.
  void taken() noexcept {
    committing_for_somebody_ = waited_for_;
    queued_ = 0;
    waited_for_ = false;
    hurried_ = false;
  }

  /// The commit has ended.
  void committed() noexcept {
    if (committing_for_somebody_) alone_ = company_ ? 0 : alone_ + 1;
    committing_for_somebody_ = false;
    company_ = false;
  }

 private:
  static constexpr int alone_rounds = 3;
  static constexpr Duration window = std::chrono::milliseconds(50);

  void count(std::size_t records, SteadyPoint now) noexcept {
    if (now - window_start_ >= window) {
      before_ = now - window_start_ < 2 * window ? in_window_ : 0;
      in_window_ = 0;
      window_start_ = now;
    }
    in_window_ += records;
  }

  /// Records per second over the last one to two windows.
  [[nodiscard]] double rate(SteadyPoint now) const noexcept {
    const Duration span = window + std::min<Duration>(now - window_start_, window);
    return static_cast<double>(before_ + in_window_) / std::chrono::duration<double>(span).count();
  }

  std::size_t queued_ = 0;
  SteadyPoint first_{};  // when the oldest queued record came
  SteadyPoint last_{};   // when the newest came, or somebody began to wait
  bool waited_for_ = false;
  bool hurried_ = false;
  bool committing_for_somebody_ = false;
  bool company_ = false;      // records came while somebody waited
  int alone_ = alone_rounds;  // waits in a row during which nothing came

  SteadyPoint window_start_{};
  std::size_t in_window_ = 0;
  std::size_t before_ = 0;
};

}  // namespace nni::datastore::detail
