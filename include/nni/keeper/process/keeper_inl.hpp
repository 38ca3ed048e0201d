#pragma once

#include <nni/keeper/process/keeper.hpp>

#if NNI_WITH_PROCESS

#include <utility>

#include <unistd.h>

#include <nni/core/owner.hpp>
#include <nni/keeper/process/keeper_records_inl.hpp>
#include <nni/keeper/process/keeper_runs_inl.hpp>

namespace nni::keeper {

NNI_INLINE Keeper::Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      log_(std::move(log)),
      spool_(options_.files),
      kill_timer_(executor_),
      write_timer_(executor_) {
  surroundings_.experiment = options_.experiment;
  surroundings_.platform = options_.platform;
  surroundings_.reporter = options_.reporter;
  surroundings_.trials = trials_directory(options_.directory, options_.environment).string();
}

NNI_INLINE std::shared_ptr<Keeper> Keeper::create(
    boost::asio::any_io_executor executor, KeeperOptions options, Log log) {
  return make_owner(std::shared_ptr<Keeper>(new Keeper(std::move(executor), std::move(options), std::move(log))));
}

NNI_INLINE Keeper::~Keeper() {
  if (trials_ >= 0) ::close(trials_);
}

NNI_INLINE void Keeper::open() {
  reaper_.emplace(executor_, options_.scope, [this](const process::Exit& exit) { ended(exit); });
  channel::ServerOptions limits;
  limits.environment = options_.environment;
  channel_ = channel::Server::create(
      executor_, limits, [this](channel::Message message) { received(std::move(message)); }, log_);
  channel_->open();
  flush_soon();  // what `recover` found
}

NNI_INLINE void Keeper::stop() {
  closed_ = true;
  reaper_.reset();
  if (channel_) channel_->stop();
  kill_timer_.cancel();
  write_timer_.cancel();
  listener_ = nullptr;
  trouble_listener_ = nullptr;
  deferral_listener_ = nullptr;
  idle_listener_ = nullptr;
}

NNI_INLINE void Keeper::inherit(const std::vector<std::string>& environment) {
  inherited_ = environment;
  jobs_.clear();  // templates are sent again by whoever sends an environment
}

NNI_INLINE void Keeper::define(JobTemplate job) {
  const std::uint64_t id = job.id;
  jobs_[id] = std::make_shared<PreparedJob>(std::move(job), inherited_, surroundings_);
}

NNI_INLINE void Keeper::stop_by_signal() {
  stopped_by_signal_ = true;
  kill_all(StopReason::experiment_end);
}

NNI_INLINE void Keeper::on_trouble(TroubleListener listener) {
  trouble_listener_ = std::move(listener);
  if (trouble_listener_ && !trouble_.empty()) trouble_listener_(trouble_);
}

NNI_INLINE void Keeper::on_idle(std::function<void()> listener) {
  idle_listener_ = std::move(listener);
  check_idle();
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
