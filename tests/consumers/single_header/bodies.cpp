// The one unit of a program that compiles the bodies.
#define NNI_IMPLEMENTATION
#include <nni/nni.hpp>
