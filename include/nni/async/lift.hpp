#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include <nni/async/awaitable.hpp>

namespace nni::async {

namespace detail {

template <class T>
struct Awaited {
  using type = T;
  static constexpr bool is_awaitable = false;
};
template <class T>
struct Awaited<awaitable<T>> {
  using type = T;
  static constexpr bool is_awaitable = true;
};

}  // namespace detail

/// The result type of awaiting a type: the type itself, or `T` for `awaitable<T>`.
template <class T>
using awaited_t = typename detail::Awaited<std::remove_cvref_t<T>>::type;

/// Returns an awaitable that is ready with a value.
///
/// @param value  its result
template <class T>
  requires(!detail::Awaited<T>::is_awaitable)
[[nodiscard]] awaitable<T> lift(T value) {
  co_return std::move(value);
}

/// Returns the awaitable itself.
template <class T>
[[nodiscard]] awaitable<T> lift(awaitable<T> work) {
  return work;
}

/// Calls a synchronous or asynchronous function and returns its result; `void` included.
///
/// It unifies the calls of hooks that users may write either way. The function is called when the
/// result is awaited.
///
/// @param function   called once; objects that it refers to must live until then
/// @param arguments  stored by value, passed as rvalues; wrap references in `std::ref`
template <class F, class... Arguments>
[[nodiscard]] awaitable<awaited_t<std::invoke_result_t<F&, Arguments...>>> lift_call(
    F function, Arguments... arguments) {
  using Answer = std::invoke_result_t<F&, Arguments...>;
  if constexpr (detail::Awaited<std::remove_cvref_t<Answer>>::is_awaitable) {
    auto work = std::invoke(function, std::move(arguments)...);
    co_return co_await std::move(work);
  } else if constexpr (std::is_void_v<Answer>) {
    std::invoke(function, std::move(arguments)...);
  } else {
    co_return std::invoke(function, std::move(arguments)...);
  }
}

}  // namespace nni::async
