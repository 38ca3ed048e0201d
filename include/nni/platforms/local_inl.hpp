#pragma once

#include <nni/platforms/detail/local_core.hpp>
#include <nni/platforms/local.hpp>

#if NNI_WITH_PROCESS

#include <algorithm>
#include <utility>

#include <fcntl.h>

#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/files/open.hpp>
#include <nni/platforms/detail/local_connection_inl.hpp>
#include <nni/platforms/detail/local_core_inl.hpp>
#include <nni/platforms/detail/local_metadata_inl.hpp>
#include <nni/platforms/detail/local_outage_inl.hpp>

namespace nni::platforms {

namespace detail {

inline constexpr std::size_t most_log_bytes = 16 * 1024 * 1024;

/// The end of a file. Anything else that a trial may have made, a FIFO for instance, is not waited for.
NNI_INLINE std::string read_tail(const std::filesystem::path& path, std::size_t most) {
  std::string text;
  const auto failure = files::read_and_close(files::open_own(path.c_str(), O_RDONLY), most, true, text);
  if (failure == boost::system::errc::no_such_file_or_directory)
    throw Error(Errc::not_found, "there is no file " + path.string());
  if (failure) throw Error(Errc::not_found, path.string() + " is not a file with text: " + failure.message());
  return text;
}

struct ReadTail {
  std::filesystem::path path;
  std::string operator()() const { return read_tail(path, most_log_bytes); }
};

NNI_INLINE void LocalCore::set_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  if (options_.directory.empty() && !directory.empty()) directory_ = std::filesystem::absolute(directory);
  experiment_ = id;
}

NNI_INLINE awaitable<std::string> LocalCore::fetch_log(RunId run, std::string stream) const {
  if (stream == "stdout" || stream == "stderr") stream = "trial." + stream;
  if (stream.find('/') != std::string::npos || stream == "..")
    throw Error(Errc::config_invalid, "\"" + stream + "\" is no name of a file in a trial's directory");
  ReadTail work;
  work.path = trials() / to_string(run) / stream;
  auto reading = async::offload(*context_, std::move(work));
  co_return co_await std::move(reading);
}

}  // namespace detail

NNI_INLINE Local::Local(LocalOptions options) : core_(std::make_shared<detail::LocalCore>(std::move(options))) {}
NNI_INLINE Local::Local(Local&&) noexcept = default;
NNI_INLINE Local& Local::operator=(Local&& other) noexcept {
  if (this != &other) {
    if (core_) core_->drop();
    core_ = std::move(other.core_);
  }
  return *this;
}
NNI_INLINE Local::~Local() {
  if (core_) core_->drop();
}

NNI_INLINE void Local::set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) {
  core_->set_directory(directory, id);
}

NNI_INLINE void Local::set_experiment_life(const std::string& life, bool can_resume) {
  core_->set_life(life, can_resume);
}

NNI_INLINE Capabilities Local::capabilities() const noexcept {
  Capabilities result;
  result.multi_phase = true;
  result.survives_manager = core_->options().launch != Launch::direct && core_->remark().empty();
  result.max_in_flight = 1'000'000;
  return result;
}

NNI_INLINE awaitable<void> Local::start(Context& context) { return core_->start(context); }

NNI_INLINE awaitable<ResourceSnapshot> Local::resources() {
  ResourceSnapshot snapshot;
  snapshot.nodes.emplace_back("localhost");
  co_return snapshot;
}

NNI_INLINE awaitable<JobId> Local::submit_trial_job(TrialJobForm form) { return core_->submit(std::move(form)); }

NNI_INLINE awaitable<void> Local::cancel_trial_job(RunId run, StopReason reason) {
  core_->cancel(run, reason);
  co_return;
}

NNI_INLINE awaitable<JobEvent> Local::next_event() { return core_->next_event(); }
NNI_INLINE awaitable<void> Local::clean_up() { return core_->clean_up(); }

NNI_INLINE awaitable<std::vector<JobReport>> Local::adopt(std::vector<Intent> runs) {
  return core_->adopt(std::move(runs));
}

NNI_INLINE awaitable<TrialMessage> Local::next_message() { return core_->next_message(); }

NNI_INLINE awaitable<void> Local::acknowledge(Receipt receipt) {
  core_->acknowledge(receipt);
  co_return;
}

NNI_INLINE awaitable<void> Local::send(RunId run, Parameters parameters) {
  return core_->send(run, std::move(parameters));
}

NNI_INLINE awaitable<void> Local::settle(RunId run) { return core_->settle(run); }
NNI_INLINE void Local::recorded(RunId run) { core_->recorded(run); }
NNI_INLINE void Local::on_trouble(TroubleListener listener) { core_->on_trouble(std::move(listener)); }

NNI_INLINE awaitable<std::string> Local::fetch_log(RunId run, std::string stream) {
  return core_->fetch_log(run, std::move(stream));
}

NNI_INLINE std::filesystem::path Local::directory_of(RunId run) const { return core_->trials() / to_string(run); }
NNI_INLINE bool Local::has_keeper() const noexcept { return core_->has_keeper(); }
NNI_INLINE std::string Local::remark() const { return core_->remark(); }

}  // namespace nni::platforms

#endif  // NNI_WITH_PROCESS
