#pragma once

/// @file
/// `InProcess::Pool`: the threads of `platforms::InProcess`. Included by in_process_inl.hpp.

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <nni/async/event.hpp>
#include <nni/core/error.hpp>
#include <nni/core/log.hpp>
#include <nni/core/queue.hpp>
#include <nni/platforms/in_process.hpp>

namespace nni::platforms {

/// The threads and what they share with the executor. Held by a shared pointer, so that a thread that had to be left
/// behind finds it alive.
///
/// Jobs come through one queue. Events of a thread go into an outbox of its own: what one run writes stays in
/// order, and threads do not wait for each other.
class InProcess::Pool : public std::enable_shared_from_this<InProcess::Pool> {
 public:
  using Item = std::variant<JobStarted, Metric, JobEnded>;

  static constexpr std::size_t most_threads = 4096;

  Pool(std::function<void(TrialHandle&)> trial, async::wakeup& ready, Context& context)
      : trial_(std::move(trial)), ready_(&ready), clock_(context.clock()), log_(context.log()) {}

  /// Starts the threads, on the executor.
  /// @param count  0: one now, and one more whenever calls outnumber threads
  /// @throws Error  when the system gives one no thread; those that were started wait for `close`
  void launch(std::size_t count) {
    grows_ = count == 0;
    const std::size_t wanted = std::max<std::size_t>(count, 1);
    while (threads_.size() < wanted) {
      const std::error_code failure = add_thread();
      if (failure)
        throw Error(
            failure,
            "in_process: thread " + std::to_string(threads_.size() + 1) + " of " + std::to_string(wanted) +
                " could not be started: " + failure.message() +
                "; set a smaller .threads of nni::platforms::InProcessOptions, or raise the limits on "
                "processes (ulimit -u) and memory");
    }
  }

  /// Waits for the threads to end, or lets go of them.
  void leave_threads(bool join) {
    for (std::thread& thread : threads_) {
      if (join)
        thread.join();
      else
        thread.detach();
    }
    threads_.clear();
  }

  /// Keeps a job until `hand_over`, on the executor. Jobs come in bursts, when a batch of intents is recorded; threads
  /// that are woken by the first of them would fight with the executor for the lock at each of the others.
  /// @returns true when `hand_over` has to be called soon
  bool stage(TrialJobForm form) {
    staged_.push_back(std::move(form));
    return staged_.size() == 1;
  }

  /// Lets the threads have what was staged.
  void hand_over() {
    if (staged_.empty()) return;
    std::size_t missing = 0;
    {
      const std::lock_guard lock(mutex_);
      for (TrialJobForm& form : staged_) {
        if (!calls_.try_emplace(form.run).second) continue;
        queue_.push_back(std::move(form));
      }
      const std::size_t useful = std::min(calls_.size(), most_threads);
      if (grows_ && queue_.size() > idle_ && useful > threads_.size())
        missing = std::min(queue_.size() - idle_, useful - threads_.size());
    }
    for (; missing != 0 && grows_; --missing) {
      const std::error_code failure = add_thread();
      if (!failure) continue;
      grows_ = false;  // the calls take turns
      log_.warning(
          "in_process", "only " + std::to_string(threads_.size()) +
                            " calls run at a time, because no further thread could be started: " + failure.message());
    }
    if (staged_.size() == 1)
      work_.notify_one();
    else
      work_.notify_all();
    staged_.clear();
  }

  /// @returns the end of a run that had not begun
  std::optional<JobEnded> cancel(RunId run, StopReason reason) {
    hand_over();
    const std::lock_guard lock(mutex_);
    const auto call = calls_.find(run);
    if (call == calls_.end())
      throw Error(Errc::no_such_job,
                  "in_process: run " + to_string(run) + " is not known; it has ended or was never submitted");
    call->second.stop_reason = reason;
    if (call->second.stop) {
      call->second.stop->request_stop();
      return std::nullopt;
    }
    queue_.erase(
        std::find_if(queue_.begin(), queue_.end(), [run](const TrialJobForm& form) { return form.run == run; }));
    calls_.erase(call);
    JobEnd end{EndKind::killed, 0, "stopped before it started"};
    end.why = reason;
    return JobEnded{run, std::move(end), clock_.now()};
  }

  /// Queues further parameters for a run that has not ended.
  void send(RunId run, Parameters parameters) {
    hand_over();
    const std::lock_guard lock(mutex_);
    const auto call = calls_.find(run);
    if (call == calls_.end())
      throw Error(Errc::no_such_job,
                  "in_process: run " + to_string(run) + " is not known; it has ended or was never submitted");
    call->second.further.push_back(std::move(parameters));
    further_.notify_all();
  }

  /// Calls a function with everything that the threads have written so far. @returns true when there was something
  template <class Sort>
  bool take(const Sort& sort) {
    bool any = false;
    for (Outbox& outbox : outboxes_) {
      {
        const std::lock_guard lock(outbox.mutex);
        std::swap(taken_, outbox.items);
        if (std::exchange(outbox.full, false)) outbox.space.notify_all();
      }
      any = any || !taken_.empty();
      for (Item& item : taken_) sort(item);
      taken_.clear();
    }
    return any;
  }

