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

/// Draws every suggestion from the distributions that the user gave, independently of all results.
///
/// Suggestion k is a function of the seed and k alone. In a space of at most 2^20 configurations no configuration is
/// suggested twice, and none that a trial before a resume or an imported result had; when all have been suggested there
/// is nothing more. Such a space costs up to 1 byte per 4 configurations. In a larger one a suggestion costs nothing but
/// its own drawing. What was suggested from another space, or before a resume, and is not among those bits is remembered
/// as text: it counts in a small space that it fits, also when that is an earlier one that returns.
///
/// Source: NNI 3.0, random tuner and its removal of duplicates.
class Random {
 public:
  using role = role::tuner;

  /// @param space  what to choose from; an experiment takes it from here
  /// @param seed   `nni::seed(7)` for suggestions that can be repeated; otherwise a fresh one, which the experiment records
  explicit Random(SearchSpace space = {}, Seed seed = random_seed());

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return space_; }

  /// What the experiment records, so that a resume goes on with the same numbers.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Takes the recorded seed of an experiment that is resumed. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  void start(const SearchSpace& space, const Objectives& goals);

  /// Goes on with suggestions from another space. What was suggested before counts there too, where it fits, and
  /// otherwise when a space comes that it fits.
  void update_search_space(const SearchSpace& space);

  /// Nothing once every configuration of a small space has been suggested.
  [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  void observe(const TrialOutcome& outcome);

  /// Takes up a trial that was suggested before a resume, as `id` with `parameters`, and has not ended.
  void adopt(ParameterId id, const Parameters& parameters);

  /// `generate` without the text: writes the values of the suggestion `id` into `into`. See nni/tuning/ask_tell.hpp.
  [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// Learns nothing: every suggestion is drawn anew.
  void learn(ParameterId, const Point&, std::optional<double>) noexcept {}

 private:
  void draw(ParameterId id, std::uint32_t stream, Point& into);
  bool draw_unvisited(ParameterId id, Point& into);
  void tell(ParameterId id, const Parameters& parameters);
  void note(const Parameters& parameters);
  void go_on();

  SearchSpace space_;
  Seed seed_;
  detail::Unvisited unvisited_;
  detail::Elsewhere elsewhere_;    ///< what `unvisited_` and the suggestions from here do not tell
  detail::Unvisited before_;       ///< `unvisited_` as it was before `first_`
  ParameterId first_{};            ///< the first suggestion from this space
  ParameterId next_{};             ///< the suggestions from there to here are in `unvisited_`
  ParameterId told_{};             ///< suggestions before this one were made elsewhere, and told
  std::vector<double> positions_;  ///< kept to save an allocation per suggestion
};

static_assert(Tuner<Random>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/random_inl.hpp>
#endif
