#pragma once

/// @file
/// Carries out a plan, and checks what came of it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <nni/core/error.hpp>
#include <nni/experiment/experiment.hpp>
#include <nni/platforms/in_process.hpp>

#include "soak/any_policies.hpp"
#include "soak/faults.hpp"
#include "soak/invariants.hpp"
#include "soak/oracle.hpp"
#include "soak/plan.hpp"
#include "soak/readings.hpp"
#include "soak/stored.hpp"
#include "support/temporary_directory.hpp"

namespace nni_soak {

/// What is known of a round so far; the checks of checks.hpp are made of it.
class History {
 public:
  History() = default;

  std::vector<std::uint64_t> limits;  ///< of trials, in force at one time or another in the present run
  bool limit_is_known = true;         ///< the last of them is in force, here or in the next run
  std::vector<std::size_t> spaces;    ///< numbers of all that were in force so far
  bool space_is_known = true;         ///< the last of them is in force, here or in the next run
  bool changed_late = false;          ///< some change may have come when the present run was ending
  std::size_t concurrency = 1;        ///< the largest one that was asked for
  std::vector<TunerKind> tuners;      ///< all so far
  bool was_stopped = false;           ///< in the present run
  bool cancelled_any = false;         ///< some trial, at any time
  bool limited_duration = false;      ///< at any time
  bool assessed = false;              ///< at any time
  std::vector<std::string> imported;  ///< parameters of the results from elsewhere, in the order of their telling
  bool retried_failed = false;        ///< in the present run
  bool had_fault = false;             ///< some call of the store failed, at any time
  bool stopped_any = false;           ///< some run was stopped, or failed
  bool failed_any = false;            ///< some run failed
  std::uint64_t ordered_before = 0;   ///< trials when the present run began
  std::map<std::uint64_t, nni::TrialJobDetail> ended_before;  ///< trials that had ended then, as the store told them
  std::map<std::uint64_t, std::string> told;                  ///< trials whose end observers heard of in this run
  std::vector<std::uint64_t> told_twice;
  bool progress_went_back = false;
  std::string odd_progress;  ///< one that does not add up
};

/// A round: the experiment is run, steered, perhaps resumed.
class Round {
 public:
  using Store = AnyStore;

  Round(Plan plan, Invariants& invariants) : plan_(std::move(plan)), invariants_(&invariants), oracle_(plan_.seed) {
    if (plan_.store == StoreKind::memory) memory_.emplace(nni::datastore::Memory{});
    if (plan_.store == StoreKind::sqlite) fuse(disk_, fuse_);
  }

  /// @throws Violation  when an invariant does not hold
  void run();

 private:
  [[nodiscard]] AnyStore store() {
    if (memory_) return *memory_;
    if (plan_.store == StoreKind::journal)
      return AnyStore(
          nni::datastore::Journal({.directory = place_.path(), .system = std::make_shared<FusedFiles>(fuse_)}));
    return AnyStore(nni::datastore::Sqlite({.directory = place_.path(), .vfs = disk_.name()}));
  }

  [[nodiscard]] AnyTuner tuner(const Phase& phase) const {
    nni::SearchSpace space = space_number(phase.space);
    const nni::Seed seed = nni::seed(plan_.seed >> 12);
    if (phase.tuner == TunerKind::grid) return AnyTuner(nni::tuning::Grid(std::move(space)));
    if (phase.tuner == TunerKind::tpe)
      return AnyTuner(nni::tuning::Tpe(std::move(space), nni::tuning::TpeOptions{.startup_trials = 4}, seed));
    return AnyTuner(nni::tuning::Random(std::move(space), seed));
  }

  // Results of a series: the first so many of a sequence that depends on space and series only. Equal parameters have
  // equal values.
  [[nodiscard]] static std::vector<nni::ResultImported> results_for(const Phase& phase) {
    nni::tuning::Random source(space_number(phase.import_space), nni::seed(100 + phase.import_series));
    std::vector<nni::ResultImported> results;
    for (std::uint64_t number = 0; number < phase.imports; ++number) {
      std::optional<nni::Parameters> parameters = source.generate(nni::ParameterId{number});
      if (!parameters) break;
      nni::ResultImported& result = results.emplace_back();
      result.value = static_cast<double>(std::hash<std::string>()(parameters->text()) % 1000) / 100.0;
      if (number % 3 == 1) result.history = {result.value + 1.0, result.value};
      result.parameters = *std::move(parameters);
    }
    return results;
  }

