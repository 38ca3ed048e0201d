#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/concepts/advisor.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/core/capabilities.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/resources.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/space/search_space.hpp>

namespace nni::detail {

/// What a composition is, decided at compile time.
struct CompositionFacts {
  std::string_view platform{};     ///< of the training service
  bool is_carried = false;         ///< the service carries the messages of its trials, and loses none
  bool ends_come_last = false;     ///< an end comes after all messages of its run
  bool prepares_files = false;     ///< `Composition::prepare` has something to wait for
  bool resumes_channel = false;    ///< the channel of an adopted run is opened again
  bool adopts_runs = false;        ///< the service can say what became of earlier runs
  bool has_store = false;          ///< a data store was given, which may know the experiment already
  bool keeps_in_memory = false;    ///< records die with this process
  bool updates_space = false;      ///< the advisor can take another search space
  bool replays_trials = false;     ///< the advisor learns from ended trials after a resume
  bool replays_histories = false;  ///< and needs their intermediate values
  bool hears_every_final = false;  ///< later final values of a run are reported to the advisor too
  bool brings_commands = false;    ///< the advisor may give each trial a command of its own
  bool hands_out_gpus = false;     ///< the scheduler counts devices
  bool writes_files = false;       ///< a policy keeps files in the experiment's directory
};

/// The composed policies as the experiment calls them, one function for each operation.
///
/// What is composed is decided at compile time by `Experiment`, which implements this interface with functions of one line.
/// Everything that runs an experiment is behind it (`ExperimentCore`, `Engine`), so that it is compiled once and not again
/// for each composition; a virtual call costs nothing beside the coroutine that it returns. What an operation promises is
/// said by the concept of its policy (nni/concepts/); a hook that a policy does not have is an empty function here.
class Composition {
 public:
  explicit Composition(const CompositionFacts& facts) : facts_(facts) {}
  Composition(const Composition&) = delete;
  Composition& operator=(const Composition&) = delete;

  [[nodiscard]] const CompositionFacts& facts() const noexcept { return facts_; }

  // ---- training service
  [[nodiscard]] virtual Capabilities capabilities() const noexcept = 0;
  virtual awaitable<void> start_service(Context& context) = 0;
  virtual awaitable<ResourceSnapshot> resources() = 0;
  virtual awaitable<JobId> submit_trial_job(TrialJobForm form) = 0;
  virtual awaitable<void> cancel_trial_job(RunId run, StopReason reason) = 0;
  virtual awaitable<JobEvent> next_event() = 0;
  virtual awaitable<std::vector<JobReport>> adopt(std::vector<Intent> runs) = 0;  ///< called if `adopts_runs`
  virtual void end_recorded(RunId run) = 0;
  virtual void set_life(const std::string& life, bool can_resume) = 0;
  virtual std::string remark() = 0;  ///< what people should know before trials start; usually empty
  virtual awaitable<void> clean_up() = 0;

  // ---- storage
  virtual awaitable<void> open_storage(Context& context) = 0;
  virtual awaitable<void> close_storage() = 0;

  // ---- trial channel: the service itself, or a metric transport
  virtual awaitable<void> open_transport(Context& context) = 0;  ///< called unless `is_carried`, like its end
  virtual awaitable<void> close_transport() = 0;
  virtual awaitable<TrialMessage> next_message() = 0;
  virtual awaitable<void> acknowledge(Receipt receipt) = 0;
  virtual awaitable<void> send(RunId run, Parameters parameters) = 0;
  virtual awaitable<void> settle(RunId run) = 0;
  virtual awaitable<void> prepare(const TrialJobForm& form) = 0;  ///< called if `prepares_files`
  virtual void resume_channel(RunId run) = 0;                     ///< called if `resumes_channel`

  // ---- scheduler
  virtual PlacementResult place(const ResourceRequest& request, const ResourceSnapshot& resources) = 0;
  virtual void hold(const Placement& placement) = 0;
  virtual void release(const Placement& placement) noexcept = 0;

  // ---- advisor
  virtual awaitable<void> start_advisor(Context& context, const SearchSpace& space, const Objectives& goals) = 0;
  virtual awaitable<void> stop_advisor() = 0;
  virtual awaitable<void> request(std::size_t count) = 0;
  virtual awaitable<void> report(const Metric& metric) = 0;
  virtual awaitable<void> trial_ended(const TrialOutcome& outcome) = 0;
  virtual awaitable<Order> next_order() = 0;
  virtual void trial_started(RunId run) = 0;
  virtual void update_search_space(const SearchSpace& space) = 0;  ///< called if `updates_space`
  virtual void import_result(const ResultImported& result) = 0;
  virtual void replay(const TrialOutcome& outcome, const std::vector<double>& history) = 0;
  virtual void replay_unfinished(const UnfinishedTrial& trial, RunId run) = 0;
  /// The seed of the tuner after it was given the recorded one, which is 0 if none was; 0 for a tuner without a seed.
  virtual std::uint64_t settle_seed(std::uint64_t recorded) = 0;

  // ---- data store
  virtual awaitable<ExperimentSnapshot> open_store(Context& context, ExperimentId id) = 0;
  virtual awaitable<void> close_store() = 0;
  virtual StorePosition append(std::vector<StoreEvent>&& events) = 0;
  virtual StorePosition append(std::span<const StoreEvent> events) = 0;
  virtual awaitable<void> written(StorePosition at) = 0;
  virtual awaitable<void> synced(StorePosition at) = 0;
  virtual awaitable<std::optional<TrialJobDetail>> load(TrialId trial) = 0;
  virtual awaitable<TrialPage> page(TrialQuery query) = 0;
  virtual awaitable<std::vector<Metric>> metrics(TrialId trial) = 0;
  virtual void stop_retrying() = 0;  ///< who wants to stop does not wait until there is space

  /// Sets or, with empty functions, removes the listeners to trouble of the store and of the service.
  virtual void on_trouble(TroubleListener of_store, TroubleListener of_service) = 0;

  // ---- runs
  virtual std::optional<ResourceRequest> request_of(TrialId trial) = 0;  ///< what the advisor asks for this trial
  virtual void complete(TrialId trial, TrialJobForm& form) = 0;          ///< adds the mount, and what the advisor adds
  virtual void address(TrialJobForm& form) = 0;  ///< adds what only a numbered run has: the address of its channel

  // ---- places
  virtual std::filesystem::path store_directory()
      const = 0;  ///< parent of experiments as the store was given; or empty
  virtual void set_experiment_directory(const std::filesystem::path& directory, const ExperimentId& id) = 0;

 protected:
  ~Composition() = default;

 private:
  CompositionFacts facts_;
};

}  // namespace nni::detail
