// The smallest tuner models the concept; without any one of its obligations it does not.

#include <nni/concepts/tuner.hpp>
#include <nni/tuning/ask_tell.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

// A tuner needs no Asio: nothing above may bring it in.
#if defined(BOOST_ASIO_VERSION)
#error "tuners and ask_tell.hpp must not include Asio"
#endif

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::tuner;
  void start(const SearchSpace&, const Objectives&) {}
  void update_search_space(const SearchSpace&) {}
  std::optional<Parameters> generate(ParameterId) { return Parameters(); }
  void observe(const TrialOutcome&) {}
};
static_assert(Tuner<Smallest>);
static_assert(Tuner<tuning::Random>);
static_assert(Tuner<tuning::Grid>);
static_assert(Tuner<tuning::Tpe>);

struct WrongRole : Smallest {
  using role = nni::role::assessor;
};
struct CannotStart : Smallest {
  void start() = delete;
};
struct StartsWithoutDirection : Smallest {
  void start(const SearchSpace&) {}
};
struct CannotUpdate : Smallest {
  void update_search_space() = delete;
};
struct CannotGenerate : Smallest {
  void generate() = delete;
};
struct NeverSaysNoMore : Smallest {
  Parameters generate(ParameterId) { return {}; }
};
struct GeneratesWithoutId : Smallest {
  std::optional<Parameters> generate() { return {}; }
};
struct CannotObserve : Smallest {
  void observe() = delete;
};
struct ObservesOnlyValues : Smallest {
  void observe(ParameterId, double) {}
};
struct CannotMove : Smallest {
  CannotMove(CannotMove&&) = delete;
};
static_assert(!Tuner<WrongRole>);
static_assert(!Tuner<CannotStart>);
static_assert(!Tuner<StartsWithoutDirection>);
static_assert(!Tuner<CannotUpdate>);
static_assert(!Tuner<CannotGenerate>);
static_assert(!Tuner<NeverSaysNoMore>);
static_assert(!Tuner<GeneratesWithoutId>);
static_assert(!Tuner<CannotObserve>);
static_assert(!Tuner<ObservesOnlyValues>);
static_assert(!Tuner<CannotMove>);
static_assert(!Tuner<int>);

// The hooks for plain values are optional, and all three are needed.
struct WithValues : Smallest {
  bool suggest(ParameterId, Point&) { return false; }
  void learn(ParameterId, const Point&, std::optional<double>) {}
  const SearchSpace& search_space() const { return space; }
  SearchSpace space;
};
struct CannotSuggest : WithValues {
  void suggest() = delete;
};
struct CannotLearn : WithValues {
  void learn() = delete;
};
struct HidesItsSpace : WithValues {
  void search_space() = delete;
};
static_assert(tuning::PointTuner<WithValues>);
static_assert(tuning::PointTuner<tuning::Random>);
static_assert(tuning::PointTuner<tuning::Grid>);
static_assert(tuning::PointTuner<tuning::Tpe>);
static_assert(!tuning::PointTuner<Smallest>);
static_assert(!tuning::PointTuner<CannotSuggest>);
static_assert(!tuning::PointTuner<CannotLearn>);
static_assert(!tuning::PointTuner<HidesItsSpace>);

}  // namespace
