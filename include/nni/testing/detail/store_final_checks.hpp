#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// Final values of a trial in the order in which a store gives them, with the attempt before each.
template <class D>
awaitable<std::string> final_values_of(D& store, TrialId trial) {
  auto listing = store.metrics(trial);
  const std::vector<Metric> values = co_await std::move(listing);
  std::string text;
  for (const Metric& metric : values)
    if (metric.kind == MetricKind::final) text += std::to_string(metric.run.attempt) + ":" + metric.value + " ";
  co_return text;
}

/// Runs that report several final values: the first is the result, the others are kept beside it.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_final_values(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> live =
      StoreScript().ordered(1).intended(1).started(1).final_value(1, "2").final_value(1, "1").events();
  store->append(live);
  store->append(std::span(live).last(2));
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  report.check(4, "the first of several final values is the result of an open run",
               found.unfinished.size() == 1 && found.unfinished[0].final_value == "2");

  const std::vector<StoreEvent> more =
      StoreScript().final_value(1, "1").final_value(1, "3").final_value(1, "2").events();
  store->append(more);
  auto listing = final_values_of(*store, TrialId{1});
  const std::string values = co_await std::move(listing);
  report.check(4, "several final values are kept in their order, each once", values == "0:2 0:1 0:3 ", values);

  // What counts is the first of the last attempt.
  const std::vector<StoreEvent> again =
      StoreScript()
          .lost(1)
          .intended(1, 1)
          .started(1, 1)
          .final_value(1, "1", 1)
          .final_value(1, "7", 1)
          .ended(1, 1)
          .events();
  store->append(again);
  const std::vector<StoreEvent> other = StoreScript().succeeded(2, "1.5").final_value(2, "0.5").events();
  store->append(other);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      auto resuming = reopen();
      co_await std::move(resuming);
    }
    auto loading = store->load(TrialId{1});
    const std::optional<TrialJobDetail> trial = co_await std::move(loading);
    report.check(4, "of the last attempt the first final value is the result", trial && trial->final_value == "1");
    auto all = final_values_of(*store, TrialId{1});
    const std::string kept = co_await std::move(all);
    report.check(4, "those of both attempts are kept", kept == "0:2 0:1 0:3 1:1 1:7 ", kept);
    TrialQuery query;
    query.best = Direction::minimize;
    auto ranking = store->page(query);
    const TrialPage ranked = co_await std::move(ranking);
    report.check(
        4, "a ranking goes by the results, and not by what came behind them or behind the end",
        ranked.trials.size() == 2 && ranked.trials[0].trial.number == 1 && ranked.trials[1].final_value == "1.5");
  }
}

}  // namespace nni::testing::detail
