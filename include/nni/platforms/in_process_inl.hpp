#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>

#include <nni/async/event.hpp>
#include <nni/async/timeout.hpp>
#include <nni/core/error.hpp>
#include <nni/core/queue.hpp>
#include <nni/platforms/detail/in_process_pool_inl.hpp>
#include <nni/platforms/in_process.hpp>

namespace nni::platforms {

/// The executor's side: sorts what the threads wrote into events and messages.
class InProcess::Inbox {
 public:
  explicit Inbox(Context& surroundings) : context(&surroundings), ready(surroundings.executor()) {}

  /// True when something arrived. While many messages wait to be taken, further ones stay with the threads, which wait.
  bool fetch(Pool& pool) {
    refused = messages.size() >= most_messages;
    if (refused) return false;
    return pool.take([this](Pool::Item& item) {
      if (auto* metric = std::get_if<Metric>(&item)) {
        messages.emplace_back(std::move(*metric), Receipt{});
        ++sorted;
      } else if (auto* begin = std::get_if<JobStarted>(&item)) {
        events.emplace_back(std::in_place_type<JobStarted>, std::move(*begin));
      } else {
        events.emplace_back(std::in_place_type<JobEnded>, std::move(std::get<JobEnded>(item)));
      }
    });
  }

  static constexpr std::size_t most_messages = 1'024;

