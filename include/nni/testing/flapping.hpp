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

/// Whether a platform is away, and what it refused meanwhile. Shared by a test and its `Flapping` service.
struct Outage {
  bool away = false;         ///< nothing can be started, stopped or asked
  bool accepts = false;      ///< a submission is accepted nevertheless, and then deferred (`EndKind::deferred`)
  std::size_t starts = 0;    ///< submissions that were refused or deferred
  std::size_t cancels = 0;   ///< cancellations that were refused
  std::size_t requests = 0;  ///< questions about resources that were refused
};

/// A training service whose platform is away whenever a test says so: each submission is refused with
/// `Errc::connection_lost` or deferred, each cancellation and each question about resources is refused. What runs goes on.
///
/// It shows what an experiment makes of an outage, for any service whose own platform cannot be made to fail.
///
/// @tparam S  the service that does the work
template <TrainingService S>
class Flapping {
 public:
  using role = nni::role::training_service;
  using mount_type = typename S::mount_type;
  static constexpr std::string_view platform = S::platform;
  static constexpr bool ends_come_last = nni::ends_come_last<S>;  ///< as the service says

  /// @param service  does the work
  /// @param outage   says when the platform is away
  Flapping(S service, std::shared_ptr<Outage> outage)
      : service_(std::move(service)), outage_(std::move(outage)), own_(std::make_unique<Own>()) {}

  /// @name What a training service has: passed on, unless the platform is away.
  /// @{

  /// Returns those of the service.
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

  awaitable<void> cancel_trial_job(RunId run, StopReason why) {
    refuse_if_away(outage_->cancels);
    return service_.cancel_trial_job(run, why);
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

  /// @name What it may have beside that.
  /// @{

  /// Passes `directory` and `id` on.
  void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id)
    requires UsesExperimentDirectory<S>
  {
    service_.set_experiment_directory(directory, id);
  }
  /// Passes `life` and `can_resume` on.
  void set_experiment_life(const std::string& life, bool can_resume)
    requires UsesExperimentLife<S>
  {
    service_.set_experiment_life(life, can_resume);
  }
  /// Passes `listener` on.
  void on_trouble(TroubleListener listener)
    requires ReportsTrouble<S>
  {
    service_.on_trouble(std::move(listener));
  }
  /// Passes the end of `run` on.
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
