#pragma once

#include <utility>

#include <boost/asio/post.hpp>

#include <nni/experiment/detail/control_core.hpp>

namespace nni::detail {

NNI_INLINE ControlCore::ControlCore(const ExperimentOptions& options, bool updates_space)
    : updates_space_(updates_space) {
  progress_.status = ExperimentStatus::initialized;
  progress_.concurrency = options.concurrency;
  progress_.max_trials = options.max_trials;
  progress_.max_duration = options.max_duration;
  progress_.direction = options.direction;
}

NNI_INLINE bool ControlCore::ask(Change change) {
  std::unique_lock lock(mutex_);
  const auto has_room = [this] {
    return changes_.size() < most_requests || phase_ != Control::Phase::running ||
           std::this_thread::get_id() == thread_;
  };
  while (phase_ != Control::Phase::ended) {
    if (const auto* trial = std::get_if<CancelTrial>(&change); trial && cancelled_.contains(trial->trial)) return true;
    std::shared_ptr<Change>* const same = latest(change);
    if (same && *same) {
      **same = std::move(change);
      return true;
    }
    if (!has_room()) {
      room_.wait(lock, has_room);
      continue;
    }
    if (const auto* trial = std::get_if<CancelTrial>(&change)) cancelled_.insert(trial->trial);
    changes_.push_back(std::make_shared<Change>(std::move(change)));
    if (same) *same = changes_.back();
    if (executor_) post_drain();
    return true;
  }
  return false;
}

NNI_INLINE bool ControlCore::is_on_executor() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Control::Phase::running && std::this_thread::get_id() == thread_;
}

// Where the last request of this kind is kept, if a later one replaces it. A pause and its end are of one kind.
NNI_INLINE std::shared_ptr<Change>* ControlCore::latest(const Change& change) {
  if (std::holds_alternative<CancelTrial>(change) || std::holds_alternative<TellWhenRecorded>(change)) return nullptr;
  const std::size_t kind =
      std::holds_alternative<ResumeTrials>(change) ? Change(PauseTrials{}).index() : change.index();
  return &latest_[kind];
}

NNI_INLINE void ControlCore::forget(const Change& change) {
  if (std::shared_ptr<Change>* const same = latest(change)) same->reset();
  if (const auto* trial = std::get_if<CancelTrial>(&change)) cancelled_.erase(trial->trial);
}

NNI_INLINE void ControlCore::post_drain() {
  if (!std::exchange(posted_, true))
    boost::asio::post(*executor_, [self = shared_from_this()] { self->drain(requests_per_turn); });
}

NNI_INLINE Progress ControlCore::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

NNI_INLINE Control::Phase ControlCore::phase() const {
  const std::lock_guard lock(mutex_);
  return phase_;
}

NNI_INLINE void ControlCore::begin(boost::asio::any_io_executor executor,
                                   std::function<void(const Change&)> carry_out) {
  std::size_t asked_before = 0;
  carry_out_ = std::move(carry_out);
  {
    const std::lock_guard lock(mutex_);
    executor_ = std::move(executor);
    phase_ = Control::Phase::running;
    thread_ = std::this_thread::get_id();
    asked_before = changes_.size();
  }
  drain(asked_before);
}

// Requests that are made meanwhile have their own turn: a program that asks without end must not keep the experiment from
// running.
NNI_INLINE void ControlCore::drain(std::size_t limit) {
  Requests batch;
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    thread_ = std::this_thread::get_id();
    for (; limit != 0 && !changes_.empty(); --limit) {
      forget(*changes_.front());
      batch.push_back(std::move(changes_.front()));
      changes_.pop_front();
    }
    if (executor_ && !changes_.empty()) post_drain();
    room_.notify_all();
  }
  for (const auto& change : batch)
    if (carry_out_) carry_out_(*change);
}

NNI_INLINE void ControlCore::end() {
  Requests dropped;  // who waits for one of them is told outside of the lock
  {
    const std::lock_guard lock(mutex_);
    phase_ = Control::Phase::ended;
    executor_.reset();
    dropped.swap(changes_);
    latest_ = {};
    cancelled_.clear();
    room_.notify_all();
  }
  carry_out_ = nullptr;
}

NNI_INLINE void ControlCore::publish(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}

}  // namespace nni::detail
