// expect: (use of deleted function|attempt to use a deleted function|call to deleted member function).*best
// A pointer into a summary that is gone at the end of the line.

#include <nni/nni.hpp>

nni::Summary run();

const nni::TrialJobDetail* best = run().best();
