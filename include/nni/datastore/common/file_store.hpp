#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nni/async/cancellation.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/async/offload.hpp>
#include <nni/core/error.hpp>
#include <nni/core/store_event.hpp>
#include <nni/datastore/common/commit_queue.hpp>

namespace nni::datastore::detail {

/// The opened files of an experiment, made on the pool.
template <class Recorder, class Reader>
class OpenedFiles {
 public:
  OpenedFiles() = default;

  std::unique_ptr<Recorder> recorder;  ///< null when read-only
  std::unique_ptr<Reader> reader;
  ExperimentSnapshot snapshot;
  std::vector<std::string> remarks;  ///< repairs of the files, for the log
};

/// The state of a store that keeps an experiment in files, on the executor: the core of a `FileHandle`.
///
/// @tparam Files  how the files are opened, written and read, all of it blocking and called on the pool:
///  - `Recorder`, a `detail::Recorder` with `finish(TimePoint)`, which comes last, and `interrupt()` for any thread;
///  - `Reader` with the reads of a data store and `interrupt()`; it is used beside the recorder;
///  - `open(home, id)`, which gives `OpenedFiles<Recorder, Reader>`.
template <class Files>
class FileStore : public std::enable_shared_from_this<FileStore<Files>> {
 public:
  using Recorder = typename Files::Recorder;
  using Reader = typename Files::Reader;

  FileStore(std::filesystem::path directory, Files files)
      : directory_(std::move(directory)), files_(std::move(files)) {}

  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }

  /// Sets where one experiment has its files.
  void place(std::filesystem::path home, ExperimentId id) {
    home_ = std::move(home);
    placed_ = std::move(id);
  }

  void on_trouble(TroubleListener listener) {
    listener_ = std::move(listener);
    if (queue_) queue_->on_trouble(listener_);
  }
  void stop_retrying() {
    if (queue_) queue_->stop_retrying();
  }

  awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);
  awaitable<void> close();

  /// Returns the queue. @throws Error  when the store is not open for writing
  CommitQueue& queue();

  /// Runs a read on the pool, after everything that was appended before; reads run one at a time.
  /// @param member    of the reader
  /// @param argument  given to it
  /// @returns         its result
  template <class Result, class Argument>
  awaitable<Result> read(Result (Reader::*member)(Argument), std::decay_t<Argument> argument);

 private:
  using Opened = OpenedFiles<Recorder, Reader>;

  /// Sets a flag for a scope and notifies those that wait for its end.
  class Turn {
   public:
    Turn(bool& flag, async::event& ended) : flag_(flag), ended_(ended) { flag_ = true; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      flag_ = false;
      ended_.notify();
    }

   private:
    bool& flag_;
    async::event& ended_;
  };

  static void release(std::unique_ptr<detail::Recorder>& recorder) { recorder.reset(); }

  void require_open() const {
    if (context_ == nullptr) throw Error(Errc::closed, "the data store is not open");
  }

  std::filesystem::path directory_;
  Files files_;
  TroubleListener listener_;
  std::filesystem::path home_;  // of the experiment `placed_`
  ExperimentId placed_;
  bool opening_ = false;
  async::event opened_;
  Context* context_ = nullptr;          // null: closed
  std::shared_ptr<CommitQueue> queue_;  // null when read-only
  std::unique_ptr<Reader> reader_;
  bool reading_ = false;
  async::event read_ended_;
};

template <class Files>
CommitQueue& FileStore<Files>::queue() {
  require_open();
  if (!queue_) throw Error(Errc::unsupported, "the data store was opened read-only; nothing can be recorded");
  return *queue_;
}

template <class Files>
template <class Result, class Argument>
awaitable<Result> FileStore<Files>::read(Result (Reader::*member)(Argument), std::decay_t<Argument> argument) {
  const auto self = this->shared_from_this();
  require_open();
  if (queue_) {
    auto all = queue_->flushed();
    co_await std::move(all);
  }
  while (reading_) co_await read_ended_.wait();
  require_open();
  const Turn turn(reading_, read_ended_);
  auto call = async::offload(
      *context_, std::bind_front(member, reader_.get(), std::move(argument)),
      std::bind_front(&Reader::interrupt, reader_.get()));
  co_return co_await std::move(call);
}

template <class Files>
awaitable<ExperimentSnapshot> FileStore<Files>::open(Context& context, ExperimentId id) {
  const auto self = this->shared_from_this();
  if (id.value.empty() || id.value.find('/') != std::string::npos || id.value[0] == '.')
    throw config_error("id", "\"" + id.value + "\" cannot be the name of a directory; use letters, digits, - and _");
  if (context_ != nullptr || opening_) throw Error(Errc::in_use, "this data store is open already; close it first");
  const Turn turn(opening_, opened_);
  const std::filesystem::path home = id == placed_ ? home_ : directory_ / id.value;
  auto call = async::offload(context, std::bind_front(&Files::open, &files_, home, id.value));
  Opened opened = co_await std::move(call);
  for (const std::string& remark : opened.remarks) context.log().warning("datastore", remark);
  context_ = &context;
  reader_ = std::move(opened.reader);
  if (opened.recorder) {
    queue_ = std::make_shared<CommitQueue>(context, std::move(opened.recorder));
    queue_->on_trouble(listener_);
  }
  co_return std::move(opened.snapshot);
}

template <class Files>
awaitable<void> FileStore<Files>::close() {
  const auto self = this->shared_from_this();
  if (context_ == nullptr) co_return;
  Context& context = *context_;
  std::exception_ptr failure;
  if (queue_) {
    queue_->stop_retrying();
    try {
      auto all = queue_->drained();
      co_await std::move(all);
    } catch (...) {
      // A caller that was cancelled may close again; a store that has failed is freed.
      if (!queue_->failure()) throw;
      failure = std::current_exception();
    }
  }
  while (reading_) co_await read_ended_.wait();
  if (context_ == nullptr) co_return;
  context_ = nullptr;
  const auto queue = std::exchange(queue_, nullptr);
  const TimePoint now = context.clock().now();
  reader_.reset();
  if (queue) {
    std::unique_ptr<detail::Recorder> recorder = queue->take_recorder();
    auto* const writer = static_cast<Recorder*>(recorder.get());
    if (!failure) {
      try {
        auto finish = async::offload(
            context, std::bind_front(&Recorder::finish, writer, now), std::bind_front(&Recorder::interrupt, writer));
        co_await std::move(finish);
      } catch (const Error& error) {
        // Everything that was appended is on the disk; what was left to do is for the convenience of readers.
        if (error.code() == make_error_code(Errc::storage_failed))
          context.log().warning(
              "datastore", std::string("nothing was lost, but the files could not be tidied up: ") + error.what());
        else
          failure = std::current_exception();
      } catch (...) {
        failure = std::current_exception();
      }
    }
    // On the pool as well, since closing a file may take its time. Nobody can cancel it: the file has to be free.
    co_await async::ignore_cancellation();
    auto freeing = async::offload(context, std::bind_front(&FileStore::release, std::ref(recorder)));
    co_await std::move(freeing);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace nni::datastore::detail
