// The second of two translation units that include everything; see odr_first.cpp.
#include "nni_everything.hpp"

const void* address_in_second_unit();

const void* address_in_second_unit() { return &nni::error_category(); }
