#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include <nni/assessing/median_stop.hpp>
#include <nni/core/error.hpp>

namespace nni::assessing {

NNI_LAZY_BODY MedianStop::MedianStop(MedianStopOptions options) : options_(options) {
  ProblemList problems;
  if (options.start_step < 0)
    problems.add("median_stop.start_step", "is " + std::to_string(options.start_step) + ", but must be at least 0");
  if (options.min_finished < 1)
    problems.add("median_stop.min_finished", "is " + std::to_string(options.min_finished) + ", but must be at least 1");
  problems.throw_if_any();
}

NNI_INLINE void MedianStop::start(const Objectives& goals) { goals_ = goals; }

NNI_INLINE double MedianStop::loss(double value) const noexcept {
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : goals_.loss(value);
}

NNI_LAZY_BODY Verdict MedianStop::assess(const RunId& run, std::span<const double> history) {
  Progress& own = running_[run];
  for (std::size_t step = own.means.size(); step < history.size(); ++step) {
    const double now = loss(history[step]);
    own.best = step == 0 ? now : std::min(own.best, now);
    own.sum += now;
    // The sum of opposite infinities is NaN, which has no order.
    const double mean = own.sum / static_cast<double>(step + 1);
    own.means.push_back(std::isnan(mean) ? std::numeric_limits<double>::infinity() : mean);
  }
  const std::size_t step = history.size();
  if (step == 0 || step < static_cast<std::size_t>(options_.start_step)) return Verdict::good;
  if (step > steps_.size() || steps_[step - 1].size() < static_cast<std::size_t>(options_.min_finished))
    return Verdict::good;
  return own.best > steps_[step - 1].value() ? Verdict::bad : Verdict::good;
}

NNI_LAZY_BODY void MedianStop::trial_ended(const RunId& run, bool succeeded) {
  const auto found = running_.find(run);
  if (found == running_.end()) return;
  const std::vector<double> means = std::move(found->second.means);
  running_.erase(found);
  if (!succeeded) return;
  if (steps_.size() < means.size()) steps_.resize(means.size());
  for (std::size_t step = 0; step < means.size(); ++step) steps_[step].insert(means[step]);
}

NNI_LAZY_BODY double MedianStop::Median::value() {
  if (fresh_.size() > 16 + (lower_.size() + upper_.size()) / 8)
    divide();
  else
    for (const double loss : fresh_) insert_into_heaps(loss);
  fresh_.clear();
  return upper_.front();
}

NNI_LAZY_BODY void MedianStop::Median::divide() {
  std::vector<double> all = std::move(fresh_);
  all.insert(all.end(), lower_.begin(), lower_.end());
  all.insert(all.end(), upper_.begin(), upper_.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  lower_.assign(all.begin(), middle);
  upper_.assign(middle, all.end());
  std::make_heap(lower_.begin(), lower_.end(), std::less<>{});
  std::make_heap(upper_.begin(), upper_.end(), std::greater<>{});
}

NNI_LAZY_BODY void MedianStop::Median::insert_into_heaps(double loss) {
  const auto push = [](std::vector<double>& heap, double value, auto order) {
    heap.push_back(value);
    std::push_heap(heap.begin(), heap.end(), order);
  };
  const auto pop = [](std::vector<double>& heap, auto order) {
    std::pop_heap(heap.begin(), heap.end(), order);
    const double top = heap.back();
    heap.pop_back();
    return top;
  };
  // Invariant: the upper half has as many elements as the lower one, or one more.
  if (lower_.size() < upper_.size()) {
    push(upper_, loss, std::greater<>{});
    push(lower_, pop(upper_, std::greater<>{}), std::less<>{});
  } else {
    push(lower_, loss, std::less<>{});
    push(upper_, pop(lower_, std::less<>{}), std::greater<>{});
  }
}

}  // namespace nni::assessing
