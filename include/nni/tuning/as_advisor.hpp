#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/context.hpp>
#include <nni/async/event.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/concepts/roles.hpp>
#include <nni/concepts/tuner.hpp>
#include <nni/core/foreign_call.hpp>
#include <nni/core/messages.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/queue.hpp>
#include <nni/core/store_event.hpp>

namespace nni::tuning {

/// Makes an advisor of a tuner and an assessor.
///
/// It owns the parameter ids, 0 upwards, and keeps the histories of live runs for the assessor. Intermediate results
/// without a number are not shown to the assessor.
///
/// @tparam T  models `Tuner`
/// @tparam A  models `Assessor`
template <Tuner T, Assessor A>
class AsAdvisor {
 public:
  using role = nni::role::advisor;

  /// @param tuner  suggests
  /// @param assessor  judges
  AsAdvisor(T tuner, A assessor) : tuner_(std::move(tuner)), assessor_(std::move(assessor)) {}

  /// The tuner inside.
  [[nodiscard]] T& tuner() noexcept { return tuner_; }
  /// The tuner inside.
  [[nodiscard]] const T& tuner() const noexcept { return tuner_; }

  awaitable<void> start(Context&, const SearchSpace& space, const Objectives& goals) {
    ordered_ = std::make_unique<async::event>();
    tuner_.start(space, goals);
    assessor_.start(goals);
    co_return;
  }

  /// Tells a trial that ended before a resume, in the order of trial ids.
  /// @param outcome  how it ended
  /// @param history  its intermediate numbers, oldest first
  void replay(const TrialOutcome& outcome, std::span<const double> history) {
    const RunId run{outcome.trial, 0};
    if (!history.empty()) static_cast<void>(judge(run, history));
    end_history(run, outcome.status == TrialJobStatus::succeeded);
    observe(outcome);
    use(outcome.parameter);
  }

  /// Tells a result that was obtained elsewhere.
  void import_result(const ResultImported& result) {
    const RunId nobody{};
    if (!result.history.empty()) static_cast<void>(judge(nobody, result.history));
    end_history(nobody, true);
    TrialOutcome outcome;
    outcome.parameter = imported_parameter;
    outcome.parameters = result.parameters;
    outcome.status = TrialJobStatus::succeeded;
    outcome.value = result.value;
    observe(outcome);
  }

  /// Suggestions come from another space from now on.
  /// @throws ConfigError  when the tuner cannot search it; then nothing has changed
  void update_search_space(const SearchSpace& space) { tuner_.update_search_space(space); }

  /// Tells a trial that was ordered before a resume and has not ended.
  /// @param parameter   number of the suggestion
  /// @param run         its last attempt
  /// @param history     intermediate numbers of that attempt, oldest first
  /// @param parameters  what was suggested then; a tuner that counts trials in flight is told by its hook `adopt`
  void replay_unfinished(ParameterId parameter, const Parameters& parameters, RunId run, std::vector<double> history) {
    if constexpr (AdoptsUnfinished<T>)
      tuner_.adopt(parameter, parameters);
    else
      static_cast<void>(tuner_.generate(parameter));
    if (!history.empty()) {
      static_cast<void>(judge(run, history));
      Live& live = live_[run.trial];
      live.run = run;
      live.history = std::move(history);
    }
    use(parameter);
  }

  awaitable<void> request(std::size_t count) {
    for (; count > 0; --count) {
      std::optional<Parameters> suggestion =
          nni::detail::call_foreign("the tuner's generate", [this] { return tuner_.generate(ParameterId{next_}); });
      if (!suggestion) {
        orders_.emplace_back(std::in_place_type<NoMoreTrials>);
        break;
      }
      orders_.emplace_back(std::in_place_type<NewTrial>, ParameterId{next_++}, std::move(*suggestion));
    }
    ordered_->notify();
    co_return;
  }

  awaitable<void> report(const Metric& metric) {
    if (metric.kind == MetricKind::intermediate) assess(metric);
    co_return;
  }

  awaitable<void> trial_ended(const TrialOutcome& outcome) {
    RunId run{outcome.trial, 0};
    if (const auto entry = live_.find(outcome.trial); entry != live_.end()) {
      run = entry->second.run;
      live_.erase(entry);
    }
    end_history(run, outcome.status == TrialJobStatus::succeeded);
    observe(outcome);
    co_return;
  }

  awaitable<Order> next_order() {
    while (orders_.empty()) {
      auto order = ordered_->wait();
      co_await std::move(order);
    }
    Order order = std::move(orders_.front());
    orders_.pop_front();
    co_return order;
  }

  awaitable<void> stop() { co_return; }

 private:
  struct Live {
    RunId run;
    std::vector<double> history;
    bool hopeless = false;  ///< the assessor has seen enough
  };

  void use(ParameterId parameter) {
    if (parameter.value >= next_) next_ = parameter.value + 1;
  }

  void observe(const TrialOutcome& outcome) {
    nni::detail::call_foreign("the tuner's observe", [&] { tuner_.observe(outcome); });
  }

  Verdict judge(const RunId& run, std::span<const double> history) {
    return nni::detail::call_foreign("the assessor's assess", [&] { return assessor_.assess(run, history); });
  }

  void end_history(const RunId& run, bool succeeded) {
    nni::detail::call_foreign("the assessor's trial_ended", [&] { assessor_.trial_ended(run, succeeded); });
  }

  void assess(const Metric& metric) {
    if constexpr (stops_no_trial<A>) return;
    const std::optional<double> number = metric.scalar();
    if (!number || !std::isfinite(*number)) return;
    Live& live = live_[metric.run.trial];
    if (live.run != metric.run) {
      if (!live.history.empty()) end_history(live.run, false);
      live.run = metric.run;
      live.history.clear();
      live.hopeless = false;
    }
    // It was told to stop; what it goes on to report changes nothing.
    if (live.hopeless) return;
    live.history.push_back(*number);
    if (judge(metric.run, live.history) == Verdict::bad) {
      live.hopeless = true;
      orders_.emplace_back(std::in_place_type<KillTrial>, metric.run.trial);
      ordered_->notify();
    }
  }

  T tuner_;
  A assessor_;
  std::uint64_t next_ = 0;
  Queue<Order> orders_;
  std::unordered_map<TrialId, Live> live_;
  std::unique_ptr<async::event> ordered_;
};

}  // namespace nni::tuning
