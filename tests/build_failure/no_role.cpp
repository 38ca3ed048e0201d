// expect: a policy of this Experiment models no concept of nni: it declares no role
// A policy that forgot to say what it is for.

#include "build_failure/parts/policies.hpp"

struct Nobody {};

parts::Composed<parts::Service, Nobody> scheduler;
