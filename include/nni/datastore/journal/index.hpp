#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nni/core/store_event.hpp>
#include <nni/datastore/common/trial_state.hpp>

namespace nni::datastore::detail {

/// The offsets of the lines that describe a trial; 0: there is none.
class TrialPlaces {
 public:
  TrialPlaces() = default;

  std::uint64_t ordered = 0;
  std::uint64_t intended = 0;  ///< of the last attempt, like the following ones
  std::uint64_t started = 0;
  std::uint64_t final_value = 0;  ///< of the value that counts
  std::uint64_t ended = 0;
  std::uint64_t last_value = 0;  ///< of any attempt; its line names the one before
};

/// The index of a journal: 64 bytes for each finished trial. Everything else is read from the file.
class JournalIndex {
 public:
  /// Takes in an event whose line begins at an offset.
  /// @returns false for a value of a live run that is known already: then nothing changes and no line is needed
  /// @throws Error  `Errc::internal` for an event of a trial that was never ordered
  bool take(const StoreEvent& event, std::uint64_t offset);

  /// True for a value of a run that has ended: only the file shows whether it is a duplicate.
  [[nodiscard]] bool is_late(const Metric& metric) const noexcept;

  [[nodiscard]] std::optional<TrialPlaces> find(TrialId trial) const;

  /// Where the last value of a trial begins; 0: it has none, or is unknown.
  [[nodiscard]] std::uint64_t last_value(TrialId trial) const noexcept;

  using Selection = std::vector<std::pair<TrialId, TrialPlaces>>;

  /// The trials of a page.
  /// @param more  set when there are further ones
  [[nodiscard]] Selection select(const TrialQuery& query, bool& more) const;

  /// The trials that have not ended, in the order of their ids.
  [[nodiscard]] Selection unfinished() const;

  /// Returns the retries that a trial which has not ended has used up.
  [[nodiscard]] RetryState retries(TrialId trial) const noexcept;

  /// Where results from elsewhere begin.
  [[nodiscard]] const std::vector<std::uint64_t>& imported() const noexcept { return imported_; }

  /// The last profile; empty when there was none.
  [[nodiscard]] const ProfileChanged& profile() const noexcept { return profile_; }

  /// Returns the part of a snapshot that needs no reading of the file.
  [[nodiscard]] ExperimentSnapshot summary() const;

 private:
  /// One per trial that was ordered; what it says counts once the trial has ended.
  struct Entry {
    TrialPlaces places;
    double number = std::numeric_limits<double>::quiet_NaN();  ///< of the final value
    std::uint32_t attempts = 0;
    TrialJobStatus status = TrialJobStatus::unknown;
  };
  struct Live {
    TrialState state;
    TrialPlaces places;
  };

  bool take_in(const ProfileChanged& event, std::uint64_t offset);
  bool take_in(const TrialOrdered& event, std::uint64_t offset);
  bool take_in(const RunIntended& event, std::uint64_t offset);
  bool take_in(const RunStarted& event, std::uint64_t offset);
  bool take_in(const MetricReceived& event, std::uint64_t offset);
  bool take_in(const RunEnded& event, std::uint64_t offset);
  bool take_in(const ResultImported& event, std::uint64_t offset);

  Live& live(TrialId trial);
  [[nodiscard]] const Entry* finished(TrialId trial) const noexcept;
  [[nodiscard]] Selection best(const TrialQuery& query, bool& more) const;

  bool has_profile_ = false;
  ProfileChanged profile_;
  std::uint64_t by_status_[8] = {};
  std::deque<Entry> entries_;  // by number
  std::unordered_map<std::uint64_t, Live> live_;
  std::vector<std::uint64_t> imported_;
};

}  // namespace nni::datastore::detail

#if NNI_HEADER_ONLY
#include <nni/datastore/journal/index_inl.hpp>
#endif
