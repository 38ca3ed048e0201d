#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/offload.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/common/commit_queue.hpp>

namespace nni::datastore::detail {

NNI_INLINE CommitQueue::CommitQueue(Context& context, std::unique_ptr<Recorder> recorder)
    : context_(&context), recorder_(std::move(recorder)), timer_(context.executor()) {}

NNI_INLINE StorePosition CommitQueue::append(std::span<const StoreEvent> events) {
  return enqueue(events.begin(), events.end());
}

NNI_INLINE StorePosition CommitQueue::append(std::vector<StoreEvent>&& events) {
  return enqueue(std::make_move_iterator(events.begin()), std::make_move_iterator(events.end()));
}

template <class Iterator>
StorePosition CommitQueue::enqueue(Iterator first, Iterator last) {
  const auto count = static_cast<std::size_t>(last - first);
  appended_ += count;
  if (failure_ || count == 0) return StorePosition{appended_};
  queue_.insert(queue_.end(), first, last);
  policy_.appended(count, std::chrono::steady_clock::now());
  if (queue_.size() >= GroupCommitPolicy::enough) wake();
  start_writing();
  return StorePosition{appended_};
}

NNI_INLINE awaitable<void> CommitQueue::written(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (written_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= batch_end_;
    if (!under_way) {
      policy_.waiting(std::chrono::steady_clock::now());
      wake();
    }
    async::event& turn = written_turns_[under_way ? batch_turn_ : 1 - batch_turn_];
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> CommitQueue::synced(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (synced_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= sync_end_;
    async::event& turn = synced_turns_[under_way ? sync_turn_ : 1 - sync_turn_];
    if (!under_way) {
      sync_from_ = std::min(sync_from_, target);
      if (target > batch_end_) policy_.waiting(std::chrono::steady_clock::now());
      wake();
      start_syncing();  // the next turn may begin right here
    }
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> CommitQueue::flushed() {
  if (!queue_.empty()) {
    policy_.hurry();
    wake();
  }
  return written(StorePosition{appended_});
}

NNI_INLINE awaitable<void> CommitQueue::drained() {
  const auto self = shared_from_this();
  if (!queue_.empty()) policy_.hurry();
  try {
    auto last = synced(StorePosition{appended_});
    co_await std::move(last);
  } catch (...) {
    // The recorder may still be at work when the caller was cancelled or the store has failed.
    if (!failure_) throw;
  }
  while (writing_ || syncing_) co_await idle_.wait();
  if (failure_) std::rethrow_exception(failure_);
}

NNI_INLINE void CommitQueue::wake() {
  if (holding_) timer_.cancel();
}

NNI_INLINE void CommitQueue::start_writing() {
  if (std::exchange(writing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_writing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE void CommitQueue::start_syncing() {
  // Not before the next sync would resume a waiter.
  if (sync_from_ > written_ || std::exchange(syncing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_syncing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE awaitable<void> CommitQueue::run_writing(std::shared_ptr<CommitQueue> self) {
  try {
    // Whoever appends now may append more before it lets go of the executor.
    co_await boost::asio::post(self->context_->executor(), boost::asio::use_awaitable);
    auto all = self->write_all();
    co_await std::move(all);
  } catch (...) {
    self->fail(std::current_exception());
  }
  self->writing_ = false;
  self->idle_.notify();
}

NNI_INLINE awaitable<void> CommitQueue::run_syncing(std::shared_ptr<CommitQueue> self) {
  try {
    auto all = self->sync_all();
    co_await std::move(all);
  } catch (...) {
    self->fail(std::current_exception());
  }
  self->syncing_ = false;
  self->idle_.notify();
}

NNI_INLINE awaitable<void> CommitQueue::write_all() {
  while (!failure_ && (!batch_.empty() || !queue_.empty())) {
    if (batch_.empty()) {
      auto pause = hold();
      co_await std::move(pause);
      if (failure_) break;
      take_batch();
    }
    auto work = commit();
    co_await std::move(work);
    if (record_failing_ || failure_) continue;
    start_syncing();
    if (!recorder_->wants_tidying()) continue;
    for (;;) {
      auto call = attempt(std::bind_front(&Recorder::tidy, recorder_.get()));
      std::exception_ptr error = co_await std::move(call);
      if (!error || failure_) break;
      record_failing_ = true;
      auto recovery = recover_from(std::move(error));
      co_await std::move(recovery);
    }
    if (!failure_) end_failure(record_failing_);
  }
}

NNI_INLINE awaitable<void> CommitQueue::sync_all() {
  while (!failure_ && (sync_failing_ || sync_from_ <= written_)) {
    if (!sync_failing_) {
      sync_from_ = nobody;
      sync_end_ = written_;
      sync_turn_ = 1 - sync_turn_;
    }
    auto call = attempt(std::bind_front(&Recorder::sync, recorder_.get()));
    std::exception_ptr error = co_await std::move(call);
    if (error) {
      sync_failing_ = true;
      auto recovery = recover_from(std::move(error));
      co_await std::move(recovery);
      continue;
    }
    if (failure_) break;
    end_failure(sync_failing_);
    synced_ = sync_end_;
    synced_turns_[sync_turn_].notify();
    // Waiters that were resumed and want more enqueue it first.
    co_await boost::asio::post(context_->executor(), boost::asio::use_awaitable);
  }
}

NNI_INLINE awaitable<void> CommitQueue::hold() {
  for (;;) {
    const SteadyPoint now = std::chrono::steady_clock::now();
    const SteadyPoint due = policy_.due(now);
    if (due <= now) co_return;
    timer_.expires_at(due);
    holding_ = true;
    boost::system::error_code cancelled;
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    holding_ = false;
  }
}

NNI_INLINE void CommitQueue::record_batch(TimePoint now) {
  recorder_->record(batch_, now);
  batch_.clear();
}

NNI_INLINE void CommitQueue::take_batch() {
  std::swap(queue_, batch_);
  batch_end_ = appended_;
  batch_turn_ = 1 - batch_turn_;
  policy_.taken();
}

NNI_INLINE awaitable<void> CommitQueue::commit() {
  auto call = attempt(std::bind_front(&CommitQueue::record_batch, this, context_->clock().now()));
  std::exception_ptr error = co_await std::move(call);
  if (error) {
    record_failing_ = true;
    auto recovery = recover_from(std::move(error));
    co_await std::move(recovery);
    co_return;
  }
  end_failure(record_failing_);
  written_ = batch_end_;
  policy_.committed();
  written_turns_[batch_turn_].notify();
}

// ---- write failures ---------------------------------------------------------------------------------------------

NNI_INLINE void CommitQueue::stop_retrying() {
  may_retry_ = false;
  retry_now_.notify();
}

NNI_INLINE void CommitQueue::report(const std::string& reason) {
  if (reason == reported_) return;
  if (reason.empty())
    context_->log().info("datastore", "records are written again; nothing was lost");
  else
    context_->log().error("datastore", "records cannot be written for now, and are kept in memory: " + reason);
  reported_ = reason;
  if (listener_) listener_(reported_);
}

NNI_INLINE void CommitQueue::end_failure(bool& failing) {
  if (!failing) return;
  failing = false;
  if (record_failing_ || sync_failing_) return;
  backoff_.reset();
  report({});
}

// One call of the recorder; never while it recovers.
NNI_INLINE awaitable<std::exception_ptr> CommitQueue::attempt(std::function<void()> call) {
  while (recovering_) co_await recovered_.wait();
  if (failure_) co_return failure_;
  std::exception_ptr failure;
  ++calls_;
  try {
    auto work = async::offload(*context_, std::move(call));
    co_await std::move(work);
  } catch (...) {
    failure = std::current_exception();
  }
  --calls_;
  call_ended_.notify();
  co_return failure;
}

// A recorder calls everything that the file system refuses `storage_failed`, and the disk may have room again later. That
// is no transient condition of a request (`Condition`): there, the same path would be refused again.
NNI_INLINE bool is_retryable(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.code() == make_error_code(Errc::storage_failed);
  } catch (...) {
    return false;
  }
}

// Returns when the call may be retried, or when everything has failed.
NNI_INLINE awaitable<void> CommitQueue::recover_from(std::exception_ptr error) {
  if (failure_) co_return;
  if (!is_retryable(error)) co_return fail(std::move(error));
  // Of writing and syncing, the one that fails first recovers for both.
  if (recovering_) {
    while (recovering_) co_await recovered_.wait();
    co_return;
  }
  recovering_ = true;
  while (calls_ > 0) co_await call_ended_.wait();
  const std::exception_ptr first = error;  // the cause, for people; what recovering fails with may be a consequence
  while (error && !failure_) {
    const bool hopeless = !may_retry_ && !std::exchange(last_attempt_left_, false);
    if (hopeless || !is_retryable(error)) {
      fail(hopeless ? first : error);
      break;
    }
    report(describe(error));
    if (may_retry_) {
      auto waiting = wait_before_retry();
      co_await std::move(waiting);
    }
    try {
      auto work = async::offload(*context_, std::bind_front(&Recorder::recover, recorder_.get()));
      co_await std::move(work);
      error = nullptr;
    } catch (...) {
      error = std::current_exception();
    }
  }
  recovering_ = false;
  recovered_.notify();
}

NNI_INLINE awaitable<void> CommitQueue::wait_before_retry() {
  try {
    auto limited = async::with_timeout(context_->clock(), retry_now_.wait(), backoff_.next());
    co_await std::move(limited);
  } catch (const Error& error) {
    if (error.code() != make_error_code(Errc::timed_out)) throw;
  }
}

NNI_INLINE void CommitQueue::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  context_->log().error("datastore", "records can no longer be written: " + describe(failure_));
  queue_.clear();
  wake();
  for (async::event& turn : written_turns_) turn.notify();
  for (async::event& turn : synced_turns_) turn.notify();
}

}  // namespace nni::datastore::detail
