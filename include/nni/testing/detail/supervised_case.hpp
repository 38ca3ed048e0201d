#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include <nni/async/detail/child.hpp>
#include <nni/async/runtime.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/core/time.hpp>
#include <nni/testing/checks.hpp>

namespace nni::testing::detail {

/// One case of a suite, with a runtime and a thread of its own.
///
/// A policy that never returns is cancelled at the limit. One that does not listen to that, or blocks the executor, is
/// left behind as it is, thread and all: nothing in it can be ended safely. Either way the report says what was awaited.
class SupervisedCase {
 public:
  /// @param name   of the case, for people
  /// @param limit  for each of its two parts, and for a clean-up in it
  SupervisedCase(std::string name, Duration limit)
      : name_(std::move(name)),
        limit_(limit),
        patience_(std::min<Duration>(limit, std::chrono::seconds(1))),
        deadline_(steady_now() + limit),
        runtime_(options(limit)) {}
  SupervisedCase(const SupervisedCase&) = delete;
  SupervisedCase& operator=(const SupervisedCase&) = delete;
  virtual ~SupervisedCase() = default;

  /// Runs a case, and adds what it found.
  /// @param one     the case; others may go on holding it after this returned
  /// @param report  what was found comes here
  /// @returns       false when it had to be given up
  static bool run(const std::shared_ptr<SupervisedCase>& one, ConformanceReport& report) {
    std::thread thread([one] { one->work(); });
    const bool ended = one->wait();
    if (ended)
      thread.join();
    else
      thread.detach();
    if (!ended || !one->idle_) leave_behind(one);
    const std::lock_guard lock(one->mutex_);
    for (const Check& check : one->found_.checks()) report.check(check.promise, check.name, check.kept, check.detail);
    return ended;
  }

 protected:
  /// What the case does.
  virtual awaitable<void> body() = 0;
  /// What comes behind it, whatever became of it.
  virtual awaitable<void> finish() = 0;
  /// Called at the end of a case in which everything returned.
  /// @param idle  nothing waits on the executor any more
  virtual void afterwards(bool idle) = 0;

  /// The surroundings that the policy is given; its shutdown limit is the limit of the case.
  [[nodiscard]] Context& context() noexcept { return runtime_.context(); }

  /// Says what the next call has to do: whatever goes wrong until the next time is a breach of that.
  /// @param promise  its number
  /// @param what     the expectation, as a sentence
  void expect(int promise, std::string what) {
    const std::lock_guard lock(mutex_);
    if (given_up_) throw Error(Errc::closed, "the suite has given up this case");
    promise_ = promise;
    awaited_ = std::move(what);
  }

  /// Records one check.
  void check(int promise, std::string name, bool kept, std::string seen = {}) {
    const std::lock_guard lock(mutex_);
    found_.check(promise, std::move(name), kept, std::move(seen));
  }

 private:
  static SteadyPoint steady_now() { return std::chrono::steady_clock::now(); }

  static RuntimeOptions options(Duration limit) {
    RuntimeOptions options;
    options.shutdown_limit = limit;
    return options;
  }

  // Never destroyed: its thread, its pool, or what waits on its executor may still use it.
  static void leave_behind(std::shared_ptr<SupervisedCase> one) {
    static std::mutex mutex;
    static auto* const left = new std::vector<std::shared_ptr<SupervisedCase>>();
    const std::lock_guard lock(mutex);
    left->push_back(std::move(one));
  }

  // @returns false when nobody waits for the case any more
  bool begin_part() {
    const std::lock_guard lock(mutex_);
    deadline_ = steady_now() + limit_;
    return !given_up_;
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    found_.check(promise_, awaited_, false, "in the case \"" + name_ + "\": " + why);
  }

  awaitable<void> whole() {
    auto first = part(body());
    co_await std::move(first);
    auto last = part(finish());
    co_await std::move(last);
  }

  awaitable<void> part(awaitable<void> work) {
    begin_part();
    try {
      auto limited = async::with_timeout(std::move(work), limit_);
      co_await std::move(limited);
    } catch (...) {
      fail(describe(std::current_exception()));
    }
  }

  void work() {
    try {
      async::detail::spawn(runtime_.io().get_executor(), whole(),
                           async::detail::Completion([this](const std::exception_ptr&) { runtime_.io().stop(); }));
      runtime_.io().run();
      if (begin_part()) {
        runtime_.io().restart();
        runtime_.io().run_for(patience_);
        idle_ = runtime_.io().stopped();
        if (!failed_) afterwards(idle_);
      }
    } catch (...) {
      // Out of a handler that the policy has posted.
      fail(describe(std::current_exception()));
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // @returns false when the case was given up
  bool wait() {
    std::unique_lock lock(mutex_);
    while (steady_now() < deadline_ + patience_)
      if (changed_.wait_until(lock, deadline_ + patience_, [this] { return ended_; })) return true;
    lock.unlock();
    boost::asio::post(runtime_.io(), [this] { answer(); });
    lock.lock();
    changed_.wait_for(lock, patience_, [this] { return ended_ || answered_; });
    if (ended_) return true;
    given_up_ = true;
    const std::string here = "in the case \"" + name_ + "\": no result within " + to_string(limit_);
    const std::string end = "; the cases behind it were left out";
    if (answered_)
      found_.check(promise_, awaited_, false, here + ", and it does not end when it is cancelled" + end);
    else
      found_.check(1, "no member blocks the executor", false, here + " where this was awaited: " + awaited_ + end);
    runtime_.io().stop();
    return false;
  }

  void answer() {
    const std::lock_guard lock(mutex_);
    answered_ = true;
    changed_.notify_all();
  }

  const std::string name_;
  const Duration limit_;
  const Duration patience_;  // for what was cancelled to end, and for an executor to answer
  bool failed_ = false;      // of the thread of the case, like the next
  bool idle_ = false;

  std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  SteadyPoint deadline_;
  ConformanceReport found_;
  int promise_ = 0;
  std::string awaited_;
  bool ended_ = false;
  bool answered_ = false;
  bool given_up_ = false;

  Runtime runtime_;  // dies first: what is left on its executor may look at the others
};

}  // namespace nni::testing::detail
