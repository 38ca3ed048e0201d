#pragma once

// Correct policies, which the programs beside this folder break in one place each.

#include <nni/nni.hpp>

namespace parts {

/// A service that brings messages itself.
struct Service {
  using role = nni::role::training_service;
  using mount_type = nni::NoMount;
  static constexpr std::string_view platform = "example";
  nni::Capabilities capabilities() const noexcept;
  nni::awaitable<void> start(nni::Context&);
  nni::awaitable<nni::ResourceSnapshot> resources();
  nni::awaitable<nni::JobId> submit_trial_job(nni::TrialJobForm);
  nni::awaitable<void> cancel_trial_job(nni::RunId, nni::StopReason);
  nni::awaitable<nni::JobEvent> next_event();
  nni::awaitable<void> clean_up();
  nni::awaitable<nni::TrialMessage> next_message();
  nni::awaitable<void> acknowledge(nni::Receipt);
  nni::awaitable<void> send(nni::RunId, nni::Parameters);
  nni::awaitable<void> settle(nni::RunId);
};

struct Tuner {
  using role = nni::role::tuner;
  void start(const nni::SearchSpace&, const nni::Objectives&);
  void update_search_space(const nni::SearchSpace&);
  const nni::SearchSpace& search_space() const;
  std::optional<nni::Parameters> generate(nni::ParameterId);
  void observe(const nni::TrialOutcome&);
};

struct Store {
  using role = nni::role::data_store;
  nni::awaitable<nni::ExperimentSnapshot> open(nni::Context&, nni::ExperimentId);
  nni::StorePosition append(std::span<const nni::StoreEvent>);
  nni::awaitable<void> written(nni::StorePosition);
  nni::awaitable<void> synced(nni::StorePosition);
  nni::awaitable<std::optional<nni::TrialJobDetail>> load(nni::TrialId);
  nni::awaitable<nni::TrialPage> page(nni::TrialQuery);
  nni::awaitable<std::vector<nni::Metric>> metrics(nni::TrialId);
  nni::awaitable<void> close();
};

/// What a composition looks at, without running it.
template <class... Policies>
using Composed = typename nni::Experiment<Policies...>::scheduler_type;

// Without a mistake there is no error.
using correct = Composed<Service, Tuner, Store>;

}  // namespace parts
