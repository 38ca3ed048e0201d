#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// What `written` and `synced` claim when they return.
/// @param reopen        closes the store and opens it again
/// @param count_beside  counts the recorded trials as another process sees them; may be empty
template <class D, class Reopen>
awaitable<void> check_strengths(std::optional<D>& store, Reopen reopen, std::function<std::size_t()> count_beside,
                                ConformanceReport& report) {
  constexpr std::uint64_t count = 20;
  std::size_t early = 0;
  for (std::uint64_t trial = 1; trial <= count; ++trial) {
    const std::vector<StoreEvent> events = StoreScript().succeeded(trial, "0.5").events();
    const StorePosition at = store->append(events);
    if (trial % 2 == 0) {
      auto writing = store->written(at);
      co_await std::move(writing);
    } else {
      auto syncing = store->synced(at);
      co_await std::move(syncing);
    }
    if (count_beside && count_beside() != trial) ++early;
  }
  auto earlier = store->synced(StorePosition{1});
  co_await std::move(earlier);
  if (count_beside)
    report.check(2, "when written or synced returns, another process finds the events", early == 0,
                 std::to_string(early) + " times it did not");
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  report.check(2, "what was written or synced is there afterwards",
               found.trials == count && found.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == count,
               std::to_string(found.trials) + " of " + std::to_string(count));
}

}  // namespace nni::testing::detail
