// expect: this needs the component process, which is off: link nni::process, or define NNI_WITH_HTTP=1 and
// A function, not a class, of a component that this program does not use.

#include <nni/keeper/run_if_asked.hpp>

int main(int argc, char** argv) { return nni::keeper::run_if_asked(argc, argv).value_or(1); }
