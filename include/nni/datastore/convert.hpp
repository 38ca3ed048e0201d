#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nni/async/cancellation.hpp>
#include <nni/async/runtime.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/core/error.hpp>

namespace nni::datastore {

/// The counts of a conversion.
class Converted {
 public:
  Converted() = default;

  /// Trials that were copied.
  std::uint64_t trials = 0;
  /// Values that were copied.
  std::uint64_t metrics = 0;
};

namespace detail {

/// Returns the events of a trial: recorded in another store, they give the same trial there.
/// @param trial   as a store returns it
/// @param values  all values of the trial
/// @param open    the trial in the snapshot; null for a trial that has ended
[[nodiscard]] std::vector<StoreEvent> events_of(
    const TrialJobDetail& trial, const std::vector<Metric>& values, const UnfinishedTrial* open);

/// Returns the profile that is recorded first, so that half a copy is not taken for a whole experiment.
[[nodiscard]] ProfileChanged unfinished_copy(const ProfileChanged& profile);

/// Refuses to call a copy complete that lacks trials.
/// @throws Error  `Errc::store_corrupt`
void require_all_copied(std::uint64_t copied, const ExperimentSnapshot& snapshot);

template <class From, class To>
awaitable<Converted> copy_all(From& from, To& to, const ExperimentSnapshot& snapshot) {
  Converted result;
  std::vector<StoreEvent> events(1, StoreEvent(unfinished_copy(snapshot.profile)));
  events.insert(events.end(), snapshot.imported.begin(), snapshot.imported.end());
  TrialQuery query;
  auto next_open = snapshot.unfinished.begin();
  for (bool more = true; more;) {
    auto reading = from.page(query);
    const TrialPage page = co_await std::move(reading);
    bool is_last = !page.more;
    for (const TrialJobDetail& trial : page.trials) {
      // A running experiment continues meanwhile: later trials are left out, and open ones may have ended.
      is_last = is_last || trial.trial.number >= snapshot.trials;
      if (trial.trial.number > snapshot.trials) break;
      auto listing = from.metrics(trial.trial);
      const std::vector<Metric> values = co_await std::move(listing);
      const bool was_open = next_open != snapshot.unfinished.end() && next_open->trial == trial.trial;
      const UnfinishedTrial* open = was_open ? &*next_open++ : nullptr;
      if (was_open && (is_terminal(trial.status) || open->attempts != trial.attempts)) open = nullptr;
      const std::vector<StoreEvent> made = events_of(trial, values, open);
      events.insert(events.end(), made.begin(), made.end());
      ++result.trials;
      result.metrics += values.size();
      query.after = trial.trial;
    }
    more = !is_last && !page.trials.empty();
    if (!more) require_all_copied(result.trials, snapshot);
    if (!more) events.emplace_back(snapshot.profile);
    const StorePosition at = to.append(events);
    events.clear();
    auto writing = to.written(at);  // before the next page, so that no more than one is held
    co_await std::move(writing);
    if (more) continue;
    auto keeping = to.synced(at);
    co_await std::move(keeping);
  }
  co_return result;
}

template <class From, class To>
awaitable<Converted> convert_between(Context& context, From& from, To& to, ExperimentId id) {
  auto opening = from.open(context, id);
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  Converted result;
  std::exception_ptr failure;
  bool is_open = false;
  try {
    if (!snapshot.exists)
      throw Error(
          Errc::not_found, "there is no experiment \"" + id.value + "\" to convert; check the id and the place");
    auto making = to.open(context, id);
    const ExperimentSnapshot there = co_await std::move(making);
    is_open = true;
    // No trials run that could be paused meanwhile: a full disk is reported at once.
    if constexpr (requires { to.give_up(); }) to.give_up();
    if (there.exists)
      throw Error(Errc::already_exists,
                  "experiment \"" + id.value + "\" has " + std::to_string(there.trials) +
                      " trials in the store that it should be copied into; choose one without it");
    auto copying = copy_all(from, to, snapshot);
    result = co_await std::move(copying);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await async::ignore_cancellation();
  try {
    auto closing = from.close();
    co_await std::move(closing);
    if (is_open) {
      auto ending = to.close();
      co_await std::move(ending);
    }
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  if (failure) std::rethrow_exception(failure);
  co_return result;
}

}  // namespace detail

/// Copies an experiment from one data store into another: profile, search space and seed, every trial with its
/// attempts, parameters and values, finished or not. A resume from the copy continues like one from the original. Of the
/// attempts before a trial's last one, the values are copied: data stores return no more. Of a running experiment, the
/// trials that existed when the copy began are copied, each in its state at that moment.
///
/// @code
/// using namespace nni::datastore;
/// convert(Sqlite{{.directory = "nni-experiments", .read_only = true}}, Journal{{.directory = "copies"}}, id);
/// @endcode
///
/// @param from  is not changed; opened read-only, it may be in use by a process that runs
/// @param to    must not have the experiment. When the copy fails, its experiment is marked with the status `error`
/// @param id    of the experiment, in both
/// @returns     the counts, once everything is synced
/// @throws Error  `Errc::not_found` when there is nothing to copy, `Errc::already_exists` when the target has it, and
///                what the stores throw
template <class From, class To>
  requires DataStore<std::remove_cvref_t<From>> && DataStore<std::remove_cvref_t<To>>
Converted convert(From&& from, To&& to, ExperimentId id) {
  Runtime runtime;
  From source = std::forward<From>(from);  // a store that was handed over has to be gone before the runtime is
  To target = std::forward<To>(to);
  return runtime.run(detail::convert_between(runtime.context(), source, target, std::move(id)));
}

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/convert_inl.hpp>
#endif
