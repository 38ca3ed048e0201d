#pragma once

/// @file
/// Counts what was checked; the first thing that does not hold ends the round.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nni_soak {

/// Something that must always hold did not.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// All that is checked, by names that are given once.
class Invariants {
 public:
  Invariants(std::initializer_list<const char*> names) {
    for (const char* name : names) counts_.emplace_back(name, 0);
  }

  /// Further ones.
  void add(const char* name) { counts_.emplace_back(name, 0); }

  /// @param name      one of those known
  /// @param expected  for people; a function, since it is rarely needed
  /// @param times     how often it was looked at
  /// @throws Violation  when it does not hold
  template <class Expected>
  void check(std::string_view name, bool holds, Expected expected, std::uint64_t times = 1) {
    const auto found = std::find_if(counts_.begin(), counts_.end(), [&](const auto& row) { return row.first == name; });
    if (found == counts_.end()) throw std::logic_error("no invariant is called \"" + std::string(name) + '"');
    if (!holds) throw Violation(std::string(name) + "\n  " + expected());
    found->second += times;
  }

  [[nodiscard]] std::uint64_t checks() const {
    std::uint64_t sum = 0;
    for (const auto& [name, count] : counts_) sum += count;
    return sum;
  }

  /// The table, and as the last line how many invariants held, how many did not, how many were never asked for.
  void print(bool failed) const {
    std::printf("\n%12s  invariant\n", "checked");
    std::size_t held = 0;
    for (const auto& [name, count] : counts_) {
      std::printf("%12llu  %s\n", static_cast<unsigned long long>(count), name.c_str());
      if (count != 0) ++held;
    }
    const std::size_t passed = held - (failed && held != 0 ? 1 : 0);
    std::printf("%zu passed, %d failed, %zu skipped\n", passed, failed ? 1 : 0, counts_.size() - held);
  }

 private:
  std::vector<std::pair<std::string, std::uint64_t>> counts_;
};

}  // namespace nni_soak
