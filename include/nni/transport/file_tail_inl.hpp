#pragma once

#include <utility>

#include <nni/core/error.hpp>
#include <nni/transport/detail/tail_core.hpp>
#include <nni/transport/file_tail.hpp>

namespace nni::transport {

NNI_INLINE FileTail::FileTail(FileTailOptions options) : options_(std::move(options)) {
  ProblemList problems;
  if (options_.directory.empty() || options_.directory.front() == '/')
    problems.add("directory", "\"" + options_.directory + "\" is not a path below the root of a storage");
  if (options_.max_record_bytes == 0 || options_.max_record_bytes > 1'000'000)
    problems.add("max_record_bytes", std::to_string(options_.max_record_bytes) + " is not between 1 and 1000000");
  if (options_.first_pause <= Duration::zero() || options_.longest_pause < options_.first_pause)
    problems.add("first_pause", to_string(options_.first_pause) + " is not positive and at most longest_pause");
  problems.throw_if_any();
}

NNI_INLINE FileTail::FileTail(FileTail&&) noexcept = default;
NNI_INLINE FileTail& FileTail::operator=(FileTail&&) noexcept = default;
NNI_INLINE FileTail::~FileTail() = default;

NNI_INLINE awaitable<void> FileTail::open(Context& context, detail::TailFiles files) {
  if (!files.root)
    throw config_error(
        "trial_root",
        "is empty, and the storage does not say under which path trials see it; name the "
        "directory where it is mounted for them, for instance /mnt/nni");
  core_ = std::make_shared<detail::TailCore>(context, std::move(files), options_);
  co_return;
}

NNI_INLINE awaitable<void> FileTail::prepare(const TrialJobForm& form) { return core_->prepare(form); }
NNI_INLINE void FileTail::resume(RunId run) { core_->resume(run); }

NNI_INLINE EnvironmentVariables FileTail::environment(RunId run) {
  EnvironmentVariables result;
  result["NNI_SYS_DIR"] = core_->directory_in_trial(run).string();
  // The values with which NNI's library appends to a file; any other platform makes it print.
  result["NNI_PLATFORM"] = "local";
  result["NNI_TRIAL_COMMAND_CHANNEL"] = "";
  result["REUSE_MODE"] = "false";
  return result;
}

NNI_INLINE awaitable<TrialMessage> FileTail::next_message() { return core_->next(); }
NNI_INLINE awaitable<void> FileTail::acknowledge(Receipt) { co_return; }

NNI_INLINE awaitable<void> FileTail::send(RunId run, Parameters parameters) {
  return core_->send(run, std::move(parameters));
}

NNI_INLINE awaitable<void> FileTail::settle(RunId run) { return core_->settle(run); }

NNI_INLINE awaitable<void> FileTail::close() {
  if (!core_) co_return;
  auto closing = core_->close();
  co_await std::move(closing);
}

}  // namespace nni::transport
