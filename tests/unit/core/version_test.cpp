#include <nni/version.hpp>

#include "support/catch.hpp"

TEST_CASE("version: the one number orders releases as their three parts do", "[core]") {
  CHECK(NNI_VERSION / 10000 == NNI_VERSION_MAJOR);
  CHECK(NNI_VERSION / 100 % 100 == NNI_VERSION_MINOR);
  CHECK(NNI_VERSION % 100 == NNI_VERSION_PATCH);
}
