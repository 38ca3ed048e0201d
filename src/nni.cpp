// Everything that needs no heavy client library.
#include <nni/src.hpp>
