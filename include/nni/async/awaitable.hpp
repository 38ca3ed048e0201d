#pragma once

#include <concepts>
#include <type_traits>

#include <boost/asio/awaitable.hpp>

#include <nni/core/macros.hpp>

namespace nni {

/// An asynchronous operation with a result of type `T`; it starts when it is awaited or spawned, and runs once.
///
/// Six rules keep coroutines correct on g++ 12, which destroys some temporaries of a statement with `co_await`
/// twice. The probe under tests/compiler shows which forms the installed compiler miscompiles.
///
///  - R1  A statement with `co_await` holds no brace-initialized temporary and no lambda that captures by value.
///        Call first, await second:
///        @code
///        auto call = client.send(std::move(request));
///        HttpResponse reply = co_await std::move(call);
///        @endcode
///        The pair of statements needs R5: a temporary bound to a `const&` parameter is destroyed before the await.
///  - R2  Types that are passed between coroutines are not aggregates: they declare a default constructor (`CoroutineSafe`).
///        Options are aggregates and therefore stay out of the signatures of coroutines.
///  - R3  No `?:` with `co_await` in it or around it.
///  - R4  No initializer list in such a statement.
///  - R5  A coroutine is a named function that takes its parameters by value, or by reference to an object that
///        its caller keeps alive. No lambda with captures is a coroutine.
///  - R6  Code that builds temporaries (requests, JSON, SQL, processes) lives in plain functions that coroutines call.
///
/// @tparam T  type of the result
template <class T = void>
using awaitable = boost::asio::awaitable<T>;

/// A type that is safe as a parameter or a message of a coroutine even if rule R1 is violated.
///
/// @tparam T  asserted beside the definition of each message type
template <class T>
concept CoroutineSafe = !std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>;

}  // namespace nni
