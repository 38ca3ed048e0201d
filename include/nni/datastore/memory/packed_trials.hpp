#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <nni/core/metric.hpp>
#include <nni/core/status.hpp>
#include <nni/core/trial.hpp>

namespace nni::datastore::detail {

/// A finished trial and its values.
class FinishedTrial {
 public:
  FinishedTrial() = default;

  TrialJobDetail detail;
  std::vector<Metric> metrics;  ///< of all attempts, in the order of arrival
};

/// Finished trials, packed: about 50 bytes each beside the texts of parameters and values.
///
/// A trial is one block of bytes, its numbers in a variable length, in chunks that are never moved.
class PackedTrials {
 public:
  /// Keeps a trial and its values; one that is there already is replaced (its old block stays unused).
  void put(const TrialJobDetail& detail, std::span<const Metric> metrics);

  /// Forgets a trial (its block stays unused).
  void erase(TrialId trial) noexcept { blocks_[trial.number - 1] = nullptr; }

  /// True when this trial was put.
  [[nodiscard]] bool contains(TrialId trial) const noexcept;

  /// Everything of a trial that is contained.
  [[nodiscard]] FinishedTrial get(TrialId trial) const;

  /// The same without its values.
  [[nodiscard]] TrialJobDetail detail(TrialId trial) const;

  /// State of a trial that is contained.
  [[nodiscard]] TrialJobStatus status(TrialId trial) const noexcept;

  /// The number of its final value, if that is finite.
  [[nodiscard]] std::optional<double> final_number(TrialId trial) const noexcept;

 private:
  [[nodiscard]] const char* block(TrialId trial) const noexcept;
  const char* store(std::string_view bytes);

  std::deque<const char*> blocks_;  // by number; null: not finished
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t room_ = 0;  // left in the last chunk
  std::vector<char> scratch_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/memory/packed_trials_inl.hpp>
#endif
