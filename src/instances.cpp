// Instances of common compositions, so that programs need not compile them; separate, so that units compile in parallel.
#include <nni/experiment/instances_inl.hpp>
