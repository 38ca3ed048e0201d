#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/async/event.hpp>
#include <nni/async/race.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/core/error.hpp>

namespace nni::testing {

/// The availability of a simulated platform, and counts of rejected requests. Shared by a test and its `Flapping` service.
struct Outage {
  bool away = false;         ///< the platform is unavailable: no starts, stops or queries
  bool accepts = false;      ///< accept a submission nevertheless, and then defer it (`EndKind::deferred`)
  std::size_t starts = 0;    ///< rejected or deferred submissions
  std::size_t cancels = 0;   ///< rejected cancellations
  std::size_t requests = 0;  ///< rejected queries of resources
};

/// A training service with simulated outages of its platform: each submission is rejected with
/// `Errc::connection_lost` or deferred, each cancellation and query of resources is rejected. Live runs continue.
///
/// It tests the reaction of an experiment to outages, for services whose own platform cannot be made to fail.
///
/// @tparam S  the service that does the work
template <TrainingService S>
class Flapping {
 public:
  using role = nni::role::training_service;
  using mount_type = typename S::mount_type;
  static constexpr std::string_view platform = S::platform;
  static constexpr bool ends_come_last = nni::ends_come_last<S>;  ///< as for the service

  /// @param service  the wrapped service
  /// @param outage   controls the availability
  Flapping(S service, std::shared_ptr<Outage> outage)
      : service_(std::move(service)), outage_(std::move(outage)), own_(std::make_unique<Own>()) {}

  /// @name Operations of a training service: forwarded, unless the platform is away.
  /// @{

  /// Returns the capabilities of the service.
  [[nodiscard]] Capabilities capabilities() const noexcept { return service_.capabilities(); }

  awaitable<void> start(Context& context) {
    clock_ = context.clock();
    return service_.start(context);
  }

  awaitable<ResourceSnapshot> resources() {
    refuse_if_away(outage_->requests);
    return service_.resources();
  }

  awaitable<JobId> submit_trial_job(TrialJobForm form) {
    if (outage_->away && outage_->accepts) {
      ++outage_->starts;
      JobEnd end(EndKind::deferred, 0, "the platform is away");
      own_->events.emplace_back(JobEnded(form.run, std::move(end), clock_.now()));
      own_->changed.notify();
      co_return JobId();
    }
    refuse_if_away(outage_->starts);
    auto work = service_.submit_trial_job(std::move(form));
    co_return co_await std::move(work);
  }

  awaitable<void> cancel_trial_job(RunId run, StopReason reason) {
    refuse_if_away(outage_->cancels);
    return service_.cancel_trial_job(run, reason);
  }

  awaitable<JobEvent> next_event() {
    while (own_->events.empty()) {
      auto either = async::race(service_.next_event(), own_->changed.wait());
      auto first = co_await std::move(either);
      if (auto* event = std::get_if<0>(&first)) co_return std::move(*event);
    }
    JobEvent event = std::move(own_->events.front());
    own_->events.pop_front();
    co_return event;
  }

  awaitable<void> clean_up() { return service_.clean_up(); }
  /// @}

  /// @name Optional operations of a training service.
  /// @{

  /// Forwards `directory` and `id`.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id)
    requires UsesExperimentDirectory<S>
  {
    service_.set_experiment_directory(directory, id);
  }
  /// Forwards `life` and `can_resume`.
  void set_experiment_life(const std::string& life, bool can_resume)
    requires UsesExperimentLife<S>
  {
    service_.set_experiment_life(life, can_resume);
  }
  /// Forwards `listener`.
  void on_trouble(TroubleListener listener)
    requires ReportsTrouble<S>
  {
    service_.on_trouble(std::move(listener));
  }
  /// Forwards the end of `run`.
  void recorded(RunId run)
    requires ReleasesRecordedRuns<S>
  {
    service_.recorded(run);
  }
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs)
    requires ResumableService<S>
  {
    return service_.adopt(std::move(runs));
  }
  awaitable<TrialMessage> next_message()
    requires CarriesMessages<S>
  {
    return service_.next_message();
  }
  awaitable<void> acknowledge(Receipt receipt)
    requires CarriesMessages<S>
  {
    return service_.acknowledge(receipt);
  }
  awaitable<void> send(RunId run, Parameters parameters)
    requires CarriesMessages<S>
  {
    return service_.send(run, std::move(parameters));
  }
  awaitable<void> settle(RunId run)
    requires CarriesMessages<S>
  {
    return service_.settle(run);
  }
  /// @}

 private:
  struct Own {
    std::deque<JobEvent> events;
    async::event changed;
  };

  void refuse_if_away(std::size_t& count) const {
    if (!outage_->away) return;
    ++count;
    throw Error(Errc::connection_lost, "the platform is away");
  }

  S service_;
  std::shared_ptr<Outage> outage_;
  std::unique_ptr<Own> own_;
  ClockRef clock_;
};

}  // namespace nni::testing
