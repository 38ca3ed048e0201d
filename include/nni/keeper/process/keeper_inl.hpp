#pragma once

#include <nni/keeper/process/keeper.hpp>
#include <nni/keeper/process/keeper_core.hpp>

#if NNI_WITH_PROCESS

#include <utility>

#include <nni/keeper/process/keeper_core_inl.hpp>
#include <nni/keeper/process/keeper_records_inl.hpp>

namespace nni::keeper {

NNI_INLINE Keeper::Keeper(boost::asio::any_io_executor executor, KeeperOptions options, Log log)
    : core_(std::make_shared<detail::KeeperCore>(std::move(executor), std::move(options), std::move(log))) {}

NNI_INLINE Keeper::~Keeper() { core_->stop(); }

NNI_INLINE void Keeper::recover() { core_->recover(); }

NNI_INLINE awaitable<void> Keeper::open() {
  core_->open();
  return core_->open_channel();
}

NNI_INLINE void Keeper::inherit(const std::vector<std::string>& environment) { core_->inherit(environment); }
NNI_INLINE void Keeper::define(JobTemplate job) { core_->define(std::move(job)); }
NNI_INLINE bool Keeper::enter_life(const std::string& life) { return core_->enter_life(life); }
NNI_INLINE std::string Keeper::start(StartOrder order) { return core_->start(std::move(order)); }
NNI_INLINE void Keeper::kill(RunId run, StopReason why) { core_->kill(run, why); }
NNI_INLINE void Keeper::kill_all(StopReason why) { core_->kill_all(why); }
NNI_INLINE void Keeper::stop_by_signal() {
  core_->stopped_by_signal_ = true;
  core_->kill_all(StopReason::experiment_end);
}
NNI_INLINE void Keeper::send(RunId run, std::string record) { core_->send(run, std::move(record)); }
NNI_INLINE void Keeper::acknowledge(const std::vector<AcknowledgedRange>& ranges) { core_->acknowledge(ranges); }
NNI_INLINE void Keeper::on_records(Listener listener) { core_->listener_ = std::move(listener); }
NNI_INLINE void Keeper::on_trouble(TroubleListener listener) { core_->on_trouble(std::move(listener)); }

NNI_INLINE void Keeper::on_deferred(DeferralListener listener) { core_->deferral_listener_ = std::move(listener); }

NNI_INLINE void Keeper::on_idle(std::function<void()> listener) {
  core_->idle_listener_ = std::move(listener);
  core_->check_idle();
}

NNI_INLINE Welcome Keeper::welcome() const { return core_->welcome(); }
NNI_INLINE std::uint64_t Keeper::replay(std::uint64_t from, std::size_t max_bytes, std::string& out) {
  return core_->replay(from, max_bytes, out);
}
NNI_INLINE std::uint64_t Keeper::written_end() const noexcept { return core_->spool_.written_end(); }
NNI_INLINE std::size_t Keeper::live() const noexcept { return core_->live(); }
NNI_INLINE std::size_t Keeper::unacknowledged() const noexcept { return core_->spool_.unacknowledged(); }
NNI_INLINE unsigned short Keeper::port() const noexcept {
  return core_->channel_ ? core_->channel_->port() : static_cast<unsigned short>(0);
}
NNI_INLINE awaitable<void> Keeper::close() { return core_->close(); }

NNI_INLINE std::filesystem::path keeper_directory(const std::filesystem::path& experiment_directory) {
  return experiment_directory / "keeper";
}

NNI_INLINE std::filesystem::path trials_directory(
    const std::filesystem::path& experiment_directory, std::string_view environment) {
  return experiment_directory / "environments" / environment / "trials";
}

}  // namespace nni::keeper

#endif  // NNI_WITH_PROCESS
