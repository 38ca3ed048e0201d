#pragma once

/// @file
/// Catch2 of either major version, and the one macro that tests use to say that they cannot run here.

#if __has_include(<catch2/catch_all.hpp>)
// Gives the names of version 2 to those of version 3.
#include "support/catch3.hpp"
#else
#include <catch2/catch.hpp>
#endif

#include <string_view>

namespace nni_test {

/// True when a test whose counterpart is missing has to fail: `NNI_REQUIRE_PEERS=1` in the environment.
bool peers_are_required();

/// Says on standard output why the running test is skipped, and makes the process report it as skipped
/// when nothing else ran.
void note_skip(std::string_view reason);

}  // namespace nni_test

// Leaves with `leave` (return or co_return); where peers are required the test fails instead.
#define NNI_SKIP_OR_FAIL_(leave, reason)                                                    \
  do {                                                                                      \
    if (::nni_test::peers_are_required()) FAIL("required here, but missing: " << (reason)); \
    ::nni_test::note_skip(reason);                                                          \
    leave;                                                                                  \
  } while (false)

/// Ends the test because something outside of this project is missing (a program, a device, a package).
/// @param reason  what is missing and how to get it
#define NNI_SKIP_OR_FAIL(reason) NNI_SKIP_OR_FAIL_(return, reason)

/// The same inside `CO_TEST_CASE`.
#define NNI_CO_SKIP_OR_FAIL(reason) NNI_SKIP_OR_FAIL_(co_return, reason)
