#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/datastore/detail/record_lane.hpp>

namespace nni::datastore::detail {

NNI_INLINE RecordLane::RecordLane(Context& context, std::unique_ptr<Recorder> recorder)
    : context_(&context), recorder_(std::move(recorder)), timer_(context.executor()) {}

NNI_INLINE StorePosition RecordLane::append(std::span<const StoreEvent> events) {
  appended_ += events.size();
  if (failure_ || events.empty()) return StorePosition{appended_};
  queue_.insert(queue_.end(), events.begin(), events.end());
  pace_.appended(events.size(), std::chrono::steady_clock::now());
  if (queue_.size() >= CommitPace::enough) wake();
  start_writing();
  return StorePosition{appended_};
}

NNI_INLINE awaitable<void> RecordLane::written(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (written_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= batch_end_;
    if (!under_way) {
      pace_.waiting(std::chrono::steady_clock::now());
      wake();
    }
    async::event& turn = written_turns_[under_way ? batch_turn_ : 1 - batch_turn_];
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> RecordLane::synced(StorePosition at) {
  const auto self = shared_from_this();
  const std::uint64_t target = std::min(at.value, appended_);
  while (synced_ < target) {
    if (failure_) std::rethrow_exception(failure_);
    const bool under_way = target <= sync_end_;
    async::event& turn = synced_turns_[under_way ? sync_turn_ : 1 - sync_turn_];
    if (!under_way) {
      sync_from_ = std::min(sync_from_, target);
      if (target > batch_end_) pace_.waiting(std::chrono::steady_clock::now());
      wake();
      start_syncing();  // the next turn may begin right here
    }
    co_await turn.wait();
  }
}

NNI_INLINE awaitable<void> RecordLane::flushed() {
  if (!queue_.empty()) {
    pace_.hurry();
    wake();
  }
  return written(StorePosition{appended_});
}

NNI_INLINE awaitable<void> RecordLane::drained() {
  const auto self = shared_from_this();
  if (!queue_.empty()) pace_.hurry();
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

NNI_INLINE void RecordLane::wake() {
  if (holding_) timer_.cancel();
}

NNI_INLINE void RecordLane::start_writing() {
  if (std::exchange(writing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_writing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE void RecordLane::start_syncing() {
  // Not before the next sync would give somebody an answer.
  if (sync_from_ > written_ || std::exchange(syncing_, true)) return;
  boost::asio::co_spawn(context_->executor(), run_syncing(shared_from_this()), boost::asio::detached);
}

NNI_INLINE awaitable<void> RecordLane::run_writing(std::shared_ptr<RecordLane> self) {
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

NNI_INLINE awaitable<void> RecordLane::run_syncing(std::shared_ptr<RecordLane> self) {
  try {
    auto all = self->sync_all();
    co_await std::move(all);
  } catch (...) {
    self->fail(std::current_exception());
  }
  self->syncing_ = false;
  self->idle_.notify();
}

NNI_INLINE awaitable<void> RecordLane::write_all() {
  while (!queue_.empty()) {
    auto pause = hold();
    co_await std::move(pause);
    if (failure_) break;
    auto batch = commit();
    co_await std::move(batch);
    start_syncing();
    if (failure_ || !recorder_->wants_tidying()) continue;
    auto call = async::offload(*context_, std::bind_front(&Recorder::tidy, recorder_.get()));
    co_await std::move(call);
  }
}

NNI_INLINE awaitable<void> RecordLane::sync_all() {
  while (sync_from_ <= written_ && !failure_) {
    sync_from_ = nobody;
    sync_end_ = written_;
    sync_turn_ = 1 - sync_turn_;
    auto call = async::offload(*context_, std::bind_front(&Recorder::sync, recorder_.get()));
    co_await std::move(call);
    synced_ = sync_end_;
    synced_turns_[sync_turn_].notify();
    // Who was told and wants more has to say so first.
    co_await boost::asio::post(context_->executor(), boost::asio::use_awaitable);
  }
}

NNI_INLINE awaitable<void> RecordLane::hold() {
  for (;;) {
    const SteadyPoint now = std::chrono::steady_clock::now();
    const SteadyPoint due = pace_.due(now);
    if (due <= now) co_return;
    timer_.expires_at(due);
    holding_ = true;
    boost::system::error_code cancelled;
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
    holding_ = false;
  }
}

NNI_INLINE void RecordLane::record_batch(TimePoint now) {
  recorder_->record(batch_, now);
  batch_.clear();
}

NNI_INLINE awaitable<void> RecordLane::commit() {
  std::swap(queue_, batch_);
  batch_end_ = appended_;
  batch_turn_ = 1 - batch_turn_;
  pace_.taken();
  auto call = async::offload(*context_, std::bind_front(&RecordLane::record_batch, this, context_->clock().now()));
  co_await std::move(call);
  written_ = batch_end_;
  pace_.committed();
  written_turns_[batch_turn_].notify();
}

NNI_INLINE void RecordLane::fail(std::exception_ptr failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  context_->log().error("datastore", "records can no longer be kept: " + describe(failure_));
  queue_.clear();
  wake();
  for (async::event& turn : written_turns_) turn.notify();
  for (async::event& turn : synced_turns_) turn.notify();
}

}  // namespace nni::datastore::detail
