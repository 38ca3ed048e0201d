#pragma once

#include <string_view>

namespace nni::keeper {

namespace detail {

// True once `run_if_asked` was called in this process.
inline bool& asked() noexcept {
  static bool called = false;
  return called;
}

}  // namespace detail

/// True when `run_if_asked` was called in this process: the program can be started as a keeper.
[[nodiscard]] inline bool can_serve_as_keeper() noexcept { return detail::asked(); }

/// First line that a starting keeper writes to the process that waits for it. A keeper that ends after this line and
/// writes nothing else was killed.
inline constexpr std::string_view keeper_begins = "begins\n";

/// First argument of a program that is started as a keeper.
inline constexpr const char* serve_argument = "--nni-keeper-serve";

}  // namespace nni::keeper
