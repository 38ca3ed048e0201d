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

/// What a trial in flight is taken for until its result is known.
enum class Liar {
  worst,  ///< as bad as the worst: other trials keep away from it
  mean,   ///< as the mean of all results
  best,   ///< as good as the best: other trials gather around it
  none    ///< it does not count
};

/// Settings of `Tpe`.
struct TpeOptions {
  int startup_trials = 10;    ///< random suggestions until so many results are known, at least 1
  int candidates = 24;        ///< points that are drawn and compared for one suggestion, at least 1
  double good_share = 0.1;    ///< share of the results that count as good, in (0, 1)
  int good_at_most = 25;      ///< but never more than so many, at least 1
  double prior_weight = 1.0;  ///< weight of the user's distribution; each result has 1; greater than 0
  Liar liar = Liar::worst;    ///< for trials in flight
};

/// Tree-structured Parzen estimator: draws where good results are dense and bad ones are not.
///
/// Results are split into a good and a bad part, each is turned into a density over *all* parameters at once, so that
/// it sees which values go together, and of several points drawn from the good density the one with the highest
/// ratio of good to bad is suggested. Choices have kernels of their own; a parameter of a branch counts where its
/// branch was chosen; logarithmic parameters are treated on the logarithmic scale.
///
/// Which trials count: a finite value of a trial that succeeded, or was stopped early, is a result. A trial that
/// failed, or ended without a value, counts among the bad ones, since what breaks a trial is worth avoiding. A trial
/// that was cancelled says nothing. A trial in flight counts as its `liar` says.
///
/// In a space of at most 2^20 configurations none is suggested twice, and when all were suggested there is nothing
/// more. In any other space a point that was tried is suggested again only when 64 random draws found nothing else, as
/// may happen where nearly all of the space is a branch with few configurations. When the space changes, every trial that fits the new one counts there with its result; the others are put
/// aside, and count again in a space that they fit.
///
/// Cost of one suggestion: about (results x dimensions x candidates) / 4 floating point operations; memory about 12 bytes
/// per result and dimension, and 40 bytes per result. Both grow with the number of results without limit.
///
/// Sources: Bergstra, Bardenet, Bengio, Kegl, "Algorithms for hyper-parameter optimization", NeurIPS 2011;
/// Watanabe, "Tree-structured Parzen estimator: understanding its algorithm components and their roles for better
/// empirical performance", arXiv:2304.11127, 2023; Ginsbourger, Le Riche, Carraro, "Kriging is well-suited to
/// parallelize optimization", 2010, for the liar.
class Tpe {
 public:
  using role = role::tuner;

  /// @param space    what to choose from; an experiment takes it from here
  /// @param options  settings
  /// @param seed     `nni::seed(7)` for suggestions that can be repeated; otherwise a fresh one, which the experiment records
  /// @throws ConfigError  when an option is out of range
  NNI_LAZY explicit Tpe(SearchSpace space = {}, TpeOptions options = {}, Seed seed = random_seed());
  /// The same with default settings.
  NNI_LAZY Tpe(SearchSpace space, Seed seed) : Tpe(std::move(space), TpeOptions{}, seed) {}

  /// The space that suggestions come from.
  [[nodiscard]] const SearchSpace& search_space() const noexcept { return model_->space; }

  /// What the experiment records, so that a resume goes on with the same numbers.
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_.value; }

  /// Takes the recorded seed of an experiment that is resumed. Before `start`.
  void reseed(std::uint64_t seed) noexcept { seed_.value = seed; }

  NNI_LAZY void start(const SearchSpace& space, const Objectives& goals);

  /// Goes on with suggestions from another space, and with the trials that fit it.
  NNI_LAZY void update_search_space(const SearchSpace& space);

  /// Nothing once every configuration of a small space has been suggested.
  NNI_LAZY [[nodiscard]] std::optional<Parameters> generate(ParameterId id);
  NNI_LAZY void observe(const TrialOutcome& outcome);

  /// Takes up a trial that was suggested before a resume, as `id` with `parameters`, and has not ended. Between `start`
  /// and the first `generate`.
  NNI_LAZY void adopt(ParameterId id, const Parameters& parameters);

  /// `generate` without the text: writes the values of the suggestion `id` into `into`. See nni/tuning/ask_tell.hpp.
  NNI_LAZY [[nodiscard]] bool suggest(ParameterId id, Point& into);
  /// `observe` without the text.
  /// @param id     number of the suggestion
  /// @param point  its values
  /// @param value  absent or not finite: the trial failed
  NNI_LAZY void learn(ParameterId id, const Point& point, std::optional<double> value);

 private:
  enum class State : std::uint8_t { running, finished, failed, gone };

  /// One suggestion or observed trial; its kernel in `Model::bad` has the same index.
  struct Record {
    double loss = 0.0;
    std::uint32_t turn = 0;  ///< how many trials became known before it
    State state = State::running;
    bool good = false;                       ///< in the good part of the last split
    std::unique_ptr<const Parameters> text;  ///< only where the space cannot give it back
  };

  /// One suggestion or observed trial in any space, or aside of all.
  struct Trial {
    ParameterId id = imported_parameter;  ///< of a trial in flight
    Parameters parameters;
    double loss = 0.0;
    std::uint32_t turn = 0;
    State state = State::running;
  };

  /// Behind a pointer, because the kernels refer to the axes of the space.
  struct Model {
    NNI_LAZY explicit Model(SearchSpace from)
        : space(std::move(from)), bad(space.axes()), good(space.axes()), unvisited(space) {}
    SearchSpace space;
    detail::Parzen bad;  ///< a kernel per record, those in the good part with weight 0
    detail::Parzen good;
    detail::Unvisited unvisited;
    std::unordered_set<std::uint64_t> tried;  ///< hashes of all points, where `unvisited` cannot count them
    std::vector<Record> records;
    std::vector<double> values;        ///< of all records, as they were suggested: kernels round
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
  std::vector<Trial> aside_;                                        ///< what does not fit the space
  std::unordered_map<std::uint64_t, std::size_t> running_aside_{};  ///< where those in flight are
  std::uint32_t turn_ = 0;                                          ///< trials that became known so far
  TpeOptions options_;
  Seed seed_;
  Objectives goals_;
};

static_assert(Tuner<Tpe>);

}  // namespace nni::tuning

#if NNI_HEADER_ONLY
#include <nni/tuning/tpe_inl.hpp>
#endif
