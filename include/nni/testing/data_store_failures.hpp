#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/system/system_error.hpp>

#include <nni/async/event.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/core/error.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// The error that some work ends with.
inline awaitable<boost::system::error_code> code_of(awaitable<void> work) {
  boost::system::error_code code;
  try {
    co_await std::move(work);
  } catch (const boost::system::system_error& error) {
    code = error.code();
  }
  co_return code;
}

/// Checks that a store whose writes fail says so from then on. The store has one synced trial afterwards, perhaps more.
template <DataStore D>
awaitable<void> fail_for_good(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                              ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);
  break_writing();
  const std::vector<StoreEvent> more = StoreScript().succeeded(2, "0.5").events();
  const StorePosition lost = store.append(more);
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(more);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that failed says so, now and from then on", at_first && later && from_then_on);
}

/// Checks that a store waits out a full disk, and that it can be told to wait no longer. The store has two synced trials
/// afterwards, perhaps more.
template <DataStore D>
awaitable<void> wait_for_space(D& store, std::function<void()> break_writing, std::function<void()> mend_writing,
                               ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().succeeded(1, "0.5").events();
  auto keeping = store.synced(store.append(events));
  co_await std::move(keeping);

  std::vector<std::string> told;
  async::event changed;
  store.on_trouble([&told, &changed](const std::string& reason) {
    told.push_back(reason);
    changed.notify();
  });
  break_writing();
  const std::vector<StoreEvent> second = StoreScript().succeeded(2, "0.5").events();
  const StorePosition late = store.append(second);
  while (told.empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  const bool told_why = !told.front().empty();
  mend_writing();
  auto arriving = code_of(store.synced(late));
  const bool arrived = !(co_await std::move(arriving));
  report.check(2, "a store that cannot write for now says why, and goes on by itself",
               told_why && arrived && told.back().empty());

  break_writing();
  const std::vector<StoreEvent> third = StoreScript().succeeded(3, "0.5").events();
  const StorePosition lost = store.append(third);
  while (told.back().empty()) {
    auto change = changed.wait();
    co_await std::move(change);
  }
  store.give_up();
  auto failing = code_of(store.synced(lost));
  const bool at_first = Errc::storage_failed == co_await std::move(failing);
  mend_writing();
  auto still_failing = code_of(store.synced(lost));
  const bool later = Errc::storage_failed == co_await std::move(still_failing);
  const StorePosition further = store.append(third);
  auto failing_on = code_of(store.written(further));
  const bool from_then_on = Errc::storage_failed == co_await std::move(failing_on);
  report.check(2, "a store that gave up says so, now and from then on", at_first && later && from_then_on);
  store.on_trouble({});
}

}  // namespace nni::testing::detail
