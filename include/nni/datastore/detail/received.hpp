#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <nni/core/metric.hpp>

namespace nni::datastore::detail {

/// A set of sequence numbers that mostly arrive in order: kept as ranges, so that a million numbers in order cost
/// one entry.
class SequenceSet {
 public:
  /// @returns false when the number was there already
  bool insert(std::uint32_t number) {
    const std::uint64_t value = number;
    // Behind the last range: the only case that is frequent.
    if (ranges_.empty() || value >= ranges_.back().second) {
      add_behind(value);
      return true;
    }
    auto at = std::lower_bound(ranges_.begin(), ranges_.end(), value, [](const Range& range, std::uint64_t wanted) {
      return range.second <= wanted;
    });
    if (at != ranges_.end() && value >= at->first) return false;
    at = ranges_.insert(at, Range{value, value + 1});
    if (const auto next = std::next(at); next != ranges_.end() && next->first == at->second) {
      at->second = next->second;
      ranges_.erase(next);
    }
    if (at != ranges_.begin() && std::prev(at)->second == at->first) {
      std::prev(at)->second = at->second;
      ranges_.erase(at);
    }
    return true;
  }

 private:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // first, one behind the last

  void add_behind(std::uint64_t value) {
    if (!ranges_.empty() && ranges_.back().second == value)
      ++ranges_.back().second;
    else
      ranges_.emplace_back(value, value + 1);
  }

  std::vector<Range> ranges_;
};

/// Which metrics of one run have arrived, so that a second delivery is recognised.
///
/// Final values carry sequence 0 in NNI's protocol, whatever their number; two of them are the same when their
/// texts are equal as well.
class Received {
 public:
  /// @returns false when this metric was there already
  bool insert(const Metric& metric) {
    if (metric.kind == MetricKind::intermediate) return intermediates_.insert(metric.sequence);
    std::pair<std::uint32_t, std::string> key(metric.sequence, metric.value);
    if (std::find(finals_.begin(), finals_.end(), key) != finals_.end()) return false;
    finals_.push_back(std::move(key));
    return true;
  }

 private:
  SequenceSet intermediates_;
  std::vector<std::pair<std::uint32_t, std::string>> finals_;
};

}  // namespace nni::datastore::detail
