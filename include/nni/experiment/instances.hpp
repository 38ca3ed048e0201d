#pragma once

/// @file
/// Compositions that `nni::compiled` has ready made, so that a unit which uses one of them does not compile the running
/// loops again. Header-only mode knows nothing of them.

#include <nni/experiment/experiment.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/tuning/random.hpp>

#if !NNI_HEADER_ONLY
namespace nni {

extern template class Experiment<platforms::InProcess, tuning::Random>;

}  // namespace nni
#endif
