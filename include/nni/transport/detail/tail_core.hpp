#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/async/task_group.hpp>
#include <nni/channel/metrics_file.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/mount.hpp>
#include <nni/core/queue.hpp>
#include <nni/core/time.hpp>
#include <nni/core/trial.hpp>
#include <nni/transport/file_tail.hpp>

namespace nni::transport::detail {

/// The state of an open `FileTail`: one reader per live run.
class TailCore : public std::enable_shared_from_this<TailCore> {
 public:
  TailCore(Context& context, TailFiles files, FileTailOptions options)
      : context_(&context), files_(std::move(files)), options_(std::move(options)), readers_(context) {}

  awaitable<void> prepare(TrialJobForm form);
  void resume(RunId run);
  std::filesystem::path directory_in_trial(RunId run) const;
  awaitable<TrialMessage> next();
  awaitable<void> send(RunId run, Parameters parameters);
  awaitable<void> settle(RunId run);
  awaitable<void> close();

 private:
  /// A run whose file is read.
  struct Tail {
    explicit Tail(RunId of, std::size_t max_record) : run(of), reader(max_record) {}
    RunId run;
    ParameterId parameter;
    channel::MetricsFileReader reader;
    std::uint64_t offset = 0;                 // read so far
    std::uint32_t finals = 0;                 // NNI's library numbers all of them 0
    std::optional<std::uint64_t> last_phase;  // index of the newest parameter file; unknown after a resume
    std::size_t undelivered = 0;
    bool over = false;  // the run has ended: one more look, then enough
    bool done = false;
    bool settled = false;  // no further reader
    async::event changed;  // over, done, or a message was taken
  };
  using TailPtr = std::shared_ptr<Tail>;

  RemotePath path_of(RunId run, std::string_view file) const;
  TailPtr begin(RunId run);
  awaitable<void> write(std::string text, RemotePath to);
  awaitable<void> follow(TailPtr tail);
  awaitable<bool> read_more(TailPtr tail);
  enum class Look { nothing, grew, failed };
  awaitable<Look> look(TailPtr tail);
  awaitable<void> pause(TailPtr tail, Duration time);
  awaitable<bool> watch(TailPtr tail);
  void take(Tail& tail, const channel::MetricsFileItem& item);
  void push(Tail& tail, TrialMessage message);
  void forget(const Tail& tail);
  bool has_more_than(std::size_t count, std::size_t bytes) const noexcept {
    return messages_.size() > count || message_bytes_ > bytes;
  }

  Context* context_;
  TailFiles files_;
  FileTailOptions options_;
  async::task_group readers_;
  std::unordered_map<RunId, TailPtr> tails_;
  Queue<TrialMessage> messages_;
  std::size_t message_bytes_ = 0;
  async::event arrived_;
  async::event room_;  // messages were taken
  std::uint64_t last_receipt_ = 0;
  bool closed_ = false;
  bool told_unwatched_ = false;
  bool told_trouble_ = false;
};

}  // namespace nni::transport::detail

#if NNI_HEADER_ONLY
#include <nni/transport/detail/tail_core_inl.hpp>
#endif
