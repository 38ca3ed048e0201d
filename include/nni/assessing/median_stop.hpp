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
  int start_step = 0;  ///< a trial with fewer intermediate results than this goes on in any case, at least 0
  int min_finished =
      1;  ///< trials that must have ended successfully with as many results before one is stopped, at least 1
};

/// Stops a trial whose best intermediate result is worse than the median of what others had at the same step.
///
/// What counts of another trial is the mean of its intermediate results up to that step, and only if it ended
/// successfully and reported that many. As long as there are fewer than `min_finished` such
/// trials, every trial goes on. With an even number
/// of them the worse of the two middle ones is taken, so that a trial has the benefit of the doubt.
///
/// A value that is not a number counts as the worst possible.
///
/// Cost per intermediate result: O(log n) for each trial that ended since the last verdict at that step; memory 8 bytes per step
/// of each successful trial.
///
/// Sources: Golovin, Solnik, Moitra, Kochanski, Karro, Sculley, "Google Vizier: a service for black-box optimization",
/// KDD 2017, section 3.2.2; NNI 3.0, median stop assessor.
class MedianStop {
 public:
  using role = role::assessor;

  /// @throws ConfigError  when an option is out of range
  NNI_LAZY explicit MedianStop(MedianStopOptions options = {});

  void start(const Objectives& goals);
  NNI_LAZY [[nodiscard]] Verdict assess(const RunId& run, std::span<const double> history);  ///< on a run's history
  NNI_LAZY void trial_ended(const RunId& run, bool succeeded);  ///< of a run that succeeded or not

 private:
  /// The larger half of some losses as a heap with the smallest on top, the smaller half the other way round.
  class Median {
   public:
    void insert(double loss) { fresh_.push_back(loss); }
    [[nodiscard]] std::size_t size() const noexcept { return lower_.size() + upper_.size() + fresh_.size(); }
    /// Element n/2 of n, counted from the best.
    NNI_LAZY [[nodiscard]] double value();

   private:
    NNI_LAZY void insert_into_heaps(double loss);
    NNI_LAZY void divide();

    std::vector<double> fresh_;  ///< in no heap yet: after a resume, all at once is cheaper than one by one
    std::vector<double> lower_;
    std::vector<double> upper_;
  };

  /// What is known of a run that has not ended.
  struct Progress {
    std::vector<double> means;  ///< of the losses up to each step
    double sum = 0.0;
    double best = 0.0;
  };

  [[nodiscard]] double loss(double value) const noexcept;

  MedianStopOptions options_;
  Objectives goals_;
  std::unordered_map<RunId, Progress> running_;
  std::vector<Median> steps_;  ///< of the successful runs with at least so many steps, from one
};

static_assert(Assessor<MedianStop>);

}  // namespace nni::assessing

#if NNI_HEADER_ONLY
#include <nni/assessing/median_stop_inl.hpp>
#endif
