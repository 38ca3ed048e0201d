// IWYU pragma: private, include <nni/session/training_session.hpp>
#pragma once

/// @file
/// Bodies of `SessionCore`: its configuration, its life, and how other threads call it. Included by
/// training_session.hpp.

#include <algorithm>
#include <future>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/core/json.hpp>
#include <nni/session/detail/session_core.hpp>
#include <nni/session/detail/session_jobs_inl.hpp>

namespace nni::detail {

// ---- configuration ------------------------------------------------------------------------------------------------

NNI_LAZY_BODY void SessionCore::set_cluster_metadata(const std::string& key, const boost::json::value& value) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::idle)
    throw Error(Errc::in_use, "cluster metadata \"" + key + "\" can be set before the session starts only");
  const auto keys = policies_->metadata_keys();
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return policies_->set_metadata(key, value);
  if (!is_session_key(key))
    throw_unknown_metadata(key, to_json_text(value), policies_->platform(), {keys.begin(), keys.end()});
  TrainingSessionOptions bound = options_;
  bind_metadata(bound, key, value);
  if (!policies_->hands_out_gpus() && bound.trial_gpu_number.value_or(0) > 0)
    throw config_error("trial_config.gpuNum", no_gpus(*bound.trial_gpu_number));
  options_ = std::move(bound);
}

NNI_LAZY_BODY boost::json::value SessionCore::get_cluster_metadata(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  if (const auto kept = service_metadata_.find(key); kept != service_metadata_.end()) return kept->second;
  const auto keys = policies_->metadata_keys();
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return policies_->metadata(key);
  std::vector<std::string_view> service_keys(keys.begin(), keys.end());
  for (const auto& [kept, value] : service_metadata_) service_keys.push_back(kept);
  if (!is_session_key(key)) throw_unknown_metadata(key, {}, policies_->platform(), service_keys);
  return metadata_of(options_, key);
}

NNI_LAZY_BODY bool SessionCore::is_multi_phase_job_supported() const noexcept {
  return policies_->transport_is_multi_phase().value_or(capabilities_.multi_phase);
}

// ---- life ---------------------------------------------------------------------------------------------------------

NNI_LAZY_BODY void SessionCore::end() {
  request_stop();
  if (thread_.joinable()) thread_.join();
}

// True for the one caller that has to do the work.
NNI_LAZY_BODY bool SessionCore::claim() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::idle) return false;
  phase_ = Phase::starting;
  return true;
}

NNI_LAZY_BODY void SessionCore::build() {
  const std::lock_guard configuration(mutex_);  // which others may read
  if (options_.multi_phase && !is_multi_phase_job_supported())
    throw config_error("multiPhase", "is true, and trials on " + std::string(policies_->platform()) +
                                         " cannot be sent further parameters; leave it out");
  if (!options_.nni_manager_ip.empty()) policies_->advertise(options_.nni_manager_ip);
  for (const std::string_view key : policies_->metadata_keys())
    service_metadata_.emplace(key, policies_->metadata(std::string(key)));
  experiment_ = &policies_->compose(experiment_options(options_), hooks());
  Observer observer;
  observer.on_start = [this](const ExperimentStart&) {
    for (const Intent& intent : ledger().open_intents()) jobs_[intent.run.trial];
    {
      const std::lock_guard lock(mutex_);
      phase_ = Phase::running;
    }
    notify_all();
  };
  observer.on_trial_ended = [this](const TrialJobDetail& detail) { ending_.emplace(detail.trial, detail); };
  experiment_->observe(std::move(observer));
}

NNI_LAZY_BODY void SessionCore::notify_all() {
  phase_changed_.notify_all();
  if (changed_) changed_->notify();
}

NNI_LAZY_BODY void SessionCore::loop() noexcept {
  std::exception_ptr failure;
  try {
    RuntimeOptions settings;
    settings.threads = options_.threads;
    settings.log = Log(options_.log, options_.log_level);
    settings.shutdown_limit = options_.shutdown_limit;
    runtime_ = std::make_unique<Runtime>(std::move(settings));
    const std::unique_ptr<Runtime, void (*)(Runtime*)> signals(
        runtime_.get(), [](Runtime* runtime) { runtime->restore_signals(); });
    if (options_.handle_signals) runtime_->on_stop_signal([this] { request_stop(); });
    runtime_->run(async_run(runtime_->context()));
  } catch (...) {
    failure = std::current_exception();
  }
  finish(failure);
}

NNI_LAZY_BODY void SessionCore::finish(std::exception_ptr failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::over;
    if (!failure_) failure_ = failure;
  }
  phase_changed_.notify_all();
}

