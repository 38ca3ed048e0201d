#pragma once

#include <utility>

#include <nni/core/error.hpp>
#include <nni/experiment/control.hpp>
#include <nni/experiment/detail/control_core.hpp>

namespace nni {

NNI_INLINE bool Control::set_concurrency(std::size_t trials) const {
  ProblemList problems;
  detail::check_concurrency(trials, problems);
  problems.throw_if_any();
  return core_->ask(detail::SetConcurrency{trials});
}

NNI_INLINE bool Control::set_max_trials(std::optional<std::uint64_t> trials) const {
  ProblemList problems;
  detail::check_max_trials(trials, problems);
  problems.throw_if_any();
  return core_->ask(detail::SetMaxTrials{trials});
}

NNI_INLINE bool Control::set_max_duration(std::optional<Duration> duration) const {
  ProblemList problems;
  detail::check_duration("max_duration", duration, problems);
  problems.throw_if_any();
  return core_->ask(detail::SetMaxDuration{duration});
}

NNI_INLINE bool Control::update_search_space(SearchSpace space) const {
  if (!core_->updates_space())
    throw Error(Errc::unsupported,
                "the advisor of this experiment cannot take another search space; give it a member "
                "update_search_space, or start another experiment and import the results of this one");
  if (space.empty()) throw config_error("space", "has no dimensions; give at least one");
  return core_->ask(detail::UpdateSearchSpace{std::move(space)});
}

NNI_INLINE bool Control::pause() const { return core_->ask(detail::PauseTrials{}); }

NNI_INLINE bool Control::resume() const { return core_->ask(detail::ResumeTrials{}); }

NNI_INLINE bool Control::stop() const { return core_->ask(detail::StopExperiment{}); }

NNI_INLINE bool Control::cancel(TrialId trial) const { return core_->ask(detail::CancelTrial{trial}); }

NNI_INLINE bool Control::wait_until_recorded() const {
  if (core_->is_on_executor())
    throw Error(Errc::unsupported,
                "wait_until_recorded was called on the thread that runs the experiment, for instance in an observer, "
                "where it would wait for itself; call it on another thread");
  auto answer = std::make_shared<std::promise<bool>>();
  std::future<bool> recorded = answer->get_future();
  if (!core_->ask(detail::TellWhenRecorded{std::move(answer)})) return false;
  try {
    return recorded.get();
  } catch (const std::future_error&) {
    return false;  // dropped with the end of the experiment
  }
}

NNI_INLINE Progress Control::status() const { return core_->progress(); }

NNI_INLINE Control::Phase Control::phase() const { return core_->phase(); }

}  // namespace nni
