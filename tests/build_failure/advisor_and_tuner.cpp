// expect: an advisor and a tuner or assessor given: a policy that models nni::Advisor takes the place of nni::Tuner and nni::Assessor
// Both who decides alone and who decides together.

#include "build_failure/parts/policies.hpp"

using Advisor = nni::tuning::AsAdvisor<nni::tuning::Random, nni::assessing::None>;

parts::Composed<parts::Service, parts::Tuner, Advisor> scheduler;
