// The smallest scheduler models the concept; without any one of its obligations it does not.

#include <nni/concepts/scheduler.hpp>
#include <nni/scheduling/unlimited.hpp>

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::scheduler;
  PlacementResult place(const ResourceRequest&, const ResourceSnapshot&) { return Placement{}; }
  void hold(const Placement&) {}
  void release(const Placement&) noexcept {}
};
static_assert(Scheduler<Smallest>);
static_assert(Scheduler<scheduling::Unlimited>);

struct WrongRole : Smallest {
  using role = nni::role::storage;
};
struct CannotPlace : Smallest {
  void place() = delete;
};
struct PlacesVaguely : Smallest {
  bool place(const ResourceRequest&, const ResourceSnapshot&) { return true; }
};
struct CannotHold : Smallest {
  void hold() = delete;
};
struct ReleaseMayThrow : Smallest {
  void release(const Placement&) {}
};
struct CannotMove : Smallest {
  CannotMove(CannotMove&&) = delete;
};
static_assert(!Scheduler<WrongRole>);
static_assert(!Scheduler<CannotPlace>);
static_assert(!Scheduler<PlacesVaguely>);
static_assert(!Scheduler<CannotHold>);
static_assert(!Scheduler<ReleaseMayThrow>);
static_assert(!Scheduler<CannotMove>);
static_assert(!Scheduler<int>);

}  // namespace
