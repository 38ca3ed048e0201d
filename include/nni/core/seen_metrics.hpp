#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <nni/core/metric.hpp>

namespace nni {

/// The values that one run has delivered, for the detection of duplicate deliveries.
///
/// A value is a duplicate if the same kind, sequence and text were inserted before. Another text under a known sequence is
/// another value: two processes of one trial may both count from 0. Values may arrive in any order.
///
/// A text is kept as a 64-bit hash. Intermediate values with consecutive sequences from 0 take these 8 bytes each;
/// early values, a second text under one sequence, and further final values take an entry of a set.
class SeenMetrics {
 public:
  SeenMetrics() = default;

  /// Inserts a value.
  /// @returns false for a duplicate
  bool insert(const Metric& metric) {
    const Entry entry = entry_of(metric);
    if (metric.kind == MetricKind::final) {
      if (!std::exchange(has_final_, true)) {
        first_final_ = entry;
        return true;
      }
      return entry != first_final_ && others_.insert(entry).second;
    }
    if (metric.sequence < in_order_.size() && in_order_[metric.sequence] == entry.second) return false;
    if (metric.sequence != in_order_.size()) return others_.insert(entry).second;
    in_order_.push_back(entry.second);
    take_early();
    return true;
  }

  /// Returns true for a value that was inserted.
  [[nodiscard]] bool contains(const Metric& metric) const {
    const Entry entry = entry_of(metric);
    if (metric.kind == MetricKind::final && has_final_ && entry == first_final_) return true;
    if (metric.kind == MetricKind::intermediate && metric.sequence < in_order_.size() &&
        in_order_[metric.sequence] == entry.second)
      return true;
    return others_.contains(entry);
  }

 private:
  using Entry = std::pair<std::uint64_t, std::uint64_t>;  // kind and sequence, hash of the text

  static Entry entry_of(const Metric& metric) {
    const std::uint64_t kind = metric.kind == MetricKind::final ? std::uint64_t{1} << 32 : 0;
    return {kind | metric.sequence, std::hash<std::string_view>{}(metric.value)};
  }

  // Moves early values that continue the sequence now.
  void take_early() {
    while (!others_.empty()) {
      const auto found = others_.lower_bound(Entry(in_order_.size(), 0));
      if (found == others_.end() || found->first != in_order_.size()) return;
      in_order_.push_back(found->second);
      others_.erase(found);
    }
  }

  std::deque<std::uint64_t> in_order_;  // hashes of the sequences 0, 1, 2, ...; no vector, whose growth copies
  std::set<Entry> others_;
  Entry first_final_;
  bool has_final_ = false;
};

}  // namespace nni
