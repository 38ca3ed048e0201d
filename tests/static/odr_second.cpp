// The second of two translation units that include everything; see odr_first.cpp.
#include <nni/nni.hpp>

const void* address_in_second_unit();

const void* address_in_second_unit() { return &nni::error_category(); }
