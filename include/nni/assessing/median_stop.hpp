#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include <nni/concepts/assessor.hpp>
#include <nni/core/ids.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/objectives.hpp>

namespace nni::assessing {

/// Settings of `MedianStop`.
struct MedianStopOptions {
  int start_step = 0;    ///< minimum number of intermediate results before a trial is stopped, >= 0
  int min_finished = 1;  ///< minimum number of succeeded trials with as many results before one is stopped, >= 1
};

/// The median stopping rule: stops a trial whose best intermediate result is worse than the median of others at that step.
///
/// Another trial contributes the mean of its intermediate results up to that step, provided that it
/// succeeded and reported that many. While there are fewer than `min_finished` such
/// trials, no trial is stopped. Of an even number
/// the worse of the two middle values is taken, so that a trial has the benefit of the doubt.
///
/// NaN counts as the worst possible value.
///
/// Cost per intermediate result: O(log n) per trial that ended since the last verdict at that step; memory 8 bytes per step
/// of each successful trial.
///
/// Sources: Golovin, Solnik, Moitra, Kochanski, Karro, Sculley, "Google Vizier: a service for black-box optimization",
/// KDD 2017, section 3.2.2; NNI 3.0, median stop assessor.
class MedianStop {
 public:
  using role = role::assessor;

  /// @throws ConfigError  if an option is out of range
  NNI_LAZY explicit MedianStop(MedianStopOptions options = {});

  void start(const Objectives& goals);
  NNI_LAZY [[nodiscard]] Verdict assess(
      const RunId& run, std::span<const double> history);       ///< judges a run by its history
  NNI_LAZY void trial_ended(const RunId& run, bool succeeded);  ///< records the end of a run, `succeeded` or not

 private:
  /// Two heaps: the larger half of the losses with the smallest on top, and the smaller half with the largest on top.
  class Median {
   public:
    void insert(double loss) { fresh_.push_back(loss); }
    [[nodiscard]] std::size_t size() const noexcept { return lower_.size() + upper_.size() + fresh_.size(); }
    /// Returns element n/2 of n, counted from the best.
    NNI_LAZY [[nodiscard]] double value();

   private:
    NNI_LAZY void insert_into_heaps(double loss);
    NNI_LAZY void divide();

    std::vector<double> fresh_;  ///< in no heap yet: after a resume, building heaps at once is cheaper than inserting
    std::vector<double> lower_;
    std::vector<double> upper_;
  };

  /// The history of a live run.
  struct Progress {
    std::vector<double> means;  ///< mean of the losses up to each step
    double sum = 0.0;
    double best = 0.0;
  };

  [[nodiscard]] double loss(double value) const noexcept;

  MedianStopOptions options_;
  Objectives goals_;
  std::unordered_map<RunId, Progress> running_;
  std::vector<Median> steps_;  ///< per step, of the succeeded runs that reached it
};

static_assert(Assessor<MedianStop>);

}  // namespace nni::assessing

#if NNI_HEADER_ONLY
#include <nni/assessing/median_stop_inl.hpp>
#endif
