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

/// A case of a suite, with its own runtime and thread.
///
/// A policy that never returns is canceled at the limit. One that does not react, or blocks the executor, is
/// leaked together with its thread, because it cannot be ended safely. In both cases the report names the awaited call.
class SupervisedCase {
 public:
  /// @param name   readable name of the case
  /// @param limit  timeout of each of its two parts, and of a clean-up in it
  SupervisedCase(std::string name, Duration limit)
      : name_(std::move(name)),
        limit_(limit),
        patience_(std::min<Duration>(limit, std::chrono::seconds(1))),
        deadline_(steady_now() + limit),
        runtime_(options(limit)) {}
  SupervisedCase(const SupervisedCase&) = delete;
  SupervisedCase& operator=(const SupervisedCase&) = delete;
  virtual ~SupervisedCase() = default;

  /// Runs a case, and adds its results to a report.
  /// @param one     the case; may be shared beyond the return of this call
  /// @param report  receives the results
  /// @returns       false if it had to be abandoned
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
  /// The body of the case.
  virtual awaitable<void> body() = 0;
  /// The clean-up after the body, whatever its outcome.
  virtual awaitable<void> finish() = 0;
  /// Called at the end of a case in which everything returned.
  /// @param idle  no work is left on the executor
  virtual void afterwards(bool idle) = 0;

  /// Returns the context of the policy; its shutdown limit is the limit of the case.
  [[nodiscard]] Context& context() noexcept { return runtime_.context(); }

  /// Sets the promise that any failure until the next call of this function breaks.
  /// @param promise      its number
  /// @param expectation  as a sentence
  void expect(int promise, std::string expectation) {
    const std::lock_guard lock(mutex_);
    if (given_up_) throw Error(Errc::closed, "the suite has given up this case");
    promise_ = promise;
    awaited_ = std::move(expectation);
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

  // Never destroyed: its thread, its pool, or coroutines on its executor may still use it.
  static void leave_behind(std::shared_ptr<SupervisedCase> one) {
    static std::mutex mutex;
    static auto* const left = new std::vector<std::shared_ptr<SupervisedCase>>();
    const std::lock_guard lock(mutex);
    left->push_back(std::move(one));
  }

  // @returns false if the case was abandoned
  bool begin_part() {
    const std::lock_guard lock(mutex_);
    deadline_ = steady_now() + limit_;
    return !given_up_;
  }

  void fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    found_.check(promise_, awaited_, false, "in the case \"" + name_ + "\": " + reason);
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
      // Thrown by a handler that the policy has posted.
      fail(describe(std::current_exception()));
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // @returns false if the case was abandoned
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
    const std::string end = "; the following cases were skipped";
    if (answered_)
      found_.check(promise_, awaited_, false, here + ", and it does not end when it is canceled" + end);
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
  const Duration patience_;  // timeout for canceled work to end, and for an executor to respond
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

  Runtime runtime_;  // destroyed first: work that is left on its executor may access the other members
};

}  // namespace nni::testing::detail
