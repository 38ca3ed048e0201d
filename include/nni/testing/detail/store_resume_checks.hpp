#pragma once

#include <chrono>
#include <optional>
#include <variant>
#include <vector>

#include <nni/async/awaitable.hpp>
#include <nni/core/store_event.hpp>
#include <nni/testing/checks.hpp>
#include <nni/testing/store_script.hpp>

namespace nni::testing::detail {

/// Trials that wait for a retry, and trials that are opened again after their end.
/// @param reopen  closes the store and opens it again
template <class D, class Reopen>
awaitable<void> check_reopening(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> first = StoreScript().failed(1).ordered(2).intended(2).started(2).paused(2).events();
  store->append(first);
  auto closing = reopen();
  const ExperimentSnapshot before = co_await std::move(closing);
  report.check(
      3, "a trial that pauses before its next attempt is found with its pause and its retries",
      before.unfinished.size() == 1 && before.unfinished[0].retries == 2 &&
          before.unfinished[0].pause == std::chrono::seconds(3) &&
          before.unfinished[0].ended_at == StoreScript::time_of(2, 9));
  report.check(
      3, "and with its losses that cost no retry", before.unfinished.size() == 1 && before.unfinished[0].losses == 1);
  report.check(
      3, "and with the end of its last run",
      before.unfinished.size() == 1 && before.unfinished[0].last_end &&
          before.unfinished[0].last_end->kind == EndKind::lost &&
          before.unfinished[0].last_end->message == "the machine went away");

  const std::vector<StoreEvent> second = StoreScript().intended(1, 1).intended(2, 1).events();
  store->append(second);
  auto again = reopen();
  const ExperimentSnapshot live = co_await std::move(again);
  report.check(3, "an intent opens a trial that had ended",
               live.unfinished.size() == 2 && live.unfinished[0].attempts == 2 && live.unfinished[0].open_run &&
                   live.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0);
  report.check(3, "the retries that are used up outlive the next intent",
               live.unfinished.size() == 2 && live.unfinished[1].retries == 2 && live.unfinished[1].losses == 1);

  const std::vector<StoreEvent> end = StoreScript().started(1, 1).final_value(1, "0.5", 1).ended(1, 1).events();
  store->append(end);
  auto loading = store->load(TrialId{1});
  const std::optional<TrialJobDetail> trial = co_await std::move(loading);
  report.check(5, "what its first end left behind is gone",
               trial && trial->status == TrialJobStatus::succeeded && trial->attempts == 2 && !trial->signal &&
                   trial->exit_code == 0 && trial->message.empty() && trial->final_value == "0.5");
  auto counting = reopen();
  const ExperimentSnapshot after = co_await std::move(counting);
  report.check(3, "and it is counted once",
               after.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0 &&
                   after.by_status[static_cast<std::size_t>(TrialJobStatus::succeeded)] == 1);

  const JobEnd stopped(EndKind::killed, 0, "stopped before it started");
  const std::vector<StoreEvent> third =
      StoreScript()
          .ordered(3)
          .intended(3)
          .started(3)
          .final_value(3, "0.5")
          .lost(3)
          .end(3, 0, stopped, TrialJobStatus::user_canceled, true)
          .events();
  store->append(third);
  for (const bool reopened : {false, true}) {
    if (reopened) {
      auto resuming = reopen();
      co_await std::move(resuming);
    }
    auto reading = store->load(TrialId{3});
    const std::optional<TrialJobDetail> seen = co_await std::move(reading);
    report.check(
        5, "a trial that is ended between two attempts has the start of the last one, and no result",
        seen && seen->status == TrialJobStatus::user_canceled && seen->start_time == StoreScript::time_of(3, 2) &&
            !seen->final_value && seen->job == StoreScript::job_of(RunId{TrialId{3}, 0}));
  }

  std::vector<StoreEvent> spent =
      StoreScript()
          .ordered(4)
          .intended(4)
          .started(4)
          .paused(4)
          .intended(4, 1)
          .started(4, 1)
          .end(4, 1, JobEnd(EndKind::exited, 1), TrialJobStatus::failed, true)
          .intended(4, 2)
          .events();
  std::get<RunEnded>(spent[spent.size() - 2]).retries = 2;
  std::get<RunEnded>(spent[spent.size() - 2]).losses = 1;
  store->append(spent);
  auto beginning = reopen();
  const ExperimentSnapshot fresh = co_await std::move(beginning);
  report.check(
      3, "a trial that is opened again after its end has all of its retries",
      fresh.unfinished.size() == 2 && fresh.unfinished[1].trial.number == 4 && fresh.unfinished[1].attempts == 3 &&
          fresh.unfinished[1].retries == 0 && fresh.unfinished[1].losses == 0);

  // One that was to be opened again, and was stopped before that.
  const std::vector<StoreEvent> twice =
      StoreScript().failed(5).end(5, 0, stopped, TrialJobStatus::user_canceled, true).events();
  store->append(twice);
  auto last = reopen();
  const ExperimentSnapshot counted = co_await std::move(last);
  auto looking = store->load(TrialId{5});
  const std::optional<TrialJobDetail> ended = co_await std::move(looking);
  report.check(5, "a trial that ends twice is seen through its last end",
               ended && ended->status == TrialJobStatus::user_canceled && !ended->signal &&
                   ended->message == "stopped before it started" && ended->start_time == StoreScript::time_of(5, 2));
  report.check(3, "and it is counted once, by that",
               counted.by_status[static_cast<std::size_t>(TrialJobStatus::failed)] == 0 &&
                   counted.by_status[static_cast<std::size_t>(TrialJobStatus::user_canceled)] == 2);
}

/// Results from elsewhere.
template <class D, class Reopen>
awaitable<void> check_imports(std::optional<D>& store, Reopen reopen, ConformanceReport& report) {
  const std::vector<StoreEvent> events = StoreScript().imported(1, 0.5).succeeded(1, "0.5").imported(2, 0.25).events();
  store->append(events);
  auto reopening = reopen();
  const ExperimentSnapshot found = co_await std::move(reopening);
  const std::vector<ResultImported>& results = found.imported;
  report.check(
      3, "imported results are found in their order, and are no trials",
      found.trials == 1 && results.size() == 2 && results[0].parameters == StoreScript::parameters_of(1) &&
          results[0].value == 0.5 && results[1].value == 0.25 && results[1].after == 1 &&
          results[1].history == std::vector<double>({0.1, 0.25}));
}

}  // namespace nni::testing::detail
