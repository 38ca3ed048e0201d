#pragma once

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <nni/async/cancellation.hpp>
#include <nni/async/offload.hpp>
#include <nni/async/race.hpp>
#include <nni/channel/protocol.hpp>
#include <nni/core/error.hpp>
#include <nni/files/file.hpp>
#include <nni/transport/detail/tail_core.hpp>

namespace nni::transport::detail {

inline constexpr std::size_t tail_chunk = 64 * 1024;

// Beyond this, what trials have written waits in their files.
inline constexpr std::size_t most_tail_messages = 10'000;
inline constexpr std::size_t most_tail_bytes = 16 * 1024 * 1024;

/// A directory of this machine for as long as files are on their way to the storage.
class OutgoingFiles {
 public:
  OutgoingFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "nni-files-XXXXXX").string();
    if (!::mkdtemp(name.data()))
      throw Error(
          boost::system::error_code(errno, boost::system::system_category()),
          "file tail: no temporary directory can be made in " + std::filesystem::temp_directory_path().string());
    path_ = name;
  }
  OutgoingFiles(const OutgoingFiles&) = delete;
  OutgoingFiles& operator=(const OutgoingFiles&) = delete;
  ~OutgoingFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const noexcept { return path_; }

  void write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    files::File file;
    boost::system::error_code failure = file.open(path_ / name, files::Access::fresh);
    if (!failure) failure = file.write(text, 0);
    if (failure)
      throw Error(
          Errc::storage_failed, "file tail: cannot write " + (path_ / name).string() + ": " + failure.message());
  }

 private:
  std::filesystem::path path_;
};

// Named, because lambdas of functions that are compiled once have no name that a template may use.
struct WriteRun {
  std::string record;
  std::shared_ptr<OutgoingFiles> operator()() const {
    auto files = std::make_shared<OutgoingFiles>();
    files->write("run/parameter.cfg", record);
    files->write("run/.nni/metrics", {});  // it is watched from before the trial starts
    return files;
  }
};
struct WriteOne {
  std::string text;
  std::shared_ptr<OutgoingFiles> operator()() const {
    auto files = std::make_shared<OutgoingFiles>();
    files->write("one", text);
    return files;
  }
};
struct RemoveFiles {
  std::shared_ptr<OutgoingFiles> files;
  void operator()() { files.reset(); }
};

NNI_INLINE RemotePath TailCore::path_of(RunId run, std::string_view file) const {
  std::string path = options_.directory + "/" + to_string(run);
  if (!file.empty()) path += "/" + std::string(file);
  return RemotePath(std::move(path));
}

NNI_INLINE std::filesystem::path TailCore::directory_in_trial(RunId run) const {
  return files_.root(run.trial) / path_of(run, {}).value;
}

// ---- parameters ---------------------------------------------------------------------------------------------------

NNI_INLINE awaitable<void> TailCore::prepare(TrialJobForm form) {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  WriteRun work;
  work.record = channel::parameter_record(form.parameter, form.parameters);
  auto writing = async::offload(*context_, std::move(work));
  const std::shared_ptr<OutgoingFiles> files = co_await std::move(writing);
  auto uploading = files_.upload(files->path() / "run", path_of(form.run, {}));
  co_await std::move(uploading);
  RemoveFiles removal;
  removal.files = files;
  auto removing = async::offload(*context_, std::move(removal));
  co_await std::move(removing);
  const TailPtr tail = begin(form.run);
  tail->parameter = form.parameter;
  tail->last_phase = 0;
  auto watching = watch(tail);  // before the trial can write
  const bool watched = co_await std::move(watching);
  static_cast<void>(watched);
  readers_.spawn(follow(tail));
}

NNI_INLINE void TailCore::resume(RunId run) {
  const TailPtr tail = begin(run);
  tail->parameter = ParameterId{run.trial.sequence()};
  readers_.spawn(follow(tail));
}

NNI_INLINE TailCore::TailPtr TailCore::begin(RunId run) {
  TailPtr& tail = tails_[run];
  if (!tail) tail = std::make_shared<Tail>(run, options_.max_record_bytes);
  return tail;
}

