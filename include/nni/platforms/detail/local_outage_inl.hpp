#pragma once

/// @file
/// Bodies of `LocalCore`: a keeper that is away, does not answer, or has no room, and the end of the connection. Included
/// by local_inl.hpp.

#include <nni/platforms/detail/local_core.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/async/race.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>

namespace nni::platforms::detail {

inline constexpr Duration first_reconnect_pause = std::chrono::milliseconds(100);
inline constexpr Duration longest_reconnect_pause = std::chrono::seconds(10);
inline constexpr Duration short_connection = std::chrono::seconds(1);  ///< one that ends sooner is followed by a pause
inline constexpr Duration adoption_limit = std::chrono::seconds(30);
inline constexpr Duration answer_limit = std::chrono::seconds(10);  ///< longer than a trial may take to end
inline constexpr Duration end_limit_of_full_disk = std::chrono::seconds(8);

NNI_INLINE void LocalCore::on_trouble(TroubleListener listener) {
  trouble_listener_ = std::move(listener);
  if (trouble_listener_ && !reported_trouble_.empty()) trouble_listener_(reported_trouble_);
}

NNI_INLINE void LocalCore::report_trouble() {
  const std::string& reason = away_.empty() ? keeper_trouble_ : away_;
  if (reason == reported_trouble_) return;
  reported_trouble_ = reason;
  if (trouble_listener_) trouble_listener_(reason);
}

NNI_INLINE void LocalCore::keeper_answered() {
  answered_at_ = context_->clock().steady_now();
  if (away_.empty() || reconnecting_) return;
  away_.clear();
  report_trouble();
}

/// Suspends until something changes about the connection, or until a point in time.
NNI_INLINE awaitable<void> LocalCore::change_until(SteadyPoint until) {
  auto change = async::race(connection_changed_.wait(), context_->clock().sleep_until(until));
  co_await std::move(change);
}

// The keeper knows nothing of the run any more, so the next submission of it is as the first.
NNI_INLINE void LocalCore::defer(RunId run, std::string reason) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || found->second->ended) return;
  keeper::Record record(keeper::Record::Kind::ended, run, wall_now());
  record.end = JobEnd(EndKind::deferred, 0, std::move(reason));
  ended(std::move(record));
}

// To the keeper that lives, or to the next one, which ends the trials that the last one left and reports how everything else
// ended. As long as there is none nobody knows how the runs are, so they are not called lost.
NNI_INLINE awaitable<void> LocalCore::reconnect() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  const bool was_short = context_->clock().steady_now() - connected_at_ < short_connection;
  if (!was_short) reconnect_pause_ = Duration::zero();
  bool pausing = was_short && reconnect_pause_ != Duration::zero();
  for (;;) {
    if (pausing) {
      const SteadyPoint until = context_->clock().steady_now() + reconnect_pause_;
      while (!closing_ && context_->clock().steady_now() < until) {
        auto waiting = change_until(until);
        co_await std::move(waiting);
      }
    }
    pausing = true;
    reconnect_pause_ =
        std::clamp(reconnect_pause_ * 2, Duration(first_reconnect_pause), Duration(longest_reconnect_pause));
    if (closing_) break;
    std::string failure;
    try {
      auto connecting = connect();
      co_await std::move(connecting);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty() || closing_) break;
    if (away_.empty()) context_->log().error("local", "the keeper is away, which is tried again: " + failure);
    away_ = "the keeper is away, and a connection is tried again: " + failure;
    report_trouble();
  }
  reconnecting_ = false;
  if (!closing_) {
    away_.clear();
    report_trouble();
    if (wants_records_) go_live();
  }
  connection_changed_.notify();
}

/// Resumes when nobody is making a connection, or watches one; both end once this is being cleaned up.
NNI_INLINE awaitable<void> LocalCore::connected() {
  while (connecting_ || reconnecting_ || watching_) {
    auto change = connection_changed_.wait();
    co_await std::move(change);
  }
}

/// Resumes when there is a connection.
/// @throws Error  `Errc::connection_lost` when there is none for too long: a resume that was begun is better begun again
NNI_INLINE awaitable<void> LocalCore::connect_again() {
  const SteadyPoint until = context_->clock().steady_now() + adoption_limit;
  while (!closing_ && phase_ != Phase::held && phase_ != Phase::live) {
    if (context_->clock().steady_now() >= until)
      throw Error(Errc::connection_lost,
                  "the keeper of " + directory_.string() + " went away while the experiment was " +
                      "resumed; resume it again. " + (away_.empty() ? trouble_ : away_));
    auto change = change_until(until);
    co_await std::move(change);
  }
}

