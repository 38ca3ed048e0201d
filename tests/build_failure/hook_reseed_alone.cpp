// expect: the tuner policy has a member .reseed. that is not the hook nni::Reseedable: .*beside .std::uint64_t seed[(][)] const
// A seed that nobody can record.

#include "build_failure/parts/policies.hpp"

struct Reseeds : parts::Tuner {
  void reseed(std::uint64_t);
};

parts::Composed<parts::Service, Reseeds> scheduler;
