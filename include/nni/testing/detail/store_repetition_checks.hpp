#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// Values of the first trial as a store gives them: attempt, kind, sequence and text.
template <class D>
awaitable<std::string> values_of_first(D& store) {
  auto listing = store.metrics(TrialId{1});
  const std::vector<Metric> values = co_await std::move(listing);
  std::string text;
  for (const Metric& metric : values)
    text += std::to_string(metric.run.attempt) + (metric.kind == MetricKind::final ? "f" : "i") +
            std::to_string(metric.sequence) + "=" + metric.value + " ";
  co_return text;
}

/// Looks at the values of the first trial.
template <class D>
awaitable<void> expect_values(D& store, std::string name, std::string expected, ConformanceReport& report) {
  auto reading = values_of_first(store);
  const std::string seen = co_await std::move(reading);
  report.check(4, name, seen == expected, seen);
}

/// Values that arrive in another order than they were numbered in, that share a number, and that are delivered again: to
/// a live run, after a resume, after the end, and after the next attempt began.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_repetitions(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const auto expect = [&store, &report](std::string name, std::string expected) {
    return expect_values(*store, std::move(name), std::move(expected), report);
  };
  store->append(StoreScript().ordered(1).intended(1).started(1).events());
  const std::vector<StoreEvent> values =
      StoreScript()
          .intermediate(1, 1, "0.6")
          .intermediate(1, 0, "0.5")
          .intermediate(1, 3, "0.8")
          .intermediate(1, 0, "5.5")
          .intermediate(1, 3, "8.8")
          .final_value(1, "1")
          .events();
  const std::string all = "0i1=0.6 0i0=0.5 0i3=0.8 0i0=5.5 0i3=8.8 0f0=1 ";
  store->append(values);
  auto order = expect("values are kept in the order of arrival, also several under one sequence", all);
  co_await std::move(order);
  store->append(values);
  auto again = expect("a second delivery while the trial runs changes nothing", all);
  co_await std::move(again);

  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  const std::vector<double> numbers{0.6, 0.5, 0.8, 5.5, 8.8};
  const bool open = found.unfinished.size() == 1;
  report.check(4, "a snapshot has the numbers of an open run in the order of arrival, each once",
               open && found.unfinished[0].history == numbers);
  const auto is_known = [&found](const StoreEvent& event) {
    return found.unfinished[0].seen.contains(std::get<MetricReceived>(event).metric);
  };
  report.check(4, "a snapshot knows the values of an open run, so that a second delivery is recognized",
               open && std::all_of(values.begin(), values.end(), is_known));
  store->append(values);
  auto resumed = expect("a second delivery after a resume changes nothing", all);
  co_await std::move(resumed);

  store->append(StoreScript().ended(1).events());
  store->append(values);
  const std::vector<StoreEvent> late = StoreScript().intermediate(1, 2, "0.7").intermediate(1, 1, "6.6").events();
  store->append(late);
  store->append(late);
  auto ended =
      expect("after the end a second delivery changes nothing, and a new value is kept", all + "0i2=0.7 0i1=6.6 ");
  co_await std::move(ended);

  store->append(StoreScript().intended(1, 1).started(1, 1).intermediate(1, 0, "0.5", 1).events());
  store->append(values);
  const std::vector<StoreEvent> later = StoreScript().intermediate(1, 2, "7.7").events();
  store->append(later);
  store->append(later);
  auto next = expect("values of an earlier attempt are known, and a new one is kept with it",
                     all + "0i2=0.7 0i1=6.6 0i2=7.7 1i0=0.5 ");
  co_await std::move(next);
}

}  // namespace nni::testing::detail
