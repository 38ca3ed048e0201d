// The first of two translation units that include everything: whatever a header defines without `inline`
// makes the link with odr_second.cpp fail.
#include "nni_everything.hpp"

const void* address_in_second_unit();

int main() {
  // Both units must see the same object behind an inline function.
  return address_in_second_unit() == static_cast<const void*>(&nni::error_category()) ? 0 : 1;
}
