#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nni/concepts/tuner.hpp>
#include <nni/core/macros.hpp>
#include <nni/core/random.hpp>
#include <nni/space/search_space.hpp>
#include <nni/tuning/detail/parzen.hpp>
#include <nni/tuning/detail/unvisited.hpp>

namespace nni::tuning {

/// The assumed result of a running trial ("constant liar").
enum class Liar {
  worst,  ///< the worst result: other trials avoid it
  mean,   ///< the mean of all results
  best,   ///< the best result: other trials concentrate around it
  none    ///< ignored
};

/// Settings of `Tpe`.
struct TpeOptions {
  int startup_trials = 10;    ///< random suggestions until this number of results, >= 1
  int candidates = 24;        ///< points drawn and compared per suggestion, >= 1
  double good_share = 0.1;    ///< fraction of the results that count as good, in (0, 1)
  int good_at_most = 25;      ///< upper bound of their number, >= 1
  double prior_weight = 1.0;  ///< weight of the prior distribution, > 0; each result has weight 1
  Liar liar = Liar::worst;    ///< assumed result of running trials
};

/// A tree-structured Parzen estimator: samples where good results are dense and bad ones are not.
///
/// Results are split into a good and a bad part, each of which is modeled by a joint density over *all* parameters, so that
/// correlations are captured. Of several points drawn from the good density, the one with the highest
/// ratio of good to bad is suggested. Choices have kernels of their own; a parameter of a branch counts where its
/// branch was chosen; logarithmic parameters are modeled on the logarithmic scale.
///
/// A finite value of a trial that succeeded, or was stopped early, is a result. A trial that
/// failed, or ended without a value, counts as bad, because parameters that break a trial are worth avoiding. A trial
/// that was canceled is ignored. A running trial counts according to `liar`.
///
/// In a space of at most 2^20 configurations none is suggested twice, and when all were suggested there are no
/// more. In any other space a point is suggested again only if 64 random draws find no new one, as
/// may happen where nearly all of the space is a branch with few configurations. When the space changes, every trial that
/// fits the new one counts there with its result; the others are kept, and count again in a space that they fit.
///
/// Cost of one suggestion: about (results x dimensions x candidates) / 4 floating point operations; memory about 12 bytes
/// per result and dimension, and 40 bytes per result. Both grow linearly with the number of results.
///
/// Sources: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization", NeurIPS 2011;
/// Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
/// empirical performance", arXiv:2304.11127, 2023; Ginsbourger, Le Riche, Carraro, "Kriging is well-suited to
/// parallelize optimization", 2010, for the liar.
class Tpe {
 public:
  using role = role::tuner;

  /// @param space    the search space of the experiment
  /// @param seed     `nni::seed(7)` for reproducible suggestions; by default a random one, which the experiment records
  /// @throws ConfigError  if an option is out of range
  NNI_LAZY explicit Tpe(SearchSpace space = {}, TpeOptions options = {}, Seed seed = random_seed());
  /// The same with default settings.
  NNI_LAZY Tpe(SearchSpace space, Seed seed) : Tpe(std::move(space), TpeOptions{}, seed) {}

  /// Returns the current search space.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return model_->space; }

  /// Returns the seed, which the experiment records, so that a resume continues the same random sequence.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Sets the recorded seed of a resumed experiment. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  NNI_LAZY void start(const SearchSpace& space, const Objectives& goals);

  /// Changes the search space; trials that fit the new one count there.
  NNI_LAZY void update_search_space(const SearchSpace& space);

