#pragma once

/// @file
/// What the contracts are written with: awaitables here, roles in nni/concepts/role_check.hpp, messages that may
/// cross coroutines (`CoroutineSafe`) in nni/async/awaitable.hpp.

#include <concepts>
#include <type_traits>

#include <nni/async/awaitable.hpp>
#include <nni/concepts/role_check.hpp>

namespace nni {

/// An expression that has to be awaited and yields a `T`.
///
/// @tparam A  type of the expression
/// @tparam T  what awaiting it yields
template <class A, class T>
concept AwaitableOf = std::same_as<A, awaitable<T>>;

/// An expression that yields a `T`, at once or when awaited; `async::lift` makes both an awaitable.
///
/// @tparam A  type of the expression
/// @tparam T  what it yields
template <class A, class T>
concept ValueOrAwaitable = AwaitableOf<A, T> || std::same_as<std::remove_cvref_t<A>, T>;

}  // namespace nni
