#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <nni/concepts/tuner.hpp>
#include <nni/core/random.hpp>
#include <nni/space/search_space.hpp>
#include <nni/tuning/detail/elsewhere.hpp>
#include <nni/tuning/detail/unvisited.hpp>

namespace nni::tuning {

/// A random search: draws every suggestion from the specified distributions, independently of all results.
///
/// Suggestion k is a function of the seed and k alone. In a space of at most 2^20 configurations no configuration is
/// suggested twice, nor one of a trial before a resume or of an imported result; when all were suggested there
/// are no more. Such a space takes up to 1 byte per 4 configurations; a larger one takes no memory.
/// Suggestions from another space, or from before a resume, that these bits cannot represent are stored
/// as text: they count in a small space that contains them, including an earlier space that returns.
///
/// Source: NNI 3.0, random tuner and its removal of duplicates.
class Random {
 public:
  using role = role::tuner;

  /// @param space  the search space of the experiment
  /// @param seed   `nni::seed(7)` for reproducible suggestions; by default a random one, which the experiment records
  explicit Random(SearchSpace space = {}, Seed seed = random_seed());

  /// Returns the current search space.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// Returns the seed, which the experiment records, so that a resume continues the same random sequence.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Sets the recorded seed of a resumed experiment. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  void start(const SearchSpace& space, const Objectives& goals);

  /// Changes the search space. Earlier suggestions count in every space that
  /// contains them.
  void update_search_space(const SearchSpace& space);

  /// Returns a suggestion; nothing once every configuration of a small space was suggested.
  [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  void observe(const TrialOutcome& outcome);

  /// Registers an unfinished trial from before a resume: suggestion `id` with `parameters`.
  void adopt(ParameterId id, const Parameters& parameters);

  /// Writes the values of suggestion `id` to `into`: `generate` without the text. See nni/tuning/ask_tell.hpp.
  [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// Ignores the result: suggestions are independent.
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  void draw(ParameterId id, std::uint32_t stream, Point& into);
  bool draw_unvisited(ParameterId id, Point& into);
  void replay(ParameterId id, const Parameters& parameters);
  void note(const Parameters& parameters);
  void skip_replayed();

  SearchSpace space_;
  Seed seed_;
  detail::Unvisited unvisited_;
  detail::Elsewhere elsewhere_;    ///< points that neither `unvisited_` nor the own suggestions cover
  detail::Unvisited before_;       ///< `unvisited_` as it was before `first_`
  ParameterId first_{};            ///< the first suggestion from this space
  ParameterId next_{};             ///< the suggestions from there to here are in `unvisited_`
  ParameterId replayed_{};         ///< suggestions below this one were made before a resume
  std::vector<double> positions_;  ///< a member to save an allocation per suggestion
};

static_assert(Tuner<Random>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/random_inl.hpp>
#endif
