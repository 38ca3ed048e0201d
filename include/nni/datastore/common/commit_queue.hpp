#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/backoff.hpp>
#include <nni/core/store_event.hpp>
#include <nni/datastore/common/group_commit_policy.hpp>

namespace nni::datastore::detail {

/// Writes records to files. Its members block, and run on a pool: `record` and `tidy` one after the other, `sync`
/// concurrently with them, `recover` alone.
///
/// A member that fails with `Errc::storage_failed` is retried after `recover`. Every other exception is final.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// Hands a batch to the kernel, all of it or nothing.
  /// @param now  wall time
  virtual void record(std::span<const StoreEvent> events, TimePoint now) = 0;

  /// Syncs everything that was recorded before the call to the disk.
  virtual void sync() = 0;

  /// True when `tidy` should be called soon. Called on the executor, while nothing else runs.
  [[nodiscard]] virtual bool wants_tidying() const noexcept { return false; }

  /// Work that can wait until a batch is written.
  virtual void tidy() {}

  /// Called after a member has failed and before a retry: rolls back to what was recorded last, so that the same batch
  /// can be recorded again, and repeats syncs that have failed.
  virtual void recover() {}
};

/// The queue of a store's records on their way from the executor to the recorder: group commit, positions, and waiters.
///
/// Everything but the recorder's work happens on the executor. One batch is written at a time, with all records that are
/// queued; syncs run concurrently, so that waiters for `written` do not wait for the disk.
///
/// When the recorder cannot write for now, everything stays in the queue, in order, and waiters keep waiting; the write is
/// retried with exponential backoff from `first_pause` to `longest_pause`. A final failure, or one after
/// `stop_retrying`, is thrown to all present and future waiters for what was not reached.
class CommitQueue : public std::enable_shared_from_this<CommitQueue> {
 public:
  /// @param context   outlives the queue
  /// @param recorder  used on the context's pool
  CommitQueue(Context& context, std::unique_ptr<Recorder> recorder);

  static constexpr Duration first_pause = std::chrono::milliseconds(100);
  static constexpr Duration longest_pause = std::chrono::seconds(10);

  /// @param listener  called with the reason when writing fails, and on recovery
  void on_trouble(TroubleListener listener) { listener_ = std::move(listener); }

  /// Makes failures final from now on, after one more attempt: a call that fails once must not cost the last records.
  void stop_retrying();

  /// Queues records and returns the position after them.
  StorePosition append(std::span<const StoreEvent> events);
  StorePosition append(std::vector<StoreEvent>&& events);  // moves them; values may be large

  /// Suspends until the records up to a position were handed to the kernel.
  [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Suspends until the records up to a position are on the disk.
  [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Suspends until everything that was appended is written, without waiting for more to gather.
  [[nodiscard]] awaitable<void> flushed();

  /// Suspends until everything is synced and nothing runs. The recorder is free afterwards.
  [[nodiscard]] awaitable<void> drained();

  /// Null while nothing has failed.
  [[nodiscard]] const std::exception_ptr& failure() const noexcept { return failure_; }

  /// The recorder, once the queue is drained.
  [[nodiscard]] std::unique_ptr<Recorder> take_recorder() noexcept { return std::move(recorder_); }

 private:
  template <class Iterator>
  StorePosition enqueue(Iterator first, Iterator last);
  void start_writing();
  void start_syncing();
  void wake();
  void fail(std::exception_ptr failure);
  void record_batch(TimePoint now);  // on the pool
  awaitable<void> hold();
  void take_batch();
  awaitable<void> commit();
  void report(const std::string& reason);
  void end_failure(bool& failing);
  awaitable<std::exception_ptr> attempt(std::function<void()> call);
  awaitable<void> recover_from(std::exception_ptr error);
  awaitable<void> wait_before_retry();
  awaitable<void> write_all();
  awaitable<void> sync_all();
  static awaitable<void> run_writing(std::shared_ptr<CommitQueue> self);
  static awaitable<void> run_syncing(std::shared_ptr<CommitQueue> self);

  static constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();

  Context* context_;
  std::unique_ptr<Recorder> recorder_;
  GroupCommitPolicy policy_;
  boost::asio::steady_timer timer_;
  bool writing_ = false;
  bool syncing_ = false;
  bool holding_ = false;
  async::event idle_;

  std::vector<StoreEvent> queue_;
  std::vector<StoreEvent> batch_;  // the recorder's, while it runs
  std::uint64_t appended_ = 0;
  std::uint64_t batch_end_ = 0;  // position after the batch that is or was recorded last
  std::uint64_t written_ = 0;
  std::uint64_t sync_from_ = nobody;  // the lowest position that waits for the next sync
  std::uint64_t sync_end_ = 0;        // position that the running or last sync covers
  std::uint64_t synced_ = 0;

  // Waiters for the batch in progress, and for the next one; the roles change with each batch. So a commit resumes only
  // the waiters that it concerns.
  async::event written_turns_[2];
  std::size_t batch_turn_ = 0;
  async::event synced_turns_[2];
  std::size_t sync_turn_ = 0;

  // Retries of a recorder that cannot write for now.
  TroubleListener listener_;
  std::string reported_;
  bool record_failing_ = false;
  bool sync_failing_ = false;
  bool may_retry_ = true;
  bool last_attempt_left_ = true;  // after `stop_retrying`
  bool recovering_ = false;
  int calls_ = 0;  // of the recorder, in progress
  ExponentialBackoff backoff_{first_pause, longest_pause};
  async::event call_ended_;
  async::event recovered_;
  async::event retry_now_;

  std::exception_ptr failure_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/commit_queue_inl.hpp>
#endif
