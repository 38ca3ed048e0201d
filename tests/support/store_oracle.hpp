#pragma once

/// @file
/// What a data store must hold after a script of events, told by the store in memory.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nni/async/runtime.hpp>
#include <nni/core/store_event.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/testing/store_script.hpp>

namespace nni_test {

/// Everything that a store says of its trials, as text.
template <class Store>
nni::awaitable<std::string> dump(Store& store) {
  std::string text;
  nni::TrialQuery query;
  for (bool more = true; more;) {
    auto reading = store.page(query);
    const nni::TrialPage page = co_await std::move(reading);
    for (const nni::TrialJobDetail& trial : page.trials) {
      text += std::to_string(trial.trial.number) + ' ' + std::string(nni::to_string(trial.status)) + ' ' +
              std::to_string(trial.attempts) + ' ' + trial.job.value + ' ' + trial.parameters.text() + ' ' +
              trial.message + ' ' + trial.final_value.value_or("-");
      auto values = store.metrics(trial.trial);
      const std::vector<nni::Metric> metrics = co_await std::move(values);
      for (const nni::Metric& metric : metrics)
        text += ' ' + std::to_string(metric.run.attempt) + ':' + std::to_string(metric.sequence) + '=' + metric.value;
      text += '\n';
      query.after = trial.trial;
    }
    more = page.more;
  }
  co_return text;
}

/// Knows the state behind each prefix of a script.
class StoreOracle {
 public:
  explicit StoreOracle(const std::vector<nni::StoreEvent>& events) {
    nni::Runtime runtime;
    nni::datastore::Memory store;
    static_cast<void>(runtime.run(store.open(runtime.context(), nni::ExperimentId("abc"))));
    prefixes_[runtime.run(dump(store))] = 0;
    for (std::size_t count = 0; count < events.size(); ++count) {
      store.append(std::span(events).subspan(count, 1));
      prefixes_[runtime.run(dump(store))] = count + 1;
    }
  }

  /// The longest prefix of the script that leads to this state; nothing when none does.
  [[nodiscard]] std::optional<std::size_t> prefix(const std::string& state) const {
    const auto found = prefixes_.find(state);
    if (found == prefixes_.end()) return std::nullopt;
    return found->second;
  }

 private:
  std::map<std::string, std::size_t> prefixes_;
};

/// A script with everything that a store has to keep: values small and large, several attempts, failures, profiles.
inline std::vector<nni::StoreEvent> random_script(std::uint64_t trials, std::mt19937_64& random) {
  nni::testing::StoreScript script;
  script.profile(nni::ExperimentId("abc"), nni::ExperimentStatus::running, 0);
  for (std::uint64_t trial = 1; trial <= trials; ++trial) {
    script.ordered(trial);
    std::uint32_t attempt = 0;
    if (random() % 6 == 0) {
      script.intended(trial, attempt).started(trial, attempt).intermediate(trial, 0, "0.75", attempt);
      script.lost(trial, attempt);
      ++attempt;
    }
    script.intended(trial, attempt).started(trial, attempt);
    for (std::uint32_t value = 0; value < random() % 5; ++value) {
      const std::size_t size = random() % 4 == 0 ? 6000 : 8;
      script.intermediate(trial, value, '"' + std::string(size, static_cast<char>('a' + random() % 26)) + '"', attempt);
    }
    if (random() % 8 == 0) {
      script.end(
          trial, attempt, nni::JobEnd(nni::EndKind::signalled, 9, "out of memory"), nni::TrialJobStatus::failed, true);
    } else {
      script.final_value(trial, "0." + std::to_string(random() % 1000), attempt).ended(trial, attempt);
    }
    if (trial % 9 == 0) script.profile(nni::ExperimentId("abc"), nni::ExperimentStatus::running, trial);
  }
  return script.events();
}

}  // namespace nni_test
