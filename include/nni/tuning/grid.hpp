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

/// Walks over a grid that becomes finer, until every value was tried.
///
/// `choice` and `randint` are tried completely from the start. A numeric dimension begins in its middle and is then
/// halved again and again on its own scale: 1/2; 1/4, 3/4; 1/8, 3/8, ... A step that changes no value, because of q,
/// is left out, so a space in which everything is discrete ends, and then there is nothing more to suggest. In other
/// spaces the limits themselves are approached but not reached.
///
/// Suggestion k is the k-th point of this walk: no results are needed. Points that a trial before a resume, a suggestion
/// from an earlier space, or an imported result had are left out, so a resumed experiment goes on behind its last
/// suggestion; to know them it remembers their texts, of a resume and of a change of the space only, also those that do
/// not fit now, for a space that they fit again. The last dimension changes fastest; dimensions of branches that are not
/// chosen stand still.
///
/// Cost: amortised constant per suggestion; memory grows with the number of values per numeric dimension.
///
/// Source: NNI 3.0, grid search tuner.
class Grid {
 public:
  using role = role::tuner;

  /// @param space  at least one dimension; an experiment takes it from here
  NNI_LAZY explicit Grid(SearchSpace space = {});

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// @param space         what to search
  /// @param goals         not needed: every point is suggested
  /// @throws ConfigError  when the space has no dimensions
  NNI_LAZY void start(const SearchSpace& space, const Objectives& goals);

  /// Begins a new walk with the next suggestion, without the points that were suggested before.
  /// @throws ConfigError  when the space has no dimensions
  NNI_LAZY void update_search_space(const SearchSpace& space);

  /// Nothing once every point was suggested.
  NNI_LAZY [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  NNI_LAZY void observe(const TrialOutcome& outcome);

  /// Takes up a trial that was suggested before a resume, as `id` with `parameters`, and has not ended.
  NNI_LAZY void adopt(ParameterId id, const Parameters& parameters);

  /// `generate` without the text: writes the values of the suggestion `id` into `into`. See nni/tuning/ask_tell.hpp.
  NNI_LAZY [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// Learns nothing: the walk is fixed.
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  /// The grid of one axis.
  struct Line {
    std::vector<double> positions;                     ///< only for numeric axes
    std::vector<std::pair<double, double>> divisible;  ///< intervals with different values at their ends
    std::size_t size = 0;                              ///< number of grid values
    std::size_t known = 0;                             ///< how many of them the walks before this one had
    std::size_t at = 0;                                ///< where the walk stands
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
  NNI_LAZY void tell(ParameterId id, const Parameters& parameters);
  NNI_LAZY void go_on();
  NNI_LAZY bool active(std::size_t axis) const;

  SearchSpace space_;
  std::vector<Line> lines_;
  std::unordered_set<std::string> tried_;  ///< parameters that the walk leaves out
  detail::Elsewhere elsewhere_;            ///< the same of other spaces
  std::uint64_t first_ = 0;                ///< the suggestion with which the walk began
  std::uint64_t next_ = 0;                 ///< the suggestion that `advance` leads to
  std::uint64_t told_ = 0;                 ///< suggestions before this one were made elsewhere, and told
  bool fresh_ = true;                      ///< the walk stands on a point that was not looked at
  bool ended_ = false;
};

static_assert(Tuner<Grid>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/grid_inl.hpp>
#endif