// ---- the end ----------------------------------------------------------------------------------------------------

NNI_INLINE bool LocalCore::awaits_ends() const {
  return std::any_of(
      runs_.begin(), runs_.end(), [](const auto& entry) { return entry.second->cancelled && !entry.second->ended; });
}

// A keeper that is stopped (SIGSTOP) keeps its connection: it is detected because it does not carry out its orders.
NNI_INLINE void LocalCore::watch_keeper() {
  asked_at_ = context_->clock().steady_now();
  if (std::exchange(watching_, true)) return;
  boost::asio::co_spawn(context_->executor(), watch_answers(), boost::asio::detached);
}

NNI_INLINE awaitable<void> LocalCore::watch_answers() {
  const std::shared_ptr<LocalCore> keep = shared_from_this();
  while (!closing_ && awaits_ends()) {
    const SteadyPoint until = std::max(asked_at_, answered_at_) + answer_limit;
    if (context_->clock().steady_now() >= until && phase_ == Phase::live && !holds_back_ && away_.empty()) {
      away_ = keeper::unanswered(directory_, answer_limit);
      context_->log().error("local", away_);
      report_trouble();
    }
    auto change = change_until(std::max(until, context_->clock().steady_now() + answer_limit));
    co_await std::move(change);
  }
  watching_ = false;
  connection_changed_.notify();
}

/// Resumes when no process of a trial is left. A keeper that lives although its connection broke is asked once more.
NNI_INLINE awaitable<void> LocalCore::finish() {
  if (!context_) co_return;
  const SteadyPoint begin = context_->clock().steady_now();
  answered_at_ = std::max(answered_at_, begin);
  for (;;) {
    if (client_) client_->finish();
    while (client_ && !finished_) {
      // What cannot be written is never called ended.
      const SteadyPoint until = keeper_trouble_.empty() ? answered_at_ + answer_limit : begin + end_limit_of_full_disk;
      if (context_->clock().steady_now() >= until) {
        abandoned_ = true;
        context_->log().error(
            "local", "the keeper was asked to end its trials, and did not report that they have ended: " +
                         (keeper_trouble_.empty() ? keeper::unanswered(directory_, answer_limit) : keeper_trouble_) +
                         "; a resume takes over what is left of them");
        co_return;
      }
      auto change = change_until(until);
      co_await std::move(change);
    }
    if (finished_ || broken_.empty() || context_->clock().steady_now() - begin > keeper_limit) co_return;
    if (own_keeper_) {
      auto greeting = greet_own_keeper();
      co_await std::move(greeting);
    } else {
      std::shared_ptr<keeper::ByteStream> stream;
      if (with_keeper_) stream = keeper::connect_to_keeper(context_->executor(), directory_);
      if (!stream) {  // it ended, too
        auto ending = end_left_over();
        co_await std::move(ending);
        co_return;
      }
      auto greeting = greet(std::move(stream));
      co_await std::move(greeting);
    }
    if (client_) continue;
    // It has not noticed yet that the last connection ended.
    auto waiting = context_->clock().sleep_until(context_->clock().steady_now() + first_pause);
    co_await std::move(waiting);
  }
}

/// Ends the trials of a keeper that died and could not be followed by another one, as the next one would.
NNI_INLINE awaitable<void> LocalCore::end_left_over() {
  std::string failure;
  try {
    const auto next = keeper::Keeper::create(context_->executor(), keeper_options(), context_->log());
    RecoverKeeper work;
    work.keeper = next.get();
    auto recovering = async::offload(*context_, std::move(work));
    co_await std::move(recovering);
    auto closing = next->close();
    co_await std::move(closing);
  } catch (const Error& error) {
    failure = error.what();
  }
  if (!failure.empty())
    context_->log().error("local", "trials without a keeper may live on until the next resume: " + failure);
}

/// Resumes when the process of the keeper has ended, or takes too long for that.
NNI_INLINE awaitable<void> LocalCore::keeper_ended(int process) {
  if (abandoned_) {
    ::close(process);
    co_return;
  }
  bool late = false;
  try {
    auto ending = async::with_timeout(process_end(context_->executor(), process), keeper_limit);
    co_await std::move(ending);
  } catch (const Error& error) {
    if (error.code() != make_error_code(Errc::timed_out)) throw;
    late = true;
  }
  if (late)
    context_->log().error("local", "the keeper of " + directory_.string() + " takes long to end; it is not waited for");
}

}  // namespace nni::platforms::detail

#endif  // NNI_WITH_PROCESS
