#pragma once

/// @file
/// Catch2 of version 3, with what the tests use called as in version 2.

#include <string>

#include <catch2/catch_all.hpp>

using Catch::Approx;

namespace Catch {
/// Matches text that holds `part`.
inline Matchers::StringContainsMatcher Contains(const std::string& part) { return Matchers::ContainsSubstring(part); }
}  // namespace Catch