NNI_INLINE awaitable<void> TailCore::write(std::string text, RemotePath to) {
  WriteOne work;
  work.text = std::move(text);
  auto writing = async::offload(*context_, std::move(work));
  const std::shared_ptr<OutgoingFiles> files = co_await std::move(writing);
  auto uploading = files_.upload(files->path() / "one", std::move(to));
  co_await std::move(uploading);
}

/// The number in `parameter_N.cfg`; 0 for other names.
NNI_INLINE std::uint64_t phase_in(std::string_view name) noexcept {
  constexpr std::string_view before = "parameter_";
  constexpr std::string_view suffix = ".cfg";
  if (!name.starts_with(before) || !name.ends_with(suffix) || name.size() <= before.size() + suffix.size()) return 0;
  const std::string_view digits = name.substr(before.size(), name.size() - before.size() - suffix.size());
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return failure == std::errc() && end == digits.data() + digits.size() ? number : 0;
}

NNI_INLINE awaitable<void> TailCore::send(RunId run, Parameters parameters) {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  const auto found = tails_.find(run);
  if (found == tails_.end() || found->second->over)
    throw Error(Errc::no_such_job, "file tail: run " + to_string(run) + " is not known; it may have ended");
  const TailPtr tail = found->second;
  if (!tail->last_phase) {
    auto listing = files_.list(path_of(run, {}));
    const std::vector<FileInfo> files = co_await std::move(listing);
    std::uint64_t last = 0;
    for (const FileInfo& file : files) last = std::max(last, phase_in(file.name));
    if (!tail->last_phase) tail->last_phase = last;
  }
  const std::uint64_t index = ++*tail->last_phase;
  std::string record = channel::parameter_record(tail->parameter, parameters, index);
  auto writing = write(std::move(record), path_of(run, "parameter_" + std::to_string(index) + ".cfg"));
  co_await std::move(writing);
}

// ---- results --------------------------------------------------------------------------------------------------------

// Begins to watch the file, or waits for its next change. @returns false where it cannot be watched
NNI_INLINE awaitable<bool> TailCore::watch(TailPtr tail) {
  if (!files_.changed) co_return false;
  std::string trouble;
  try {
    auto change = files_.changed(path_of(tail->run, ".nni/metrics"));
    auto ended = tail->changed.wait();
    auto first = async::race(std::move(change), std::move(ended));
    co_await std::move(first);
    co_return true;
  } catch (const std::exception& error) {
    if (async::is_cancellation(std::current_exception())) throw;
    trouble = error.what();
  }
  if (!std::exchange(told_unwatched_, true))
    context_->log().info(
        "file tail", "files are looked at from time to time, because they cannot be watched: " + trouble);
  co_return false;
}

NNI_INLINE awaitable<void> TailCore::pause(TailPtr tail, Duration time) {
  auto sleep = context_->clock().sleep_until(context_->clock().steady_now() + time);
  auto ended = tail->changed.wait();
  auto first = async::race(std::move(sleep), std::move(ended));
  co_await std::move(first);
}

NNI_INLINE awaitable<void> TailCore::follow(TailPtr tail) {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  Duration wait = options_.first_pause;
  while (true) {
    const bool last = tail->over;
    auto looking = look(tail);
    const Look outcome = co_await std::move(looking);
    const bool failed = outcome == Look::failed;
    if (last && !failed) break;
    if (!last && tail->over) continue;
    // A change that could not be read is not reported again.
    if (!failed) {
      auto watching = watch(tail);
      const bool watched = co_await std::move(watching);
      if (watched) continue;
      if (tail->over) continue;
    }
    if (outcome == Look::grew) wait = options_.first_pause;
    auto pausing = pause(tail, wait);
    co_await std::move(pausing);
    wait = std::min(wait * 2, options_.longest_pause);
  }
  while (const auto left = tail->reader.finish()) take(*tail, *left);
  tail->done = true;
  tail->changed.notify();
  forget(*tail);
}

