#pragma once

#include <utility>

#include <boost/asio/post.hpp>

#include <nni/experiment/control_core.hpp>

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
  const std::lock_guard lock(mutex_);
  if (phase_ == Control::Phase::ended) return false;
  changes_.push_back(std::make_shared<const Change>(std::move(change)));
  if (executor_ && !std::exchange(posted_, true))
    boost::asio::post(*executor_, [self = shared_from_this()] { self->drain(); });
  return true;
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
  carry_out_ = std::move(carry_out);
  {
    const std::lock_guard lock(mutex_);
    executor_ = std::move(executor);
    phase_ = Control::Phase::running;
  }
  drain();
}

// What is asked for meanwhile has its own turn: who asks without end must not keep the experiment from running.
NNI_INLINE void ControlCore::drain() {
  Requests batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(changes_);
    posted_ = false;
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
  }
  carry_out_ = nullptr;
}

NNI_INLINE void ControlCore::publish(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  progress_ = progress;
}

}  // namespace nni::detail
