#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <nni/concepts/data_store.hpp>

namespace nni::datastore {

/// Keeps records in this process: the default of an experiment.
///
/// Nothing survives the process, so `written` and `synced` return at once and promise nothing. The whole history is in
/// memory: about 50 bytes for each finished trial besides the texts of its parameters and values, and about a kilobyte
/// for a trial that has not ended.
///
/// The records stay in the object: opened again with the same id, it continues with them; opened with another id, it
/// starts empty.
class Memory {
 public:
  using role = role::data_store;

  Memory();
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();

  /// Opens the records of an experiment; new ones, unless they are of the same id.
  /// @param context  not kept
  /// @param id       of the experiment
  /// @returns        what was appended under this id before
  /// @throws Error  `Errc::in_use` when it is open already
  NNI_LAZY [[nodiscard]] awaitable<ExperimentSnapshot> open(Context& context, ExperimentId id);

  /// Records events. @throws Error  `Errc::closed` when it is not open
  StorePosition append(std::span<const StoreEvent> events);

  /// Returns at once. @throws Error  `Errc::closed` when it is not open
  NNI_LAZY [[nodiscard]] awaitable<void> written(StorePosition at);

  /// Returns at once. @throws Error  `Errc::closed` when it is not open
  NNI_LAZY [[nodiscard]] awaitable<void> synced(StorePosition at);

  /// Returns everything known of one trial; nothing for an unknown one.
  NNI_LAZY [[nodiscard]] awaitable<std::optional<TrialJobDetail>> load(TrialId trial);

  /// Returns a page of trials.
  NNI_LAZY [[nodiscard]] awaitable<TrialPage> page(TrialQuery query);

  /// Returns the values of one trial: attempt by attempt, in the order of arrival.
  NNI_LAZY [[nodiscard]] awaitable<std::vector<Metric>> metrics(TrialId trial);

  /// Ends the use of this store; its records stay until it is destroyed.
  NNI_LAZY [[nodiscard]] awaitable<void> close();

 private:
  class Records;
  Records& records() const;

  std::unique_ptr<Records> records_;
};
static_assert(DataStore<Memory>);

}  // namespace nni::datastore

#if NNI_HEADER_ONLY
#include <nni/datastore/memory_inl.hpp>
#endif
