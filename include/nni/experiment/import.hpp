#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/async/runtime.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/core/error.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/store_event.hpp>
#include <nni/experiment/history.hpp>

namespace nni {

/// Reads results from JSON, for `Experiment::import_results`.
///
/// The shape is a list of objects:
/// @code{.json}
/// [{"parameters": {"lr": 0.01, "units": 64}, "value": 0.93},
///  {"parameters": {"lr": 0.10, "units": 16}, "value": {"default": 0.71, "loss": 1.4}, "intermediates": [0.4, 0.6]}]
/// @endcode
/// `parameters` may also be called `parameter`, as in the files that NNI exports and imports; `value` is what a trial
/// would report as its final result; `intermediates`, what it would report before, is shown to the assessor and may be
/// missing. Other members are left alone.
///
/// @throws ConfigError  with everything that is wrong: which result, which member
NNI_LAZY [[nodiscard]] std::vector<ResultImported> results_from_json(std::string_view text);

namespace detail {

/// @throws ConfigError  for values that are not finite and parameters that are no object
NNI_LAZY void check_results(const std::vector<ResultImported>& results);

/// Drops what stands in another list already: the same parameters with the same value.
NNI_LAZY void leave_out_known(std::vector<ResultImported>& results, const std::vector<ResultImported>& known);

template <class Store>
awaitable<void> add_result(Store& store, std::vector<ResultImported>& into, TrialJobDetail trial) {
  if (!is_terminal(trial.status)) co_return;
  auto reading = store.metrics(trial.trial);
  const std::vector<Metric> metrics = co_await std::move(reading);
  const std::vector<double> history = intermediate_numbers(metrics);
  const TrialOutcome outcome = outcome_of(trial, last_finite(history));
  if (!outcome.informative()) co_return;
  ResultImported& result = into.emplace_back();
  result.parameters = std::move(trial.parameters);
  result.value = *outcome.value;
  result.history = history;
}

template <class Store>
awaitable<std::vector<ResultImported>> read_results(Context& context, Store& store, ExperimentId id) {
  auto opening = store.open(context, id);
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  if (!snapshot.exists)
    throw Error(
        Errc::not_found, "there is no experiment \"" + id.value + "\" to import from; check the id and the directory");
  std::vector<ResultImported> results;
  const auto visit = [&store, &results](TrialJobDetail trial) { return add_result(store, results, std::move(trial)); };
  auto reading = for_each_trial(store, static_cast<std::size_t>(-1), visit);
  co_await std::move(reading);
  auto closing = store.close();
  co_await std::move(closing);
  co_return results;
}

}  // namespace detail

/// The results of another experiment, for `Experiment::import_results`: of trials that succeeded or were stopped early,
/// with a value. Nothing is changed there.
///
/// @code
/// experiment.import_results(nni::results_of(
///     nni::datastore::Sqlite{{.directory = "nni-experiments", .read_only = true}}, nni::ExperimentId("earlier")));
/// @endcode
///
/// @param store  a data store that holds the experiment, read-only if it can be
/// @param id     of that experiment
/// @throws Error  `Errc::not_found` when the store does not know the experiment, and what the store throws
template <DataStore Store>
[[nodiscard]] std::vector<ResultImported> results_of(Store store, ExperimentId id) {
  Runtime runtime;
  Store opened = std::move(store);  // it has to be gone before the runtime is
  return runtime.run(detail::read_results(runtime.context(), opened, std::move(id)));
}

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/import_inl.hpp>
#endif
