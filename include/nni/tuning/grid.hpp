#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nni/concepts/tuner.hpp>
#include <nni/core/macros.hpp>
#include <nni/space/search_space.hpp>
#include <nni/tuning/detail/elsewhere.hpp>

namespace nni::tuning {

/// A grid search with successive refinement, until every value was suggested.
///
/// `choice` and `randint` are covered completely from the start. A numeric dimension starts in its middle and is then
/// bisected repeatedly on its own scale: 1/2; 1/4, 3/4; 1/8, 3/8, ... A step that changes no value, because of q,
/// is skipped, so a discrete space is exhausted at some point, after which there are no more suggestions. In other
/// spaces the limits are approached but not reached.
///
/// Suggestion k is the k-th point of this sequence, independent of results. Points of trials before a resume, of suggestions
/// from an earlier space, and of imported results are skipped, so a resumed experiment continues after its last
/// suggestion. For that, the tuner stores the texts of these points (only after a resume or a change of the space), including
/// those outside the current space, for a later space that contains them. The last dimension varies fastest; dimensions of
/// inactive branches do not vary.
///
/// Cost: amortized constant per suggestion; memory grows with the number of values per numeric dimension.
///
/// Source: NNI 3.0, grid search tuner.
class Grid {
 public:
  using role = role::tuner;

  /// @param space  at least one dimension; the space of the experiment
  NNI_LAZY explicit Grid(SearchSpace space = {});

  /// Returns the current search space.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// Starts with a space.
  /// @param space         the search space
  /// @param goals         unused: every point is suggested
  /// @throws ConfigError  if the space has no dimensions
  NNI_LAZY void start(const SearchSpace& space, const Objectives& goals);

  /// Starts a new sequence with the next suggestion, without the points that were suggested before.
  /// @throws ConfigError  if the space has no dimensions
  NNI_LAZY void update_search_space(const SearchSpace& space);

  /// Returns the next suggestion; nothing once every point was suggested.
  NNI_LAZY [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  NNI_LAZY void observe(const TrialOutcome& outcome);

  /// Registers an unfinished trial from before a resume: suggestion `id` with `parameters`.
  NNI_LAZY void adopt(ParameterId id, const Parameters& parameters);

  /// Writes the values of suggestion `id` to `into`: `generate` without the text. See nni/tuning/ask_tell.hpp.
  NNI_LAZY [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// Ignores the result: the sequence is fixed.
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  /// The grid of one axis.
  struct Line {
    std::vector<double> positions;                     ///< only for numeric axes
    std::vector<std::pair<double, double>> divisible;  ///< intervals with different values at their ends
    std::size_t size = 0;                              ///< number of grid values
    std::size_t known = 0;                             ///< number of them in the coarser grids before
    std::size_t at = 0;                                ///< current index
  };

  NNI_LAZY void rewind();
  NNI_LAZY bool advance();
  NNI_LAZY bool step();
  NNI_LAZY bool refine();
  NNI_LAZY void halve(std::size_t index);
  NNI_LAZY bool is_new() const;
  NNI_LAZY bool was_tried() const;
  NNI_LAZY Point point() const;
  NNI_LAZY void note(const Parameters& parameters);
  NNI_LAZY void replay(ParameterId id, const Parameters& parameters);
  NNI_LAZY void skip_replayed();
  NNI_LAZY bool active(std::size_t axis) const;

  SearchSpace space_;
  std::vector<Line> lines_;
  std::unordered_set<std::string> tried_;  ///< parameters to skip
  detail::Elsewhere elsewhere_;            ///< the same for other spaces
  std::uint64_t first_ = 0;                ///< the first suggestion of this sequence
  std::uint64_t next_ = 0;                 ///< the next suggestion after `advance`
  std::uint64_t replayed_ = 0;             ///< suggestions below this one were made before a resume
  bool fresh_ = true;                      ///< the current point was not examined yet
  bool ended_ = false;
};

static_assert(Tuner<Grid>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/grid_inl.hpp>
#endif
