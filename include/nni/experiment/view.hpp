#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

// First: in header-only mode its bodies need what the private headers below define after including it.
#include <nni/experiment/control.hpp>

#include <nni/async/awaitable.hpp>
#include <nni/async/runtime.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/core/error.hpp>
#include <nni/core/ids.hpp>
#include <nni/experiment/detail/board.hpp>
#include <nni/experiment/history.hpp>
#include <nni/experiment/options.hpp>
#include <nni/experiment/summary.hpp>
#include <nni/ledger/ledger.hpp>

namespace nni {

namespace detail {

/// The direction that was recorded with an experiment; `minimize` where none was.
[[nodiscard]] Direction recorded_direction(const ProfileChanged& profile);

inline awaitable<void> add_to_view(Board& board, std::vector<TrialJobDetail>& listed, std::size_t limit,
                                   TrialJobDetail trial) {
  if (is_terminal(trial.status)) board.remember(trial);
  if (listed.size() < limit) listed.push_back(std::move(trial));
  co_return;
}

template <class Store>
awaitable<Summary> view_store(Context& context, Store& store, ExperimentId id, std::filesystem::path directory,
                              std::size_t listed_trials) {
  auto opening = store.open(context, id);
  const ExperimentSnapshot snapshot = co_await std::move(opening);
  if (!snapshot.exists)
    throw Error(
        Errc::not_found, "there is no experiment \"" + id.value + "\" to look at; check the id and the directory");

  ExperimentOptions options;
  options.direction = recorded_direction(snapshot.profile);
  Board board(options, {});
  board.begin(snapshot.profile, directory, "", true, 0, 0);
  std::vector<TrialJobDetail> listed;
  const auto visit = [&board, &listed, listed_trials](TrialJobDetail trial) {
    return add_to_view(board, listed, listed_trials, std::move(trial));
  };
  auto reading = for_each_trial(store, static_cast<std::size_t>(-1), visit);
  co_await std::move(reading);
  auto closing = store.close();
  co_await std::move(closing);

  LedgerCounts counts;
  counts.ordered = snapshot.trials;
  std::copy(std::begin(snapshot.by_status), std::end(snapshot.by_status), std::begin(counts.by_status));
  for (const std::uint64_t count : counts.by_status) counts.finished += count;
  co_return board.end(snapshot.profile.status, snapshot.profile.message, counts, std::move(listed));
}

}  // namespace detail

/// What an experiment came to, or has come to so far, read from its data store. Nothing is changed and nothing runs.
///
/// @code
/// nni::Summary summary =
///     nni::view(nni::datastore::Sqlite{{.directory = "nni-experiments", .read_only = true}}, nni::ExperimentId("abcd1234"));
/// @endcode
///
/// @param store          a data store that holds the experiment, read-only if it can be
/// @param id             of the experiment
/// @param directory      what the summary says of its place; empty: nothing
/// @param listed_trials  trials that the summary lists at most
/// @throws Error  `Errc::not_found` when the store does not know the experiment, and what the store throws
template <DataStore Store>
[[nodiscard]] Summary view(Store store, ExperimentId id, std::filesystem::path directory = {},
                           std::size_t listed_trials = ExperimentOptions{}.summary_trials) {
  Runtime runtime;
  Store opened = std::move(store);  // it has to be gone before the runtime is
  return runtime.run(detail::view_store(runtime.context(), opened, std::move(id), std::move(directory), listed_trials));
}

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/experiment/view_inl.hpp>
#endif