  Context* context;
  async::wakeup ready;
  async::event changed;
  Queue<JobEvent> events;
  Queue<TrialMessage> messages;
  std::uint64_t sorted = 0;     // messages put into the queue so far
  std::uint64_t delivered = 0;  // of these, taken out
  std::uint64_t awaited = 0;    // `settle` waits until so many are taken out
  async::event settled;
  bool waiting = false;  // somebody waits on `ready` for all
  bool refused = false;  // threads have announced something that was not fetched
};

NNI_INLINE InProcess::InProcess(std::function<void(TrialHandle&)> trial, InProcessOptions options)
    : trial_(std::move(trial)), options_(options) {
  ProblemList problems;
  if (!trial_) problems.add("trial", "is empty; give a function that takes nni::TrialHandle&");
  if (options_.threads > Pool::most_threads)
    problems.add("threads", std::to_string(options_.threads) + " is more than " + std::to_string(Pool::most_threads));
  problems.throw_if_any();
}

NNI_INLINE InProcess::InProcess(InProcess&&) noexcept = default;
NNI_INLINE InProcess& InProcess::operator=(InProcess&&) noexcept = default;

NNI_INLINE InProcess::~InProcess() {
  if (!pool_) return;
  // Reached when the experiment ended without `clean_up`. The calls are asked to return and waited for.
  pool_->close();
  pool_->abandon();
  pool_->leave_threads(true);
}

NNI_INLINE Capabilities InProcess::capabilities() const noexcept {
  return Capabilities{.multi_phase = true, .needs_command = false};
}

NNI_LAZY_BODY awaitable<void> InProcess::start(Context& context) {
  inbox_ = std::make_unique<Inbox>(context);
  pool_ = std::make_shared<Pool>(trial_, inbox_->ready, context);
  try {
    pool_->launch(options_.threads);
  } catch (...) {
    pool_->close();
    pool_->leave_threads(true);
    pool_.reset();
    throw;
  }
  co_return;
}

NNI_LAZY_BODY awaitable<ResourceSnapshot> InProcess::resources() {
  ResourceSnapshot snapshot;
  snapshot.nodes.emplace_back("localhost");
  co_return snapshot;
}

NNI_LAZY_BODY awaitable<JobId> InProcess::submit_trial_job(TrialJobForm form) {
  if (pool_->stage(std::move(form)))
    boost::asio::post(inbox_->context->executor(), [pool = pool_] { pool->hand_over(); });
  co_return JobId{"call"};
}

NNI_LAZY_BODY awaitable<void> InProcess::cancel_trial_job(RunId run, StopReason reason) {
  if (std::optional<JobEnded> ended = pool_->cancel(run, reason)) {
    inbox_->events.emplace_back(std::in_place_type<JobEnded>, std::move(*ended));
    inbox_->changed.notify();
    inbox_->ready.notify();
  }
  co_return;
}

// Returns when something may have arrived. One of the two readers waits for the threads, the other for the first.
NNI_LAZY_BODY awaitable<void> InProcess::arrive() {
  const bool announced = inbox_->refused;
  if (inbox_->fetch(*pool_)) {
    inbox_->changed.notify();
    // Whoever waits for the threads has had their signal, and found that it was too early.
    if (announced && inbox_->waiting) inbox_->ready.notify();
    co_return;
  }
  if (inbox_->waiting) {
    auto change = inbox_->changed.wait();
    co_await std::move(change);
    co_return;
  }
  inbox_->waiting = true;
  std::exception_ptr failure;
  try {
    auto wake = inbox_->ready.wait();
    co_await std::move(wake);
  } catch (...) {
    failure = std::current_exception();
  }
  inbox_->waiting = false;
  inbox_->fetch(*pool_);
  // Also after a failure: the other reader takes over the wait for the threads.
  inbox_->changed.notify();
  if (failure) std::rethrow_exception(failure);
}

NNI_LAZY_BODY awaitable<JobEvent> InProcess::next_event() {
  while (inbox_->events.empty()) {
    auto arrival = arrive();
    co_await std::move(arrival);
  }
  JobEvent event = std::move(inbox_->events.front());
  inbox_->events.pop_front();
  co_return event;
}

NNI_LAZY_BODY awaitable<TrialMessage> InProcess::next_message() {
  while (inbox_->messages.empty()) {
    auto arrival = arrive();
    co_await std::move(arrival);
  }
  TrialMessage message = std::move(inbox_->messages.front());
  inbox_->messages.pop_front();
  if (++inbox_->delivered == inbox_->awaited) inbox_->settled.notify();
  co_return message;
}

NNI_LAZY_BODY awaitable<void> InProcess::acknowledge(Receipt) { co_return; }

NNI_LAZY_BODY awaitable<void> InProcess::send(RunId run, Parameters parameters) {
  pool_->send(run, std::move(parameters));
  co_return;
}

NNI_LAZY_BODY awaitable<void> InProcess::settle(RunId) {
  // What a run wrote was sorted before its end was, so this waits for the messages that are here now, and for no later
  // one: other runs may report without a break.
  const std::uint64_t last = inbox_->sorted;
  while (inbox_->delivered < last) {
    // Of several that wait, the earliest is resumed first, and sets the next goal when it has to wait again.
    inbox_->awaited = inbox_->awaited > inbox_->delivered ? std::min(inbox_->awaited, last) : last;
    auto change = inbox_->settled.wait();
    co_await std::move(change);
  }
}

NNI_LAZY_BODY awaitable<void> InProcess::clean_up() {
  if (!pool_) co_return;
  pool_->close();
  const SteadyPoint deadline = std::chrono::steady_clock::now() + inbox_->context->shutdown_limit();
  while (pool_->working() != 0 && std::chrono::steady_clock::now() < deadline) {
    auto wake = inbox_->ready.wait();
    auto limited = async::with_timeout(
        std::move(wake), std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now()));
    try {
      co_await std::move(limited);
    } catch (const Error& error) {
      if (error.code() != make_error_code(Errc::timed_out)) throw;
    }
  }
  const std::size_t stuck = pool_->working();
  pool_->abandon();
  pool_->leave_threads(stuck == 0);
  inbox_->events.clear();
  inbox_->messages.clear();
  if (stuck != 0)
    throw Error(Errc::timed_out, "in_process: " + std::to_string(stuck) + " calls ignored their stop token for " +
                                     to_string(inbox_->context->shutdown_limit()) + " and were left behind");
}

}  // namespace nni::platforms
