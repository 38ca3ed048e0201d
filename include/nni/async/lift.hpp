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

/// What is left of a type after awaiting it: itself, or `T` of `awaitable<T>`.
template <class T>
using awaited_t = typename detail::Awaited<std::remove_cvref_t<T>>::type;

/// An awaitable that is ready with a value.
///
/// @param value  yielded when awaited
template <class T>
  requires(!detail::Awaited<T>::is_awaitable)
[[nodiscard]] awaitable<T> lift(T value) {
  co_return std::move(value);
}

/// An awaitable stays what it is.
template <class T>
[[nodiscard]] awaitable<T> lift(awaitable<T> work) {
  return work;
}

/// Calls a function that answers at once or when awaited, and yields its answer; `void` included.
///
/// It makes one kind of call out of a hook that users may write either way. The function is called when the
/// result is awaited.
///
/// @param function   called once; what it refers to lives until then
/// @param arguments  kept by value, handed over as rvalues; wrap in `std::ref` what is meant as a reference
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
