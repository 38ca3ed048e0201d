#pragma once

/// @file
/// A data store, a tuner and an assessor that are chosen at run time, so that one instance of `Experiment` serves all
/// rounds.

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nni/assessing/median_stop.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/concepts/trouble.hpp>
#include <nni/concepts/tuner.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/datastore/sqlite.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni_soak {

/// One of the three data stores. Copies share it, so records in memory can be looked at after a run, and be resumed.
class AnyStore {
 public:
  using role = nni::role::data_store;
  using Choice = std::variant<nni::datastore::Memory, nni::datastore::Journal, nni::datastore::Sqlite>;

 private:
  // Stands before its uses: its type is deduced.
  template <class Call>
  decltype(auto) visit(Call&& call) {
    return std::visit(std::forward<Call>(call), *store_);
  }

 public:
  explicit AnyStore(Choice store) : store_(std::make_shared<Choice>(std::move(store))) {}

  void set_experiment_directory(const std::filesystem::path& directory, const nni::ExperimentId& id) {
    visit([&](auto& store) {
      if constexpr (requires { store.set_experiment_directory(directory, id); })
        store.set_experiment_directory(directory, id);
    });
  }
  nni::awaitable<nni::ExperimentSnapshot> open(nni::Context& context, nni::ExperimentId id) {
    return visit([&](auto& store) { return store.open(context, std::move(id)); });
  }
  nni::StorePosition append(std::span<const nni::StoreEvent> events) {
    return visit([&](auto& store) { return store.append(events); });
  }
  void on_trouble(nni::TroubleListener listener) {
    visit([&](auto& store) {
      if constexpr (requires { store.on_trouble(listener); }) store.on_trouble(std::move(listener));
    });
  }
  void give_up() {
    visit([](auto& store) {
      if constexpr (requires { store.give_up(); }) store.give_up();
    });
  }
  nni::awaitable<void> written(nni::StorePosition at) {
    return visit([&](auto& store) { return store.written(at); });
  }
  nni::awaitable<void> synced(nni::StorePosition at) {
    return visit([&](auto& store) { return store.synced(at); });
  }
  nni::awaitable<std::optional<nni::TrialJobDetail>> load(nni::TrialId trial) {
    return visit([&](auto& store) { return store.load(trial); });
  }
  nni::awaitable<nni::TrialPage> page(nni::TrialQuery query) {
    return visit([&](auto& store) { return store.page(query); });
  }
  nni::awaitable<std::vector<nni::Metric>> metrics(nni::TrialId trial) {
    return visit([&](auto& store) { return store.metrics(trial); });
  }
  nni::awaitable<void> close() {
    return visit([](auto& store) { return store.close(); });
  }

 private:
  std::shared_ptr<Choice> store_;
};
static_assert(nni::DataStore<AnyStore>);

/// One of the three tuners.
class AnyTuner {
 public:
  using role = nni::role::tuner;
  using Choice = std::variant<nni::tuning::Random, nni::tuning::Grid, nni::tuning::Tpe>;

  explicit AnyTuner(Choice tuner) : tuner_(std::move(tuner)) {}

  [[nodiscard]] const nni::SearchSpace& search_space() const {
    return std::visit([](const auto& tuner) -> const nni::SearchSpace& { return tuner.search_space(); }, tuner_);
  }
  /// 0 for a tuner without one.
  [[nodiscard]] std::uint64_t seed() const {
    return std::visit(
        [](const auto& tuner) -> std::uint64_t {
          if constexpr (requires { tuner.seed(); })
            return tuner.seed();
          else
            return 0;
        },
        tuner_);
  }
  void reseed(std::uint64_t seed) {
    std::visit(
        [&](auto& tuner) {
          if constexpr (requires { tuner.reseed(seed); }) tuner.reseed(seed);
        },
        tuner_);
  }
  void start(const nni::SearchSpace& space, const nni::Objectives& goals) {
    std::visit([&](auto& tuner) { tuner.start(space, goals); }, tuner_);
  }
  void update_search_space(const nni::SearchSpace& space) {
    std::visit([&](auto& tuner) { tuner.update_search_space(space); }, tuner_);
  }
  std::optional<nni::Parameters> generate(nni::ParameterId id) {
    return std::visit([&](auto& tuner) { return tuner.generate(id); }, tuner_);
  }
  void observe(const nni::TrialOutcome& outcome) {
    std::visit([&](auto& tuner) { tuner.observe(outcome); }, tuner_);
  }
  void adopt(nni::ParameterId id, const nni::Parameters& parameters) {
    std::visit([&](auto& tuner) { tuner.adopt(id, parameters); }, tuner_);
  }

 private:
  Choice tuner_;
};
static_assert(nni::Tuner<AnyTuner>);

/// The median rule, or nothing.
class AnyAssessor {
 public:
  using role = nni::role::assessor;

  explicit AnyAssessor(bool assesses) : assesses_(assesses) {}

  void start(const nni::Objectives& goals) { median_.start(goals); }
  nni::Verdict assess(const nni::RunId& run, std::span<const double> history) {
    return assesses_ ? median_.assess(run, history) : nni::Verdict::good;
  }
  void trial_ended(const nni::RunId& run, bool succeeded) {
    if (assesses_) median_.trial_ended(run, succeeded);
  }

 private:
  bool assesses_;
  nni::assessing::MedianStop median_;
};
static_assert(nni::Assessor<AnyAssessor>);

}  // namespace nni_soak
