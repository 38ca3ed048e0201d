#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/trial.hpp>

namespace nni::detail {

/// What a training session is notified of by its engine. All are set, and called on the executor.
struct SessionHooks {
  std::function<void(const Metric&)> metric_arrived;
  std::function<void(RunId)> trial_started;
  std::function<void(TrialId)> trial_ended;  ///< after everything that the trial reported
  /// Fills in what the caller gave with the trial.
  std::function<void(TrialId, TrialJobForm&)> complete;
  std::function<std::optional<ResourceRequest>(TrialId)> request_of;
};

/// The advisor of an experiment that a program drives itself: it suggests nothing, and passes on what it is told.
class SessionAdvisor {
 public:
  using role = nni::role::advisor;
  static constexpr bool brings_commands = true;    ///< a form may have a command of its own
  static constexpr bool hears_every_final = true;  ///< a trial of several phases reports one for each

  explicit SessionAdvisor(SessionHooks hooks) : hooks_(std::move(hooks)) {}

  awaitable<void> start(Context&, const SearchSpace&, const Objectives&) {
    never_ = std::make_unique<async::event>();
    co_return;
  }
  awaitable<void> request(std::size_t) { co_return; }
  awaitable<void> report(const Metric& metric) {
    hooks_.metric_arrived(metric);
    co_return;
  }
  awaitable<void> trial_ended(const TrialOutcome& outcome) {
    hooks_.trial_ended(outcome.trial);
    co_return;
  }
  // Orders go to the engine directly, because their sender wants to know the trial's id.
  awaitable<Order> next_order() {
    auto never = never_->wait();
    co_await std::move(never);
    co_return Order{};
  }
  awaitable<void> stop() { co_return; }

  void trial_started(RunId run) { hooks_.trial_started(run); }
  void complete(TrialId trial, TrialJobForm& form) { hooks_.complete(trial, form); }
  std::optional<ResourceRequest> request_of(TrialId trial) { return hooks_.request_of(trial); }

 private:
  SessionHooks hooks_;
  std::unique_ptr<async::event> never_;
};

}  // namespace nni::detail
