// expect: two tuners given: an Experiment has one policy that models nni::Tuner
// Two tuners of different types.

#include "build_failure/parts/policies.hpp"

parts::Composed<parts::Service, parts::Tuner, nni::tuning::Random> scheduler;
