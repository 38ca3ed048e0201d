// expect: the training service policy has a member .on_troubel., which nothing calls: the hook is .void on_trouble[(]TroubleListener[)]
// A slip in the name of a hook.

#include "build_failure/parts/policies.hpp"

struct Troubled : parts::Service {
  void on_troubel(nni::TroubleListener);
};

parts::Composed<Troubled> scheduler;
