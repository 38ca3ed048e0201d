#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/metric.hpp>
#include <nni/core/store_event.hpp>
#include <nni/core/trial.hpp>
#include <nni/ledger/outcome.hpp>

namespace nni::detail {

/// Numbers of the intermediate results among a trial's metrics, of its last attempt.
[[nodiscard]] inline std::vector<double> intermediate_numbers(const std::vector<Metric>& metrics) {
  std::vector<double> numbers;
  std::uint32_t attempt = 0;
  for (const Metric& metric : metrics) {
    if (metric.kind != MetricKind::intermediate || metric.run.attempt < attempt) continue;
    if (metric.run.attempt > attempt) numbers.clear();
    attempt = metric.run.attempt;
    const std::optional<double> number = metric.scalar();
    if (number && std::isfinite(*number)) numbers.push_back(*number);
  }
  return numbers;
}

/// Calls a function with every trial of a store and its intermediate numbers, where the store gives them with a page.
/// @param histories  false: they are not wanted
template <class Store, class Visit>
awaitable<void> for_each_history(Store& store, bool histories, Visit& visit) {
  TrialQuery query;
  query.histories = histories;
  query.limit = 2000;
  bool more = true;
  while (more) {
    auto reading = store.page(query);
    TrialPage page = co_await std::move(reading);
    const bool given = page.histories.size() == page.trials.size();
    for (std::size_t at = 0; at < page.trials.size(); ++at) {
      query.after = page.trials[at].trial;
      std::optional<std::vector<double>> history;
      if (given) history = std::move(page.histories[at]);
      auto visiting = visit(std::move(page.trials[at]), std::move(history));
      co_await std::move(visiting);
    }
    more = page.more && !page.trials.empty();
  }
}

/// Calls a function with every trial of a store, page by page, in the order of their ids.
template <class Store, class Visit>
awaitable<void> for_each_trial(Store& store, std::size_t limit, Visit& visit) {
  TrialQuery query;
  std::size_t seen = 0;
  bool more = limit != 0;
  while (more) {
    query.limit = std::min<std::size_t>(1000, limit - seen);
    auto reading = store.page(query);
    TrialPage page = co_await std::move(reading);
    for (TrialJobDetail& trial : page.trials) {
      query.after = trial.trial;
      ++seen;
      auto visiting = visit(std::move(trial));
      co_await std::move(visiting);
    }
    more = page.more && !page.trials.empty() && seen < limit;
  }
}

}  // namespace nni::detail