  /// Returns a suggestion; nothing once every configuration of a small space was suggested.
  NNI_LAZY [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  NNI_LAZY void observe(const TrialOutcome& outcome);

  /// Registers an unfinished trial from before a resume: suggestion `id` with `parameters`. Between `start`
  /// and the first `generate`.
  NNI_LAZY void adopt(ParameterId id, const Parameters& parameters);

  /// Writes the values of suggestion `id` to `into`: `generate` without the text. See nni/tuning/ask_tell.hpp.
  NNI_LAZY [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// Records a result: `observe` without the text.
  /// @param point  its values
  /// @param value  absent or not finite: the trial failed
  NNI_LAZY void learn(ParameterId id, const Point& point, std::optional<double> value);

 private:
  enum class State : std::uint8_t { running, finished, failed, gone };

  /// A suggestion or observed trial; its kernel in `Model::bad` has the same index.
  struct Record {
    double loss = 0.0;
    std::uint32_t turn = 0;  ///< number of trials recorded before it
    State state = State::running;
    bool good = false;                       ///< member of the good part of the last split
    std::unique_ptr<const Parameters> text;  ///< only where the space cannot reproduce it
  };

  /// A suggestion or observed trial in any space, or outside of all.
  struct Trial {
    ParameterId id = imported_parameter;  ///< only of a running trial
    Parameters parameters;
    double loss = 0.0;
    std::uint32_t turn = 0;
    State state = State::running;
  };

  /// Held by pointer, because the kernels refer to the axes of the space.
  struct Model {
    NNI_LAZY explicit Model(SearchSpace from)
        : space(std::move(from)), bad(space.axes()), good(space.axes()), unvisited(space) {}
    SearchSpace space;
    detail::Parzen bad;  ///< a kernel per record, with weight 0 in the good part
    detail::Parzen good;
    detail::Unvisited unvisited;
    std::unordered_set<std::uint64_t> tried;  ///< hashes of all points, if `unvisited` cannot track them
    std::vector<Record> records;
    std::vector<double> values;        ///< suggested values of all records, unlike the rounded ones of kernels
    std::vector<std::uint32_t> order;  ///< finished records, the first `sorted` of them best first
    std::size_t sorted = 0;
    std::vector<std::uint32_t> above;  ///< the good part of the last split
    std::unordered_map<std::uint64_t, std::uint32_t> running;
  };

  NNI_LAZY [[nodiscard]] std::vector<float> coordinates_of(const Point& point) const;
  NNI_LAZY [[nodiscard]] bool is_at(std::uint32_t index, const Point& point) const;
  NNI_LAZY std::uint32_t record(const Point& point);
  NNI_LAZY std::uint32_t record(const Point& point, const Parameters& parameters);
  NNI_LAZY [[nodiscard]] std::vector<Trial> take_all();
  NNI_LAZY void take_up(Trial trial);
  NNI_LAZY void put_aside(Trial trial);
  NNI_LAZY void conclude_aside(ParameterId id, const Parameters& parameters, State state, double loss);
  NNI_LAZY void settle(std::uint32_t index, State state, double loss);
  NNI_LAZY void split();
  NNI_LAZY void sort_records();
  [[nodiscard]] bool before(std::uint32_t one, std::uint32_t other) const;
  NNI_LAZY [[nodiscard]] std::vector<std::uint32_t> best_records() const;
  NNI_LAZY [[nodiscard]] std::vector<std::uint32_t>::iterator place_of(
      double loss, std::uint32_t index, std::vector<std::uint32_t>& ranked) const;
  [[nodiscard]] float weight_of(State state) const noexcept;
  NNI_LAZY void draw_at_random(ParameterId id, Point& into);
  NNI_LAZY bool draw_by_model(ParameterId id, Point& into);
  NNI_LAZY [[nodiscard]] bool was_tried(const Point& point) const;
  NNI_LAZY [[nodiscard]] std::optional<std::uint32_t> land(ParameterId id, const Point* point);

  std::unique_ptr<Model> model_;
  std::vector<Trial> aside_;                                        ///< trials that do not fit the space
  std::unordered_map<std::uint64_t, std::size_t> running_aside_{};  ///< index of running ones
  std::uint32_t turn_ = 0;                                          ///< number of trials recorded so far
  TpeOptions options_;
  Seed seed_;
  Objectives goals_;
};

static_assert(Tuner<Tpe>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/tpe_inl.hpp>
#endif
