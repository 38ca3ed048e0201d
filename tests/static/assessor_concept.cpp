// The smallest assessor models the concept; without any one of its obligations it does not.

#include <nni/assessing/median_stop.hpp>
#include <nni/assessing/none.hpp>
#include <nni/concepts/assessor.hpp>

#if defined(BOOST_ASIO_VERSION)
#error "assessors must not include Asio"
#endif

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::assessor;
  void start(const Objectives&) {}
  Verdict assess(const RunId&, std::span<const double>) { return Verdict::good; }
  void trial_ended(const RunId&, bool) {}
};
static_assert(Assessor<Smallest>);
static_assert(Assessor<assessing::None>);
static_assert(Assessor<assessing::MedianStop>);

struct WrongRole : Smallest {
  using role = nni::role::tuner;
};
struct CannotStart : Smallest {
  void start() = delete;
};
struct CannotAssess : Smallest {
  void assess() = delete;
};
struct AssessesVaguely : Smallest {
  bool assess(const RunId&, std::span<const double>) { return true; }
};
struct AssessesOneValue : Smallest {
  Verdict assess(const RunId&, double) { return Verdict::good; }
};
struct NeverHearsOfEnds : Smallest {
  void trial_ended() = delete;
};
struct HearsNoSuccess : Smallest {
  void trial_ended(const RunId&) {}
};
struct CannotMove : Smallest {
  CannotMove(CannotMove&&) = delete;
};
static_assert(!Assessor<WrongRole>);
static_assert(!Assessor<CannotStart>);
static_assert(!Assessor<CannotAssess>);
static_assert(!Assessor<AssessesVaguely>);
static_assert(!Assessor<AssessesOneValue>);
static_assert(!Assessor<NeverHearsOfEnds>);
static_assert(!Assessor<HearsNoSuccess>);
static_assert(!Assessor<CannotMove>);
static_assert(!Assessor<int>);

}  // namespace
