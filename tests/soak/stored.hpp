#pragma once

/// @file
/// Everything that a data store tells of an experiment, read in every way that there is.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/store_event.hpp>

#include "soak/any_policies.hpp"

namespace nni_soak {

/// A trial as one line, all of it.
inline std::string text_of(const nni::TrialJobDetail& trial) {
  const auto time = [](const std::optional<nni::TimePoint>& at) {
    return at ? std::to_string(at->time_since_epoch().count()) : std::string("-");
  };
  std::string text =
      std::to_string(trial.trial.number) + ' ' + std::string(nni::to_string(trial.status)) + " attempts " +
      std::to_string(trial.attempts) + " suggestion " + std::to_string(trial.parameter.value) + ' ' +
      trial.parameters.text() + " final " + trial.final_value.value_or("-") + " job " + trial.job.value + " \"" +
      trial.message + "\" times " + time(trial.submit_time) + ' ' + time(trial.start_time) + ' ' +
      time(trial.end_time) + " index " + std::to_string(trial.parameter_index);
  text += " exit " + (trial.exit_code ? std::to_string(*trial.exit_code) : "-");
  text += " signal " + (trial.signal ? std::to_string(*trial.signal) : "-");
  text += " at " + trial.url + ' ' + trial.working_directory + ' ' + trial.environment;
  for (const std::string& tag : trial.tags) text += " #" + tag;
  text += trial.is_early_stopped ? " stopped early" : "";
  return text;
}

/// What a store holds.
class Stored {
 public:
  Stored() = default;

  nni::ExperimentSnapshot snapshot;
  std::vector<nni::TrialJobDetail> trials;                 ///< page by page, a few at a time
  std::vector<std::optional<nni::TrialJobDetail>> loaded;  ///< the same, one by one
  std::vector<std::vector<nni::Metric>> metrics;           ///< of each
  std::vector<nni::TrialJobDetail> at_once;                ///< as one page
  std::vector<nni::TrialJobDetail> best;                   ///< best first
  std::vector<nni::TrialJobDetail> failed;                 ///< those in one state
};

inline nni::awaitable<Stored> read_opened(AnyStore& store, nni::Direction direction, std::size_t page) {
  Stored all;
  nni::TrialQuery query;
  query.limit = page;
  for (bool more = true; more;) {
    auto reading = store.page(query);
    const nni::TrialPage found = co_await std::move(reading);
    for (const nni::TrialJobDetail& trial : found.trials) {
      all.trials.push_back(trial);
      auto loading = store.load(trial.trial);
      all.loaded.push_back(co_await std::move(loading));
      auto listing = store.metrics(trial.trial);
      all.metrics.push_back(co_await std::move(listing));
      query.after = trial.trial;
    }
    more = found.more;
  }
  nni::TrialQuery every;
  every.limit = 100'000;
  auto whole = store.page(every);
  all.at_once = (co_await std::move(whole)).trials;
  nni::TrialQuery ranked = every;
  ranked.best = direction;
  auto ranking = store.page(ranked);
  all.best = (co_await std::move(ranking)).trials;
  nni::TrialQuery failures = every;
  failures.status = nni::TrialJobStatus::failed;
  auto filtering = store.page(failures);
  all.failed = (co_await std::move(filtering)).trials;
  co_return all;
}

inline nni::awaitable<Stored> read_store(
    nni::Context& context, AnyStore& store, nni::ExperimentId id, nni::Direction direction, std::size_t page) {
  auto opening = store.open(context, id);
  nni::ExperimentSnapshot snapshot = co_await std::move(opening);
  auto reading = read_opened(store, direction, page);
  Stored all = co_await std::move(reading);
  all.snapshot = std::move(snapshot);
  auto closing = store.close();
  co_await std::move(closing);
  co_return all;
}

/// Opens a store that nobody uses, reads it, and closes it.
/// @param page  trials that are asked for at a time
inline Stored read(AnyStore store, const nni::ExperimentId& id, nni::Direction direction, std::size_t page) {
  nni::Runtime runtime;
  AnyStore opened = std::move(store);  // it has to be gone before the runtime is
  return runtime.run(read_store(runtime.context(), opened, id, direction, page));
}

}  // namespace nni_soak
