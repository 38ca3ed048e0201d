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
  // Not before the next sync would give somebody an answer.
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
    if (record_in_trouble_ || failure_) continue;
    start_syncing();
    if (!recorder_->wants_tidying()) continue;
    for (;;) {
      auto call = attempt(std::bind_front(&Recorder::tidy, recorder_.get()));
      std::exception_ptr trouble = co_await std::move(call);
      if (!trouble || failure_) break;
      record_in_trouble_ = true;
      auto patience = wait_out(std::move(trouble));
      co_await std::move(patience);
    }
    if (!failure_) over(record_in_trouble_);
  }
}

NNI_INLINE awaitable<void> CommitQueue::sync_all() {
  while (!failure_ && (sync_in_trouble_ || sync_from_ <= written_)) {
    if (!sync_in_trouble_) {
      sync_from_ = nobody;
      sync_end_ = written_;
      sync_turn_ = 1 - sync_turn_;
    }
    auto call = attempt(std::bind_front(&Recorder::sync, recorder_.get()));
    std::exception_ptr trouble = co_await std::move(call);
    if (trouble) {
      sync_in_trouble_ = true;
      auto patience = wait_out(std::move(trouble));
      co_await std::move(patience);
      continue;
    }
    if (failure_) break;
    over(sync_in_trouble_);
    synced_ = sync_end_;
    synced_turns_[sync_turn_].notify();
    // Who was told and wants more has to say so first.
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
  std::exception_ptr trouble = co_await std::move(call);
  if (trouble) {
    record_in_trouble_ = true;
    auto patience = wait_out(std::move(trouble));
    co_await std::move(patience);
    co_return;
  }
  over(record_in_trouble_);
  written_ = batch_end_;
  policy_.committed();
  written_turns_[batch_turn_].notify();
}

// ---- trouble ----------------------------------------------------------------------------------------------------

NNI_INLINE void CommitQueue::give_up() {
  patient_ = false;
  hurried_.notify();
}

NNI_INLINE void CommitQueue::tell(const std::string& reason) {
  if (reason == told_) return;
  if (reason.empty())
    context_->log().info("datastore", "records are kept again; nothing was lost");
  else
    context_->log().error("datastore", "records have to wait: " + reason);
  told_ = reason;
  if (listener_) listener_(told_);
}

NNI_INLINE void CommitQueue::over(bool& trouble) {
  if (!trouble) return;
  trouble = false;
  if (record_in_trouble_ || sync_in_trouble_) return;
  pause_ = first_pause;
  tell({});
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

// True for what may be over after a while.
NNI_INLINE bool may_pass(const std::exception_ptr& trouble) {
  try {
    std::rethrow_exception(trouble);
  } catch (const Error& error) {
    return error.code() == make_error_code(Errc::storage_failed);
  } catch (...) {
    return false;
  }
}

// Ends when the call may be tried again, or when everything has failed.
NNI_INLINE awaitable<void> CommitQueue::wait_out(std::exception_ptr trouble) {
  if (failure_) co_return;
  if (!may_pass(trouble)) co_return fail(std::move(trouble));
  // Of writing and syncing, the one that fails first recovers for both.
  if (recovering_) {
    while (recovering_) co_await recovered_.wait();
    co_return;
  }
  recovering_ = true;
  while (calls_ > 0) co_await call_ended_.wait();
  const std::exception_ptr first = trouble;  // what people should hear of; recovering may fail with less
  while (trouble && !failure_) {
    const bool hopeless = !patient_ && !std::exchange(last_try_, false);
    if (hopeless || !may_pass(trouble)) {
      fail(hopeless ? first : trouble);
      break;
    }
    tell(describe(trouble));
    if (patient_) {
      auto pause = rest();
      co_await std::move(pause);
    }
    try {
      auto work = async::offload(*context_, std::bind_front(&Recorder::recover, recorder_.get()));
      co_await std::move(work);
      trouble = nullptr;
    } catch (...) {
      trouble = std::current_exception();
    }
  }
  recovering_ = false;
  recovered_.notify();
}

NNI_INLINE awaitable<void> CommitQueue::rest() {
  const Duration pause = std::exchange(pause_, std::min(2 * pause_, longest_pause));
  try {
    auto limited = async::with_timeout(context_->clock(), hurried_.wait(), pause);
    co_await std::move(limited);
  } catch (const Error& error) {
    if (error.code() != make_error_code(Errc::timed_out)) throw;
  }
}

NNI_INLINE void CommitQueue::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  context_->log().error("datastore", "records can no longer be kept: " + describe(failure_));
  queue_.clear();
  wake();
  for (async::event& turn : written_turns_) turn.notify();
  for (async::event& turn : synced_turns_) turn.notify();
}

}  // namespace nni::datastore::detail