  /// Asks every call to return, lets idle threads end, and drops events of threads from now on.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      queue_.clear();
      for (auto& [run, call] : calls_)
        if (call.stop) call.stop->request_stop();
      work_.notify_all();
    }
    for (Outbox& outbox : outboxes_) {
      const std::lock_guard lock(outbox.mutex);
      outbox.closing = true;
      outbox.items.clear();
      outbox.space.notify_all();
    }
  }

  /// Threads that have not ended.
  std::size_t working() {
    const std::lock_guard lock(mutex_);
    return working_;
  }

  /// Nobody listens any more.
  void abandon() {
    const std::lock_guard lock(ready_mutex_);
    ready_ = nullptr;
  }

 private:
  struct Call {
    std::optional<std::stop_source> stop;  // set while it runs
    std::optional<StopReason> stop_reason;
    std::deque<Parameters> further;  // sent, and not taken by the callable
  };

  struct Outbox {
    std::mutex mutex;
    std::condition_variable space;
    std::vector<Item> items;
    bool full = false;
    bool closing = false;
  };

  // Items of one thread that wait for the executor at most; beyond, the thread waits. A turn of the executor takes all of
  // them, so what another thread wrote waits for no more than this.
  static constexpr std::size_t outbox_limit = 1'024;

  std::error_code add_thread() {
    {
      const std::lock_guard lock(mutex_);
      ++working_;
      ++idle_;
    }
    std::error_code failure;
    try {
      // One for each thread; that of a thread that could not be started is for the next.
      if (outboxes_.size() == threads_.size()) outboxes_.emplace_back();
      Outbox& outbox = outboxes_.back();
      threads_.emplace_back([pool = shared_from_this(), &outbox] { pool->work(outbox); });
    } catch (const std::system_error& error) {
      failure = error.code();
    } catch (const std::bad_alloc&) {
      failure = std::make_error_code(std::errc::not_enough_memory);
    }
    if (failure) {
      const std::lock_guard lock(mutex_);
      --working_;
      --idle_;
    }
    return failure;
  }

  void put(Outbox& outbox, Item item) {
    {
      std::unique_lock lock(outbox.mutex);
      while (outbox.items.size() >= outbox_limit && !outbox.closing) {
        outbox.full = true;
        outbox.space.wait(lock);
      }
      if (outbox.closing) return;  // after clean-up there are no events
      outbox.items.push_back(std::move(item));
    }
    wake();
  }

  void wake() {
    const std::lock_guard lock(ready_mutex_);
    if (ready_) ready_->notify();
  }

  void work(Outbox& outbox) {
    std::optional<JobEnded>
        ended;  // of the job before: reported after the next one is taken, with one turn at the lock
    std::unique_lock lock(mutex_);
    while (true) {
      if (ended) leave(*ended);
      if (ended && (closing_ || queue_.empty())) {
        lock.unlock();
        put(outbox, *std::exchange(ended, std::nullopt));
        lock.lock();
      }
      work_.wait(lock, [this] { return closing_ || !queue_.empty(); });
      if (closing_) break;
      --idle_;
      const TrialJobForm form = std::move(queue_.front());
      queue_.pop_front();
      const std::stop_source stop;
      calls_[form.run].stop = stop;
      lock.unlock();
      if (ended) put(outbox, *std::exchange(ended, std::nullopt));
      put(outbox, JobStarted{form.run, JobId{"call"}, clock_.now()});
      JobEnd end = call(outbox, form, stop.get_token());
      ended = JobEnded{form.run, std::move(end), clock_.now()};
      lock.lock();
      ++idle_;
    }
    --working_;
    lock.unlock();
    wake();
  }

  // Under the lock: the run can no longer be stopped.
  void leave(JobEnded& ended) {
    const auto entry = calls_.find(ended.run);
    if (entry == calls_.end()) return;
    ended.end.why = entry->second.stop_reason;
    calls_.erase(entry);
  }

  std::optional<Parameters> wait_for_parameters(RunId run, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    std::deque<Parameters>& further = calls_.at(run).further;  // the entry stays until the call has returned
    if (!further_.wait(lock, stop, [&further] { return !further.empty(); })) return std::nullopt;
    Parameters next = std::move(further.front());
    further.pop_front();
    return next;
  }

  JobEnd call(Outbox& outbox, const TrialJobForm& form, const std::stop_token& stop) {
    const TrialHandle::Report report =
        [this, &outbox, run = form.run](MetricKind kind, std::uint32_t sequence, std::string value) {
          put(outbox, Metric{run, kind, sequence, std::move(value), clock_.now()});
        };
    const TrialHandle::More more = [this, &stop, run = form.run] { return wait_for_parameters(run, stop); };
    try {
      TrialHandle handle(form.run, form.parameters, stop, report, &more);
      trial_(handle);
      return JobEnd{EndKind::exited, 0};
    } catch (...) {
      if (stop.stop_requested()) return JobEnd{EndKind::killed, 0, describe(std::current_exception())};
      return JobEnd{EndKind::threw, 0, describe(std::current_exception())};
    }
  }

  const std::function<void(TrialHandle&)> trial_;
  std::mutex ready_mutex_;
  async::wakeup* ready_;
  ClockRef clock_;
  Log log_;

  std::mutex mutex_;  // guards the following seven
  std::condition_variable work_;
  std::condition_variable_any further_;
  Queue<TrialJobForm> queue_;
  std::unordered_map<RunId, Call> calls_;
  std::size_t working_ = 0;  // threads that have not ended
  std::size_t idle_ = 0;     // of these, without a call; counted from the moment in which they are asked for
  bool closing_ = false;

  // Of the executor, as what follows; a thread knows its own outbox only.
  std::deque<Outbox> outboxes_;
  std::vector<std::thread> threads_;
  bool grows_ = false;
  std::vector<Item> taken_;  // kept for its memory
  std::vector<TrialJobForm> staged_;
};

}  // namespace nni::platforms