  void run_phase(const Phase& phase, bool first);
  void note_begin(const Phase& phase, bool first);
  nni::Observer observer(const Phase& phase);
  void steer(const Phase& phase, const nni::Control& control, std::size_t base);
  void step(const Step& step, const nni::Control& control);
  void check(const std::optional<nni::Summary>& summary);
  void check_summary(const Stored& stored, const nni::Summary& summary);
  void check_store(const Stored& stored, bool run_failed);
  void check_trials(const Stored& stored, bool whole);
  void check_imports(const Stored& stored, bool run_failed);
  void check_suggestions(const Stored& stored);

  // A request answers false only behind the end.
  void taken(bool answer, const nni::Control& control) {
    const bool ended = control.phase() == nni::Control::Phase::ended;
    invariants_->check("a request is refused only when the experiment has ended", answer || ended, [] {
      return "control() answered false while it ran";
    });
  }

  bool recorded(const nni::Control& control) {
    const bool answer = control.wait_until_recorded();
    const bool ended = control.phase() == nni::Control::Phase::ended;
    if (ended) history_.changed_late = true;
    invariants_->check("records are waited for in vain only when the experiment has ended", answer || ended, [] {
      return "wait_until_recorded() answered false while it ran";
    });
    return answer;
  }

  Plan plan_;
  Invariants* invariants_;
  nni_test::TemporaryDirectory place_;
  Fuse fuse_;
  nni_test::RecordingVfs disk_;
  std::optional<AnyStore> memory_;
  Oracle oracle_;
  History history_;
  nni::ExperimentId id_{"soak"};
};

inline void Round::run() {
  bool first = true;
  for (const Phase& phase : plan_.phases) {
    run_phase(phase, first);
    first = false;
  }
}

inline void Round::note_begin(const Phase& phase, bool first) {
  const Phase* const before =
      first ? nullptr : &plan_.phases[static_cast<std::size_t>(&phase - plan_.phases.data()) - 1];
  const std::uint64_t in_force = first ? phase.max_trials : history_.limits.back();
  const bool same = before != nullptr && before->max_trials == phase.max_trials;
  // An option that says what it said at the last start leaves changes by `control()` in force.
  if (same && !history_.limit_is_known)
    history_.limits.push_back(phase.max_trials);
  else
    history_.limits.assign(1, same ? in_force : phase.max_trials);
  if (!same) history_.limit_is_known = true;
  if (before == nullptr || before->space != phase.space) {
    history_.spaces.push_back(phase.space);
    history_.space_is_known = true;
  }
  history_.concurrency = std::max(history_.concurrency, phase.concurrency);
  history_.tuners.push_back(phase.tuner);
  history_.was_stopped = false;
  history_.changed_late = false;
  history_.limited_duration |= phase.limits_duration;
  history_.assessed |= phase.assesses;
  history_.retried_failed = phase.retry_failed;
  for (const nni::ResultImported& result : results_for(phase))
    if (std::find(history_.imported.begin(), history_.imported.end(), result.parameters.text()) ==
        history_.imported.end())
      history_.imported.push_back(result.parameters.text());
  history_.told.clear();
}

inline nni::Observer Round::observer(const Phase& phase) {
  nni::Observer observer;
  observer.on_start = [this, &phase](const nni::ExperimentStart&) {
    if (phase.fault) fuse_.light(*phase.fault, phase.no_space);
  };
  observer.on_trial_ended = [this](const nni::TrialJobDetail& trial) {
    const bool is_new = history_.told.emplace(trial.trial.number, trial.final_value.value_or("-")).second;
    if (!is_new) history_.told_twice.push_back(trial.trial.number);
  };
  observer.on_progress =
      [this, ordered = std::uint64_t{0}, finished = std::uint64_t{0}](const nni::Progress& now) mutable {
        std::uint64_t sum = 0;
        for (const std::uint64_t count : now.by_status) sum += count;
        if (sum != now.finished || now.finished + now.running + now.waiting + now.retrying != now.ordered)
          history_.odd_progress =
              std::to_string(now.ordered) + " ordered, " + std::to_string(now.finished) + " finished, " +
              std::to_string(sum) + " by status, " + std::to_string(now.running) + " running, " +
              std::to_string(now.waiting) + " waiting, " + std::to_string(now.retrying) + " retrying";
        if (now.ordered < ordered || now.finished < finished) history_.progress_went_back = true;
        ordered = now.ordered;
        finished = now.finished;
      };
  return observer;
}

inline void Round::run_phase(const Phase& phase, bool first) {
  note_begin(phase, first);
  nni::ExperimentOptions options;
  options.id = id_.value;
  options.directory = place_.path();
  options.resume = first ? nni::Resume::never : nni::Resume::if_exists;
  options.direction = plan_.direction;
  options.concurrency = phase.concurrency;
  options.max_trials = phase.max_trials;
  options.handle_signals = false;
  options.retry_failed = phase.retry_failed;
  options.max_retries = phase.max_retries;
  options.retry_on = nni::RetryOn::failures;
  options.retry_backoff = std::chrono::milliseconds(1);
  if (phase.limits_duration) options.max_trial_duration = std::chrono::milliseconds(4);

  std::optional<nni::Summary> summary;
  std::exception_ptr failure;
  const int burnt = fuse_.burnt();
  {
    const std::size_t base = oracle_.arm();
    nni::Experiment experiment{
        std::move(options),
        nni::platforms::InProcess{[this](nni::TrialHandle& trial) { oracle_.run(trial); }, {.threads = 8}}, store(),
        tuner(phase), AnyAssessor(phase.assesses)};
    experiment.import_results(results_for(phase));
    experiment.observe(observer(phase));
    const nni::Control control = experiment.control();
    std::jthread runs([&] {
      try {
        summary = experiment.run();
      } catch (...) {
        failure = std::current_exception();
      }
      oracle_.release();
    });
    steer(phase, control, base);
    runs.join();
    invariants_->check(
        "behind the end nothing is taken any more",
        !control.pause() && !control.cancel(nni::TrialId{1}) && !control.wait_until_recorded() &&
            control.phase() == nni::Control::Phase::ended,
        [] { return "control() answered true, or says that it runs"; });
  }
  fuse_.put_out();
  const int faults = fuse_.burnt() - burnt;
  if (faults != 0) history_.had_fault = true;
  if (failure) {
    history_.stopped_any = history_.failed_any = true;
    history_.limit_is_known = history_.space_is_known = false;
    std::string reason;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      reason = error.what();
    }
    invariants_->check(
        "an experiment fails only when its store does", faults != 0, [&] { return "run() threw: " + reason; });
  }
  if (phase.fault && faults != 0 && summary)
    invariants_->check("an experiment outlives one failed call of its store", true, [] { return ""; });
  check(summary);
}

