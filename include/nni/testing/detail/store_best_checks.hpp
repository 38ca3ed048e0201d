#pragma once

#include <string>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/objectives.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// The best trials by either direction, and no trial that has not ended among them.
template <class D>
awaitable<void> check_best(D& store, ConformanceReport& report) {
  const std::vector<StoreEvent> events =
      StoreScript()
          .succeeded(1, "3")
          .succeeded(2, "{\"default\": -1.5}")
          .succeeded(3, "NaN")
          .failed(4)
          .succeeded(5, "-1.5")
          .succeeded(6, "20")
          .succeeded(7, "\"text\"")
          .ordered(8)
          .events();
  store.append(events);
  TrialQuery query;
  query.limit = 3;
  query.best = Direction::minimize;
  auto first = store.page(query);
  const TrialPage least = co_await std::move(first);
  query.best = Direction::maximize;
  query.limit = 10;
  auto second = store.page(query);
  const TrialPage greatest = co_await std::move(second);
  const auto ids = [](const TrialPage& page) {
    std::string text;
    for (const TrialJobDetail& trial : page.trials) text += std::to_string(trial.trial.number) + " ";
    return text + (page.more ? "more" : "all");
  };
  report.check(5, "the smallest results come first, equal ones by id", ids(least) == "2 5 1 more", ids(least));
  report.check(5, "or the largest, and only finite ones", ids(greatest) == "6 1 2 5 all", ids(greatest));

  // One that runs and has reported its result, and one that had ended with one and runs again.
  const std::vector<StoreEvent> live =
      StoreScript().ordered(9).intended(9).started(9).final_value(9, "7").intended(5, 1).started(5, 1).events();
  store.append(live);
  std::string found;
  for (const TrialJobStatus status : {TrialJobStatus::unknown, TrialJobStatus::waiting, TrialJobStatus::running}) {
    query.status = status;
    auto reading = store.page(query);
    const TrialPage page = co_await std::move(reading);
    found += ids(page);
  }
  report.check(5, "what has not ended is nobody's best", found == "allallall", found);
}

}  // namespace nni::testing::detail
