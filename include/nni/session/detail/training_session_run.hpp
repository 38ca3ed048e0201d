// IWYU pragma: private, include <nni/session/training_session.hpp>
#pragma once

/// @file
/// Bodies of `TrainingSession`: its configuration, its life, and how other threads call it. Included by
/// training_session.hpp.

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <nni/core/json.hpp>
#include <nni/session/training_session.hpp>

namespace nni {

// ---- configuration ------------------------------------------------------------------------------------------------

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::set_cluster_metadata(
    const std::string& key, const boost::json::value& value) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::idle)
    throw Error(Errc::in_use, "cluster metadata \"" + key + "\" can be set before the session starts only");
  if constexpr (ConfigurableService<Service>) {
    const auto keys = service_->cluster_metadata_keys();
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return service_->set_cluster_metadata(key, value);
    if (!detail::is_session_key(key))
      detail::throw_unknown_metadata(key, to_json_text(value), Service::platform, {keys.begin(), keys.end()});
  } else if (!detail::is_session_key(key)) {
    detail::throw_unknown_metadata(key, to_json_text(value), Service::platform, {});
  }
  TrainingSessionOptions bound = options_;
  detail::bind_metadata(bound, key, value);
  if (!hands_out_gpus<typename Inner::scheduler_type> && bound.trial_gpu_number.value_or(0) > 0)
    throw config_error("trial_config.gpuNum", detail::no_gpus(*bound.trial_gpu_number));
  options_ = std::move(bound);
}

template <class Service, class... Policies>
boost::json::value TrainingSession<Service, Policies...>::get_cluster_metadata(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string_view> service_keys;
  if constexpr (ConfigurableService<Service>) {
    if (const auto kept = service_metadata_.find(key); kept != service_metadata_.end()) return kept->second;
    if (service_) {
      const auto keys = service_->cluster_metadata_keys();
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) return service_->get_cluster_metadata(key);
      service_keys.assign(keys.begin(), keys.end());
    }
    for (const auto& [kept, value] : service_metadata_) service_keys.push_back(kept);
  }
  if (!detail::is_session_key(key)) detail::throw_unknown_metadata(key, {}, Service::platform, service_keys);
  return detail::metadata_of(options_, key);
}

template <class Service, class... Policies>
bool TrainingSession<Service, Policies...>::is_multi_phase_job_supported() const noexcept {
  if constexpr (Inner::carried)
    return capabilities_.multi_phase;
  else if constexpr (requires { Inner::transport_type::multi_phase; })
    return Inner::transport_type::multi_phase;
  else
    return true;
}

// ---- life ---------------------------------------------------------------------------------------------------------

template <class Service, class... Policies>
TrainingSession<Service, Policies...>::~TrainingSession() {
  request_stop();
  if (thread_.joinable()) thread_.join();
}

// True for the one caller that has to do the work.
template <class Service, class... Policies>
bool TrainingSession<Service, Policies...>::claim() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::idle) return false;
  phase_ = Phase::starting;
  return true;
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::build() {
  const std::lock_guard configuration(mutex_);  // which others may read
  if (options_.multi_phase && !is_multi_phase_job_supported())
    throw config_error("multiPhase", "is true, and trials on " + std::string(Service::platform) +
                                         " cannot be sent further parameters; leave it out");
  if (!options_.nni_manager_ip.empty()) {
    const auto advertise = [this](auto& policy) {
      if constexpr (requires { policy.advertise(options_.nni_manager_ip); }) policy.advertise(options_.nni_manager_ip);
    };
    std::apply([&advertise](auto&... policies) { (advertise(policies), ...); }, policies_);
  }
  if constexpr (ConfigurableService<Service>)
    for (const std::string_view key : service_->cluster_metadata_keys())
      service_metadata_.emplace(key, service_->get_cluster_metadata(std::string(key)));
  inner_ = std::apply(
      [this](auto&... policies) {
        return std::make_unique<Inner>(
            detail::experiment_options(options_), std::move(*service_), std::move(policies)...,
            detail::SessionAdvisor(*this));
      },
      policies_);
  service_.reset();
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
  inner_->observe(std::move(observer));
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::notify_all() {
  phase_changed_.notify_all();
  if (changed_) changed_->notify();
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::loop() noexcept {
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

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::finish(std::exception_ptr failure) noexcept {
  {
    const std::lock_guard lock(mutex_);
    phase_ = Phase::over;
    if (!failure_) failure_ = failure;
  }
  phase_changed_.notify_all();
}

template <class Service, class... Policies>
awaitable<void> TrainingSession<Service, Policies...>::async_run(Context& context) {
  {
    const std::lock_guard lock(mutex_);
    if (!service_)
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
    if (stop) inner_->request_stop();
    auto work = inner_->async_run(context);
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

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::start() {
  if (claim()) thread_ = std::thread([this] { loop(); });
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return phase_ == Phase::running || phase_ == Phase::over; });
  if (phase_ == Phase::over) {
    if (failure_) std::rethrow_exception(failure_);
    throw_closed();
  }
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::run() {
  if (on_own_thread()) throw Error(Errc::unsupported, "run: the session's own thread cannot wait for the session");
  if (claim()) loop();
  std::unique_lock lock(mutex_);
  phase_changed_.wait(lock, [this] { return phase_ == Phase::over; });
  if (failure_) std::rethrow_exception(failure_);
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::request_stop() noexcept {
  const std::lock_guard lock(mutex_);
  stop_requested_ = true;
  if (phase_ == Phase::idle) phase_ = Phase::over;  // nothing has begun, so nothing has to end
  if (executor_ && phase_ != Phase::over) inner_->request_stop();
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::clean_up() {
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

template <class Service, class... Policies>
bool TrainingSession<Service, Policies...>::on_own_thread() const {
  const std::lock_guard lock(mutex_);
  return executor_ && phase_ != Phase::over && own_thread_ == std::this_thread::get_id();
}

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::throw_closed() const {
  if (phase_ == Phase::idle) throw Error(Errc::closed, "the training session has not started; spawn async_run first");
  throw Error(
      Errc::closed, "the training session has ended" + (failure_ ? ": " + nni::describe(failure_) : std::string()));
}

template <class Service, class... Policies>
template <class T>
awaitable<void> TrainingSession<Service, Policies...>::answer(
    std::shared_ptr<std::promise<T>> promise, awaitable<T> work) {
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
template <class Service, class... Policies>
template <class T>
T TrainingSession<Service, Policies...>::call(awaitable<T> work, const char* name) {
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

template <class Service, class... Policies>
void TrainingSession<Service, Policies...>::check_open() const {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::over || !inner_ || !inner_->core_.engine()) throw_closed();
}

template <class Service, class... Policies>
awaitable<void> TrainingSession<Service, Policies...>::ready() {
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

}  // namespace nni