inline void Round::steer(const Phase& phase, const nni::Control& control, std::size_t base) {
  bool paused = false;
  for (const Step& next : phase.steps) {
    // While nothing starts there is nothing to wait for.
    if (!paused && !oracle_.wait_for_calls(base + next.after)) break;
    step(next, control);
    if (next.what == Step::What::pause) paused = true;
    if (next.what == Step::What::resume) paused = false;
    if (next.what == Step::What::stop) return;
  }
  if (paused) control.resume();
}

inline void Round::step(const Step& step, const nni::Control& control) {
  switch (step.what) {
    case Step::What::set_concurrency:
      history_.concurrency = std::max(history_.concurrency, static_cast<std::size_t>(step.value));
      taken(control.set_concurrency(step.value), control);
      break;
    case Step::What::set_max_trials: {
      const bool answer = control.set_max_trials(step.value);
      taken(answer, control);
      if (answer) history_.limits.push_back(step.value);
      // Recorded: it is in force, whatever comes.
      if (answer) history_.limit_is_known = recorded(control);
      break;
    }
    case Step::What::update_space: {
      const bool answer = control.update_search_space(space_number(step.value));
      taken(answer, control);
      if (answer) history_.spaces.push_back(step.value);
      if (answer) history_.space_is_known = recorded(control);
      break;
    }
    case Step::What::pause: taken(control.pause(), control); break;
    case Step::What::resume: taken(control.resume(), control); break;
    case Step::What::cancel:
      history_.cancelled_any = true;
      taken(control.cancel(nni::TrialId{step.value}), control);
      break;
    case Step::What::status: {
      const nni::Progress now = control.status();
      invariants_->check("status() adds up", now.finished <= now.ordered, [&] {
        return std::to_string(now.finished) + " of " + std::to_string(now.ordered);
      });
      break;
    }
    case Step::What::recorded: recorded(control); break;
    case Step::What::stop:
      taken(control.stop(), control);
      history_.was_stopped = history_.stopped_any = true;
      break;
  }
}

}  // namespace nni_soak

#include "soak/checks.hpp"
