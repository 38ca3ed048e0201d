#pragma once

/// @file
/// What must hold for any experiment that a store has, whoever ran it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <nni/core/objectives.hpp>
#include <nni/datastore/convert.hpp>
#include <nni/experiment/summary.hpp>

#include "soak/any_policies.hpp"
#include "soak/invariants.hpp"
#include "soak/plan.hpp"
#include "soak/stored.hpp"
#include "support/temporary_directory.hpp"

namespace nni_soak {

/// A store on a disk on which nothing fails.
/// @param where  parent of the experiment; does not count in memory
[[nodiscard]] inline AnyStore plain_store(StoreKind kind, const std::filesystem::path& where) {
  if (kind == StoreKind::journal) return AnyStore(nni::datastore::Journal({.directory = where}));
  if (kind == StoreKind::sqlite) return AnyStore(nni::datastore::Sqlite({.directory = where}));
  return AnyStore(nni::datastore::Memory());
}

/// What every store must say of itself, however it is asked.
inline void check_readings(Invariants& invariants, const Stored& stored, nni::Direction direction) {
  const auto same = [](const nni::TrialJobDetail& one, const nni::TrialJobDetail& other) {
    return text_of(one) == text_of(other);
  };
  std::uint64_t by_status[8] = {};
  std::uint64_t open = 0;
  std::vector<const nni::TrialJobDetail*> ranked;
  std::size_t failed = 0;
  for (std::size_t index = 0; index < stored.trials.size(); ++index) {
    const nni::TrialJobDetail& trial = stored.trials[index];
    invariants.check("sequence ids have no holes and none is there twice", trial.trial.sequence() == index, [&] {
      return "trial " + std::to_string(index) + " of the pages has the sequence id " +
             std::to_string(trial.trial.sequence());
    });
    const auto& loaded = stored.loaded[index];
    invariants.check("page() and load() agree", loaded && same(*loaded, trial), [&] {
      return "page: " + text_of(trial) + "\n  load: " + (loaded ? text_of(*loaded) : "nothing");
    });
    invariants.check("small and large pages agree", index < stored.at_once.size() && same(stored.at_once[index], trial),
                     [&] { return "small pages: " + text_of(trial); });
    if (trial.status == nni::TrialJobStatus::failed) {
      invariants.check(
          "page() of one state gives those trials", failed < stored.failed.size() && same(stored.failed[failed], trial),
          [&] { return "missing: " + text_of(trial); });
      ++failed;
    }
    if (is_terminal(trial.status))
      ++by_status[static_cast<std::size_t>(trial.status)];
    else
      ++open;
    if (trial.status == nni::TrialJobStatus::succeeded && nni::final_number(trial)) ranked.push_back(&trial);
  }
  invariants.check(
      "the store's counts add up",
      stored.snapshot.trials == stored.trials.size() && stored.snapshot.unfinished.size() == open &&
          std::equal(std::begin(by_status), std::end(by_status), std::begin(stored.snapshot.by_status)) &&
          stored.at_once.size() == stored.trials.size() && stored.failed.size() == failed,
      [&] {
        return std::to_string(stored.trials.size()) + " trials in pages, of which " + std::to_string(open) +
               " are open; the snapshot says " + std::to_string(stored.snapshot.trials) + " and " +
               std::to_string(stored.snapshot.unfinished.size());
      });
  const nni::Objectives goals(direction);
  std::stable_sort(ranked.begin(), ranked.end(), [&](const auto* one, const auto* other) {
    return goals.better(*nni::final_number(*one), *nni::final_number(*other));
  });
  bool ranks = ranked.size() == stored.best.size();
  for (std::size_t index = 0; ranks && index < ranked.size(); ++index) ranks = same(*ranked[index], stored.best[index]);
  invariants.check("the ranking of the store is that of a direct search", ranks, [&] {
    return std::to_string(ranked.size()) + " trials with a value, " + std::to_string(stored.best.size()) + " ranked";
  });
}

/// Copies an experiment into another store.
/// @param stored  what there is to copy
inline void check_copy(Invariants& invariants, const Stored& stored, AnyStore source, StoreKind kind,
                       const nni::ExperimentId& id, nni::Direction direction) {
  const nni_test::TemporaryDirectory elsewhere;
  AnyStore target = plain_store(kind, elsewhere.path());
  const nni::datastore::Converted copied = nni::datastore::convert(source, target, id);
  const Stored there = read(target, id, direction, 5);
  std::uint64_t metrics = 0;
  for (const auto& values : stored.metrics) metrics += values.size();
  bool equal =
      there.trials.size() == stored.trials.size() && copied.trials == stored.trials.size() &&
      copied.metrics == metrics && there.snapshot.imported.size() == stored.snapshot.imported.size() &&
      there.snapshot.unfinished.size() == stored.snapshot.unfinished.size();
  std::string where = "the counts";
  for (std::size_t index = 0; equal && index < stored.trials.size(); ++index) {
    equal = text_of(there.trials[index]) == text_of(stored.trials[index]) &&
            there.metrics[index].size() == stored.metrics[index].size();
    for (std::size_t value = 0; equal && value < stored.metrics[index].size(); ++value)
      equal = there.metrics[index][value].run == stored.metrics[index][value].run &&
              there.metrics[index][value].value == stored.metrics[index][value].value;
    if (!equal) where = "from: " + text_of(stored.trials[index]) + "\n  to: " + text_of(there.trials[index]);
  }
  invariants.check(
      "a copy in another store is equal", equal, [&] { return "to " + std::string(to_string(kind)) + ": " + where; });
}

}  // namespace nni_soak
