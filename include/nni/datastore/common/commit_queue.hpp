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
#include <nni/core/store_event.hpp>
#include <nni/datastore/common/group_commit_policy.hpp>

namespace nni::datastore::detail {

/// Writes records somewhere. Its members block, and run on a pool: `record` and `tidy` one after the other, `sync`
/// beside them, `recover` alone.
///
/// A member that fails with `Errc::storage_failed` is called again, after `recover`. Every other exception is final.
class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  /// Hands a batch to the kernel, all of it or nothing.
  /// @param now  wall time
  virtual void record(std::span<const StoreEvent> events, TimePoint now) = 0;

  /// Brings everything that was recorded before the call to the disk.
  virtual void sync() = 0;

  /// True when `tidy` should be called soon. Called on the executor, while nothing else runs.
  [[nodiscard]] virtual bool wants_tidying() const noexcept { return false; }

  /// Work that can wait until a batch is written.
  virtual void tidy() {}

  /// Called after a member has failed and before anything is tried again: goes back to what was recorded last, so that
  /// the same batch can be given once more, and makes up for syncs that have failed.
  virtual void recover() {}
};

/// The way of a store's records from the executor to its recorder: a queue, gathered commits, positions, and those
/// who wait for them.
///
/// Everything but the recorder's work happens on the executor. One batch is written at a time, with as many records
/// as are there; syncs run beside, so that who waits for `written` does not wait for the disk.
///
/// When the recorder cannot write for now, everything stays in the queue, in order, and who waits goes on waiting; it is
/// tried again after a pause that doubles from `first_pause` to `longest_pause`. A final failure, or one after
/// `give_up`, is thrown to all who wait and will wait for what was not reached.
class CommitQueue : public std::enable_shared_from_this<CommitQueue> {
 public:
  /// @param context   outlives the queue
  /// @param recorder  used on the context's pool
  CommitQueue(Context& context, std::unique_ptr<Recorder> recorder);

  static constexpr Duration first_pause = std::chrono::milliseconds(100);
  static constexpr Duration longest_pause = std::chrono::seconds(10);

  /// @param listener  told why records have to wait, and when that is over
  void on_trouble(TroubleListener listener) { listener_ = std::move(listener); }

  /// Makes failures final from now on, after one more try: a call that fails once must not cost the last records.
  void give_up();

  /// Queues records and returns the position behind them.
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
  void tell(const std::string& reason);
  void over(bool& trouble);
  awaitable<std::exception_ptr> attempt(std::function<void()> call);
  awaitable<void> wait_out(std::exception_ptr trouble);
  awaitable<void> rest();
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
  std::uint64_t batch_end_ = 0;  // position behind the batch that is or was recorded last
  std::uint64_t written_ = 0;
  std::uint64_t sync_from_ = nobody;  // the lowest position that somebody wants synced by the next sync
  std::uint64_t sync_end_ = 0;        // position that the running or last sync covers
  std::uint64_t synced_ = 0;

  // Who waits for the batch under way, and who for the next one; the roles change with each batch. So a commit
  // wakes only those whom it concerns.
  async::event written_turns_[2];
  std::size_t batch_turn_ = 0;
  async::event synced_turns_[2];
  std::size_t sync_turn_ = 0;

  // While the recorder cannot write for now.
  TroubleListener listener_;
  std::string told_;
  bool record_in_trouble_ = false;
  bool sync_in_trouble_ = false;
  bool patient_ = true;
  bool last_try_ = true;  // left to who is not patient
  bool recovering_ = false;
  int calls_ = 0;  // of the recorder, under way
  Duration pause_ = first_pause;
  async::event call_ended_;
  async::event recovered_;
  async::event hurried_;

  std::exception_ptr failure_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/common/commit_queue_inl.hpp>
#endif
