// expect: nni needs NaN, which -Ofast and -ffast-math take away
// flags: -Ofast
// Parameters of branches that are not chosen are marked with NaN, and would reach trials.

#include <nni/trial/trial.hpp>

int main() {}
