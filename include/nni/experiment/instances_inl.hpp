#pragma once

#include <nni/experiment/instances.hpp>

#if !NNI_HEADER_ONLY
namespace nni {

template class Experiment<platforms::InProcess, tuning::Random>;

}  // namespace nni
#endif
