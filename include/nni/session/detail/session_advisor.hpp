#pragma once

#include <cstddef>
#include <optional>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/trial.hpp>

namespace nni::detail {

/// What a training session wants to hear from its engine. Executor only.
class SessionHooks {
 public:
  virtual void metric_arrived(const Metric& metric) = 0;
  virtual void trial_started(RunId run) = 0;
  /// Everything that the trial reported has been told.
  virtual void trial_ended(TrialId trial) = 0;
  /// Fills in what the caller gave with the trial.
  virtual void complete(TrialId trial, TrialJobForm& form) = 0;
  virtual std::optional<ResourceRequest> request_of(TrialId trial) = 0;

 protected:
  ~SessionHooks() = default;
};

/// The advisor of an experiment that a program drives itself: it suggests nothing, and passes on what it is told.
class SessionAdvisor {
 public:
  using role = nni::role::advisor;
  static constexpr bool brings_commands = true;    ///< a form may have a command of its own
  static constexpr bool hears_every_final = true;  ///< a trial of several phases reports one for each

  explicit SessionAdvisor(SessionHooks& hooks) : hooks_(&hooks) {}

  awaitable<void> start(Context&, const SearchSpace&, const Objectives&) {
    never_ = std::make_unique<async::event>();
    co_return;
  }
  awaitable<void> request(std::size_t) { co_return; }
  awaitable<void> report(const Metric& metric) {
    hooks_->metric_arrived(metric);
    co_return;
  }
  awaitable<void> trial_ended(const TrialOutcome& outcome) {
    hooks_->trial_ended(outcome.trial);
    co_return;
  }
  // Orders go to the engine directly, because their sender wants to know the trial's id.
  awaitable<Order> next_order() {
    auto never = never_->wait();
    co_await std::move(never);
    co_return Order{};
  }
  awaitable<void> stop() { co_return; }

  void trial_started(RunId run) { hooks_->trial_started(run); }
  void complete(TrialId trial, TrialJobForm& form) { hooks_->complete(trial, form); }
  std::optional<ResourceRequest> request_of(TrialId trial) { return hooks_->request_of(trial); }

 private:
  SessionHooks* hooks_;
  std::unique_ptr<async::event> never_;
};

}  // namespace nni::detail
