#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include <nni/core/time.hpp>

namespace nni::datastore::detail {

/// Group commit: decides when queued records are committed. Pure, given the times.
///
/// A commit costs as much as twenty records, so bursts are batched. At low rates nothing is delayed. Above 500 records per
/// second the queue is held for up to 2 ms or 256 records, but never for a lone waiter: as long as no records arrive while
/// a commit is waited for, holding batches nothing and only delays the one record that everything depends on (one trial
/// after the other). When others do arrive, a gap between them of eight times the usual one, 0.2 ms at most, ends the
/// hold. Where that is shorter than the resolution of a timer, nothing is held: enough arrives during the commit before,
/// and a hold would leave both sides idle.
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

  /// A waiter for what is queued now arrived.
  void waiting(SteadyPoint now) noexcept {
    waited_for_ = true;
    last_ = std::max(last_, now);
  }

  /// Ends the hold: a reader or a close waits.
  void hurry() noexcept { hurried_ = true; }

  /// Returns the time at which the queue should be committed; in the past: now.
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
  SteadyPoint first_{};  // when the oldest queued record arrived
  SteadyPoint last_{};   // when the newest record or waiter arrived
  bool waited_for_ = false;
  bool hurried_ = false;
  bool committing_for_somebody_ = false;
  bool company_ = false;      // records arrived while somebody waited
  int alone_ = alone_rounds;  // waits in a row during which nothing arrived

  SteadyPoint window_start_{};
  std::size_t in_window_ = 0;
  std::size_t before_ = 0;
};

}  // namespace nni::datastore::detail
