// Compositions that need not be compiled again by each program; apart from the rest, so that both compile at the same time.
#include <nni/experiment/instances_inl.hpp>