// Reads to the end of the file. A storage that fails is asked again later: what it holds is not lost.
NNI_INLINE awaitable<TailCore::Look> TailCore::look(TailPtr tail) {
  Look outcome = Look::nothing;
  std::string trouble;
  try {
    bool more = true;
    while (more) {
      while (has_more_than(most_tail_messages, most_tail_bytes)) {
        auto room = room_.wait();
        co_await std::move(room);
      }
      auto reading = read_more(tail);
      more = co_await std::move(reading);
      if (more) outcome = Look::grew;
    }
  } catch (const Error& error) {
    if (async::is_cancellation(std::current_exception())) throw;
    if (error.code() != make_error_code(Errc::not_found)) trouble = error.what();
  } catch (const std::exception& error) {
    if (async::is_cancellation(std::current_exception())) throw;
    trouble = error.what();
  }
  if (!trouble.empty() && !std::exchange(told_trouble_, true))
    context_->log().warning("file tail", "results could not be read and are asked for again: " + trouble);
  if (!trouble.empty()) outcome = Look::failed;
  co_return outcome;
}

NNI_INLINE awaitable<bool> TailCore::read_more(TailPtr tail) {
  auto reading = files_.read(path_of(tail->run, ".nni/metrics"), tail->offset, tail_chunk);
  const std::string bytes = co_await std::move(reading);
  if (bytes.empty()) co_return false;
  tail->offset += bytes.size();
  tail->reader.feed(bytes);
  while (const auto item = tail->reader.next()) take(*tail, *item);
  co_return true;
}

NNI_INLINE void TailCore::take(Tail& tail, const channel::MetricsFileItem& item) {
  const Receipt receipt{++last_receipt_};
  if (!item.record) return push(tail, TrialMessage::not_understood(tail.run, item.text, receipt));
  // A trial of several phases says that it waits; it finds its file when there is one.
  if (channel::raw_member(item.text, "type") == "\"REQUEST_PARAMETER\"") return;
  Result<channel::MetricPayload> payload = channel::decode_metric_payload(item.text);
  if (!payload) return push(tail, TrialMessage::not_understood(tail.run, payload.error().message(), receipt));
  const bool is_final = payload->kind == MetricKind::final;
  const std::uint32_t sequence = is_final ? tail.finals++ : payload->sequence;
  Metric metric(tail.run, payload->kind, sequence, std::move(payload->value), context_->clock().now());
  push(tail, TrialMessage(std::move(metric), receipt));
}

NNI_INLINE void TailCore::push(Tail& tail, TrialMessage message) {
  if (closed_) return;
  ++tail.undelivered;
  message_bytes_ += message.metric.value.size() + message.text.size();
  messages_.push_back(std::move(message));
  arrived_.notify();
}

NNI_INLINE awaitable<TrialMessage> TailCore::next() {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  while (messages_.empty()) {
    if (closed_) throw Error(Errc::closed, "the channel to the trials is closed");
    auto arrival = arrived_.wait();
    co_await std::move(arrival);
  }
  TrialMessage message = std::move(messages_.front());
  messages_.pop_front();
  message_bytes_ -= message.metric.value.size() + message.text.size();
  if (!has_more_than(most_tail_messages / 2, most_tail_bytes / 2)) room_.notify();
  if (const auto found = tails_.find(message.metric.run); found != tails_.end()) {
    const TailPtr tail = found->second;
    // A reader that waits for its file must not be woken by this.
    if (--tail->undelivered == 0 && tail->done) tail->changed.notify();
    forget(*tail);
  }
  co_return message;
}

NNI_INLINE awaitable<void> TailCore::settle(RunId run) {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  const auto found = tails_.find(run);
  if (found == tails_.end()) co_return;
  const TailPtr tail = found->second;
  tail->over = true;
  tail->settled = true;
  tail->changed.notify();
  while ((!tail->done || tail->undelivered != 0) && !closed_) {
    auto change = tail->changed.wait();
    co_await std::move(change);
  }
  forget(*tail);
}

// A run that was settled, read to its end, and whose messages were all taken needs no memory.
NNI_INLINE void TailCore::forget(const Tail& tail) {
  if (tail.settled && tail.done && tail.undelivered == 0) tails_.erase(tail.run);
}

NNI_INLINE awaitable<void> TailCore::close() {
  const std::shared_ptr<TailCore> keep = shared_from_this();
  closed_ = true;
  arrived_.notify();
  readers_.cancel();
  auto ending = readers_.join();
  co_await std::move(ending);
  for (auto& [run, tail] : tails_) tail->changed.notify();
  tails_.clear();
  messages_.clear();
  message_bytes_ = 0;
}

}  // namespace nni::transport::detail
