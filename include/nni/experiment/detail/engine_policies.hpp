#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <cstddef>
#include <span>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni::detail {

/// The composed policies as the engine calls them, one function for each operation.
///
/// The composition is decided at compile time by `Experiment`, which implements this interface with functions of one line.
/// The engine is behind it so that its loops are compiled once and not again for each composition; a virtual call costs
/// nothing beside the coroutine that it returns. What an operation promises is said by the concept of its policy
/// (nni/concepts/); a hook that a policy does not have is an empty function here.
class EnginePolicies {
 public:
  EnginePolicies() = default;
  EnginePolicies(const EnginePolicies&) = delete;
  EnginePolicies& operator=(const EnginePolicies&) = delete;

  // ---- training service
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;
  virtual awaitable<ResourceSnapshot> resources() = 0;
  virtual awaitable<JobId> submit_trial_job(TrialJobForm form) = 0;
  virtual awaitable<void> cancel_trial_job(RunId run, StopReason reason) = 0;
  virtual awaitable<JobEvent> next_event() = 0;
  virtual void end_recorded(RunId run) = 0;

  // ---- trial channel: the service itself, or a metric transport
  virtual awaitable<TrialMessage> next_message() = 0;
  virtual awaitable<void> acknowledge(Receipt receipt) = 0;
  virtual awaitable<void> send(RunId run, Parameters parameters) = 0;
  virtual awaitable<void> settle(RunId run) = 0;
  [[nodiscard]] virtual bool is_carried() const noexcept = 0;       ///< by the service, which loses no message
  [[nodiscard]] virtual bool ends_come_last() const noexcept = 0;   ///< an end comes behind all messages of its run
  [[nodiscard]] virtual bool prepares_files() const noexcept = 0;   ///< `prepare` has something to wait for
  virtual awaitable<void> prepare(const TrialJobForm& form) = 0;    ///< called if `prepares_files`
  [[nodiscard]] virtual bool resumes_channel() const noexcept = 0;  ///< the channel of an adopted run is opened again
  virtual void resume_channel(RunId run) = 0;

  // ---- scheduler
  virtual PlacementResult place(const ResourceRequest& request, const ResourceSnapshot& resources) = 0;
  virtual void hold(const Placement& placement) = 0;
  virtual void release(const Placement& placement) noexcept = 0;

  // ---- advisor
  virtual awaitable<void> request(std::size_t count) = 0;
  virtual awaitable<void> report(const Metric& metric) = 0;
  virtual awaitable<void> trial_ended(const TrialOutcome& outcome) = 0;
  virtual awaitable<Order> next_order() = 0;
  virtual void trial_started(RunId run) = 0;

  // ---- data store
  virtual StorePosition append(std::vector<StoreEvent>&& events) = 0;
  virtual StorePosition append(std::span<const StoreEvent> events) = 0;
  virtual awaitable<void> written(StorePosition at) = 0;
  virtual awaitable<void> synced(StorePosition at) = 0;

  /// Sets or, with empty functions, removes the listeners to trouble of the store and of the service.
  virtual void on_trouble(TroubleListener of_store, TroubleListener of_service) = 0;

  // ---- what several policies decide together
  virtual ResourceRequest request_of(TrialId trial) = 0;
  virtual TrialJobForm form(TrialId trial, const ResourceRequest& request, Placement placement) = 0;
  virtual void address(TrialJobForm& form) = 0;  ///< adds what only a numbered run has: the address of its channel

  // ---- settings in force
  virtual void settings_changed() = 0;
  [[nodiscard]] virtual bool updates_space() const noexcept = 0;
  virtual void update_search_space(const SearchSpace& space) = 0;  ///< called if `updates_space`
  virtual awaitable<void> count_unfitting() = 0;                   ///< likewise

 protected:
  ~EnginePolicies() = default;
};

}  // namespace nni::detail
