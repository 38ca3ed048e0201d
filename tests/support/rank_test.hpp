#pragma once

/// @file
/// A rank test: is one sample shifted against another?

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace nni_test {

/// Probability that values as small as those of `lower` would come out by chance if both samples had one origin.
///
/// One-sided Mann-Whitney U test with the normal approximation, corrected for ties and continuity; good for ten and
/// more values per sample.
/// Source: Mann, Whitney, "On a test of whether one of two random variables is stochastically larger than the other",
/// Annals of Mathematical Statistics 18, 1947.
inline double chance_that_lower(const std::vector<double>& lower, const std::vector<double>& upper) {
  std::vector<std::pair<double, bool>> all;
  for (const double value : lower) all.emplace_back(value, true);
  for (const double value : upper) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());

  double rank_sum = 0.0;
  double ties = 0.0;
  for (std::size_t first = 0; first < all.size();) {
    std::size_t last = first;
    while (last < all.size() && all[last].first == all[first].first) ++last;
    const auto equal = static_cast<double>(last - first);
    const double rank = 0.5 * static_cast<double>(first + 1 + last);
    for (std::size_t at = first; at < last; ++at)
      if (all[at].second) rank_sum += rank;
    ties += equal * equal * equal - equal;
    first = last;
  }

  const auto m = static_cast<double>(lower.size());
  const auto n = static_cast<double>(upper.size());
  const double u = rank_sum - 0.5 * m * (m + 1.0);
  const double variance = m * n / 12.0 * (m + n + 1.0 - ties / ((m + n) * (m + n - 1.0)));
  const double z = (u + 0.5 - 0.5 * m * n) / std::sqrt(variance);
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace nni_test
