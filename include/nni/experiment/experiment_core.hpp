#pragma once  // IWYU pragma: private, include <nni/experiment/experiment.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/runtime.hpp>
#include <nni/core/macros.hpp>
#include <nni/experiment/control.hpp>
#include <nni/experiment/detail/board.hpp>
#include <nni/experiment/detail/composition.hpp>
#include <nni/experiment/detail/control_core.hpp>
#include <nni/experiment/detail/engine.hpp>
#include <nni/experiment/detail/settings.hpp>
#include <nni/experiment/observer.hpp>
#include <nni/experiment/options.hpp>
#include <nni/experiment/summary.hpp>
#include <nni/ledger/ledger.hpp>

namespace nni::detail {

/// An experiment without the types of its policies: opens what was composed, resumes what was recorded, runs the engine,
/// and closes everything again. `Experiment` is the handle that users instantiate; `TrainingSession` drives one.
class ExperimentCore {
 public:
  explicit ExperimentCore(ExperimentOptions options) : options_(std::move(options)) {}
  ExperimentCore(const ExperimentCore&) = delete;
  ExperimentCore& operator=(const ExperimentCore&) = delete;

  /// Checks the options against what is composed, and says where files go. Once, before everything else.
  /// @param policies  outlives every other call
  /// @param space     the tuner searches it
  /// @throws ConfigError  with everything that is wrong
  NNI_LAZY void compose(Composition& policies, SearchSpace space);

  /// As `Experiment` has them.
  NNI_LAZY Summary run();
  NNI_LAZY awaitable<Summary> async_run(Context& context);
  NNI_LAZY void request_stop();
  NNI_LAZY Control control();
  NNI_LAZY void import_results(std::vector<ResultImported> results);
  void observe(Observer observer) { observers_.push_back(std::move(observer)); }
  [[nodiscard]] const ExperimentId& id() const noexcept { return id_; }
  [[nodiscard]] std::string describe() const {
    return std::string(policies_->facts().platform) + " experiment " + id_.value;
  }

  /// Refuses further requests of other threads.
  NNI_LAZY void end_control();

  /// @name For a program that drives the experiment itself; on its executor
  /// @{
  [[nodiscard]] Ledger& ledger() { return *ledger_; }
  [[nodiscard]] Engine* engine() noexcept { return engine_; }  ///< null unless the loops run
  [[nodiscard]] Composition& policies() noexcept { return *policies_; }
  /// @}

 private:
  using Steer = void (*)(ExperimentCore&, const Change&);
  using Import = void (*)(ExperimentCore&, Board&, Transition&);

  // ---- life
  NNI_LAZY awaitable<void> open_all(Context& context, Board& board);
  NNI_LAZY awaitable<Summary> close_all(Context& context, Board& board, std::exception_ptr failure);
  NNI_LAZY awaitable<void> close_policies(Context& context);
  NNI_LAZY awaitable<std::exception_ptr> close_one(Context& context, awaitable<void> work, const char* name);
  NNI_LAZY awaitable<void> run_engine(Context& context, Board& board, Engine& engine);
  NNI_LAZY void require_fresh() const;
  NNI_LAZY void stop_now();
  NNI_LAZY static void steer(ExperimentCore& self, const Change& change);
  template <class Work>
  void guarded(const Work& work);

  // ---- settings
  NNI_LAZY void take_settings();
  NNI_LAZY void apply_settings();
  NNI_LAZY [[nodiscard]] LedgerOptions ledger_options() const;
  NNI_LAZY [[nodiscard]] ProfileChanged first_profile(Context& context) const;
  NNI_LAZY [[nodiscard]] std::string startup_notice(Context& context);

  // ---- what the engine asks
  NNI_LAZY [[nodiscard]] EngineHooks engine_hooks();
  NNI_LAZY TrialJobForm form(TrialId trial, const ResourceRequest& request, Placement placement);
  NNI_LAZY void settings_changed();
  NNI_LAZY void update_search_space(const SearchSpace& space);
  NNI_LAZY awaitable<void> count_unfitting();

  // ---- resume
  NNI_LAZY awaitable<void> replay(Board& board);
  NNI_LAZY awaitable<void> replay_trial(Board& board, TrialJobDetail trial, std::optional<std::vector<double>> known);
  NNI_LAZY void replay_imported(Board& board, std::uint64_t before);
  NNI_LAZY void report_imported(Board& board, const ResultImported& result);
  NNI_LAZY static void import_new(ExperimentCore& self, Board& board, Transition& out);
  NNI_LAZY awaitable<std::vector<JobReport>> adopt_open_runs();
  NNI_LAZY awaitable<void> count_if_unfitting(std::uint64_t& count, TrialJobDetail trial);
  NNI_LAZY [[nodiscard]] bool fits(const Parameters& parameters) const;
  NNI_LAZY awaitable<void> collect(std::vector<TrialJobDetail>& into, TrialJobDetail trial);

  std::unique_ptr<Runtime> runtime_;  // dies last: what policies hold of it must not outlive it
  ExperimentOptions options_;
  ExperimentId id_;
  SearchSpace space_;
  Composition* policies_ = nullptr;
  std::vector<Observer> observers_;

  std::filesystem::path directory_;  // of the experiment; empty when nothing is written
  std::string working_directory_;    // where commands start
  ExperimentSnapshot snapshot_;
  Settings settings_;
  std::vector<ResultImported> to_import_;
  std::size_t imported_ = 0;  // how many of the recorded ones the advisor was told
  std::uint64_t seed_ = 0;
  std::uint64_t space_count_ = 0;  // changes of the space in this run
  bool counts_unfitting_ = false;  // earlier trials may not fit the space in force
  std::optional<Ledger> ledger_;
  Engine* engine_ = nullptr;  // while the loops run
  Board* board_ = nullptr;    // while it runs
  bool stop_requested_ = false;
  std::shared_ptr<ControlCore> control_;
  std::exception_ptr unkept_;                                    // why records of this run are not all in the store
  std::vector<std::shared_ptr<std::promise<bool>>> unanswered_;  // they wait for the last record; dropped: not kept

  // What only some programs ask for is reached through pointers that the asking sets: the others need not compile it.
  std::atomic<Steer> steer_ = nullptr;
  Import import_ = nullptr;
};

}  // namespace nni::detail

#if NNI_HEADER_ONLY
#include <nni/experiment/experiment_core_inl.hpp>
#endif