NNI_LAZY_BODY awaitable<void> SessionCore::async_run(Context& context) {
  {
    const std::lock_guard lock(mutex_);
    if (experiment_)
      throw Error(Errc::in_use, "the training session runs already, or has run; it runs once, so make another one");
  }
  context_ = &context;
  changed_.emplace();
  bool stop = false;
  std::exception_ptr failure;
  try {
    build();
    {
      const std::lock_guard lock(mutex_);
      phase_ = Phase::starting;
      executor_ = context.executor();
      own_thread_ = std::this_thread::get_id();
      stop = stop_requested_;
    }
    phase_changed_.notify_all();
    if (stop) experiment_->request_stop();
    auto work = experiment_->async_run(context);
    co_await std::move(work);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await async::ignore_cancellation();
  finish(failure);
  // Whoever waits for something hears that it will not come, while there is somebody to tell them.
  for (auto& [trial, job] : jobs_)
    if (job.ended) job.ended->notify();
  changed_->notify();
  const auto under_way = [this] {
    const std::lock_guard lock(mutex_);
    return calls_ != 0;
  };
  while (under_way()) {
    auto change = changed_->wait();
    co_await std::move(change);
  }
  if (failure) std::rethrow_exception(failure);
}

NNI_LAZY_BODY void SessionCore::start() {
  if (claim()) thread_ = std::thread([this] { loop(); });
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return phase_ == Phase::running || phase_ == Phase::over; });
  if (phase_ == Phase::over) {
    if (failure_) std::rethrow_exception(failure_);
    throw_closed();
  }
}

NNI_LAZY_BODY void SessionCore::run() {
  if (on_own_thread()) throw Error(Errc::unsupported, "run: the session's own thread cannot wait for the session");
  if (claim()) loop();
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return phase_ == Phase::over; });
  if (failure_) std::rethrow_exception(failure_);
}

NNI_LAZY_BODY void SessionCore::request_stop() noexcept {
  const std::lock_guard lock(mutex_);
  stop_requested_ = true;
  if (phase_ == Phase::idle) phase_ = Phase::over;  // nothing has begun, so nothing has to end
  if (executor_ && phase_ != Phase::over) experiment_->request_stop();
}

NNI_LAZY_BODY void SessionCore::clean_up() {
  request_stop();
  if (on_own_thread()) return;
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return phase_ == Phase::over; });
  std::thread ended = std::move(thread_);
  const std::exception_ptr failure = failure_;
  lock.unlock();
  if (ended.joinable()) ended.join();
  if (failure) std::rethrow_exception(failure);
}

// ---- calls of other threads ---------------------------------------------------------------------------------------

NNI_LAZY_BODY bool SessionCore::on_own_thread() const {
  const std::lock_guard lock(mutex_);
  return executor_ && phase_ != Phase::over && own_thread_ == std::this_thread::get_id();
}

NNI_LAZY_BODY void SessionCore::throw_closed() const {
  if (phase_ == Phase::idle) throw Error(Errc::closed, "the training session has not started; spawn async_run first");
  throw Error(
      Errc::closed, "the training session has ended" + (failure_ ? ": " + nni::describe(failure_) : std::string()));
}

template <class T>
awaitable<void> SessionCore::answer(std::shared_ptr<std::promise<T>> promise, awaitable<T> work) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(work);
      promise->set_value();
    } else {
      T value = co_await std::move(work);
      promise->set_value(std::move(value));
    }
  } catch (...) {
    promise->set_exception(std::current_exception());
  }
  {
    const std::lock_guard lock(mutex_);
    --calls_;
  }
  changed_->notify();
}

// Blocks the calling thread until the session's has done it.
template <class T>
T SessionCore::call(awaitable<T> work, const char* name) {
  if (on_own_thread())
    throw Error(Errc::unsupported,
                std::string(name) + " would wait on the session's own thread for that thread; await async_" + name +
                    ", or call it from another thread");
  if (claim()) thread_ = std::thread([this] { loop(); });
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return executor_ || phase_ == Phase::over; });
  if (phase_ == Phase::over) throw_closed();
  ++calls_;
  const boost::asio::any_io_executor executor = *executor_;
  lock.unlock();
  const auto promise = std::make_shared<std::promise<T>>();
  std::future<T> result = promise->get_future();
  boost::asio::co_spawn(executor, answer(promise, std::move(work)), boost::asio::detached);
  return result.get();
}

NNI_LAZY_BODY void SessionCore::check_open() const {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::over || !experiment_ || !experiment_->engine()) throw_closed();
}

NNI_LAZY_BODY awaitable<void> SessionCore::ready() {
  const auto starting = [this] {
    const std::lock_guard lock(mutex_);
    return phase_ == Phase::idle || phase_ == Phase::starting;
  };
  while (changed_ && starting()) {
    auto change = changed_->wait();
    co_await std::move(change);
  }
  check_open();
}

}  // namespace nni::detail
